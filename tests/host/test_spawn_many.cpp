// Tasks that spawn many at once, with spawn_n().
#include <random>

#include "support/fan_out.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

Runtime fan_runtime(std::uint32_t pool) {
  Options options = on_cpu(3);
  options.spawn_capacity = pool;
  return start<FanOutBlock, FanOutWarp, FanSum>(options);
}

/// Spawns two at once where nothing may be spawned.
struct SpawnsTwo {
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.spawn_n(2, [](std::uint32_t) { return SpawnsTwo{}; })) block.fail(1);
  }
};

}  // namespace

TEST_CASE("spawn_n() spawns all or as many as there is room for, and what depends on the spawner waits for them") {
  for (const std::uint32_t pool : {1u, 8u, 1024u}) {
    INFO("a pool of " << pool);
    Runtime runtime = fan_runtime(pool);
    check_fan_out<FanOutBlock>(runtime, 1, 30, 3);
    check_fan_out<FanOutBlock>(runtime, 7, 4, 5);
    check_fan_out<FanOutBlock>(runtime, 300, 1, 20);
    check_fan_out<FanOutWarp>(runtime, 40, 2, 4);
  }
}

TEST_CASE("spawn_n() of any number of children, with a pool of any size") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 engine(seed);
  const auto up_to = [&](std::uint32_t most) { return std::uniform_int_distribution<std::uint32_t>(1, most)(engine); };
  for (int i = 0; i < 12; ++i) {
    Runtime runtime = fan_runtime(up_to(2000));
    check_fan_out<FanOutBlock>(runtime, up_to(700), 1, up_to(4));
    check_fan_out<FanOutWarp>(runtime, up_to(25), 2, up_to(4));
  }
}

TEST_CASE("spawn_n() of nothing is nothing, and in a phased graph it fails the task") {
  Runtime runtime = start<FanOutBlock, FanSum, SpawnsTwo>(on_cpu(2));
  check_fan_out<FanOutBlock>(runtime, 0, 3, 2);
  Graph phased;
  phased.add(SpawnsTwo{});
  phased.phase();
  CHECK(runtime.submit(runtime.load(phased)).status() == Status::spawn_in_phase);
}
