// Trees that grow while they are worked off: nodes of a thread and of a warp, on CPU workers.
#include <flywheel/task.cuh>
#include <flywheel/tree.hpp>

#include <atomic>

#include "catch.hpp"
#include "support/seed.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

struct Fib {
  using Grain = Thread;
  std::uint32_t n;
  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block& block) const {
    if (n < 2) return n;
    block.spawn(Fib{n - 1});
    block.spawn(Fib{n - 2});
    return 0;
  }
};

}  // namespace

TEST_CASE("a tree of threads sums up what its nodes return") {
  Options o;
  o.target = Target::cpu;
  o.workers = 4;
  Runtime rt = start<TreeTask<Fib>>(o);
  Tree<Fib> fib(rt);
  CHECK(fib(Fib{1}) == 1);
  CHECK(fib(Fib{20}) == 6765);
}
