// Collective calls on CPU workers, where a block has one thread.
#include "support/collective_tasks.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
/// All of them in constants: they need no run.
template <class Block>
constexpr bool kOneThread = Block::all(true) && !Block::all(false) && Block::any(true) &&
                            !Block::any(false) && Block::count(true) == 1 && Block::count(false) == 0 &&
                            Block::ballot(true) == 1 && Block::ballot(false) == 0 && Block::any_warp(true) &&
                            !Block::any_warp(false) && Block::all_warp(true) && !Block::all_warp(false);
}  // namespace

TEST_CASE("collectives: a block of one thread has its own value, and init before it") {
  STATIC_REQUIRE(kOneThread<OneThread>);
  const auto never = [](int, int) -> int { throw std::logic_error("there is nothing to combine"); };
  CHECK(OneThread::inclusive_scan(3, never) == 3);
  CHECK(OneThread::exclusive_scan(3, never, 7) == 7);
  CHECK(OneThread::exclusive_scan(3u, never, 7) == 7u);  // of the value's type
  CHECK(OneThread::broadcast(5, 9) == 5);
}

TEST_CASE("collectives: on CPU workers threads are told what plain loops say") {
  FLYWHEEL_TEST_SEED(seed);
  Options options;
  options.target = Target::cpu;
  options.workers = 3;
  Runtime runtime = start<Collectives, StoredCollectives>(options);
  CollectivesBench(runtime, seed, 40, 3).check();
}
