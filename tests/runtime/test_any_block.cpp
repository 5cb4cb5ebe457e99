// The stand-ins for blocks and operands have the members of the real ones, with the same results.
#include <tuple>

#include "catch.hpp"
#include "runtime/compiled/operands.hpp"
#include "runtime/cpu/block.hpp"
#include "runtime/records/any_block.hpp"
#include "support/internals.hpp"
#include "support/small_tasks.hpp"

using namespace flywheel;

namespace {

using flywheel::testing::Count;
using Real = CpuBlock<TaskList<Count>>;

struct Plus {
  int operator()(int a, int b) const { return a + b; }
};
struct Ignore {
  void operator()(int) const {}
};
struct Take {
  void operator()(float) const {}
};
struct Double {
  float operator()(float x) const { return 2 * x; }
};

static_assert(std::is_base_of_v<OneThread, Real> && std::is_base_of_v<OneThread, AnyBlock<true>>);

template <class T>
T& of() {
  return std::declval<T&>();
}

template <class Block>
using Threads =
    std::tuple<decltype(Block::rank()), decltype(Block::size()), decltype(Block::leader()), decltype(Block::lane()),
               decltype(Block::warp()), decltype(Block::kWarps), decltype(Block::kLanes), decltype(Block::kOnGpu),
               decltype(of<Block>().shuffle(1.f, 0)), decltype(of<Block>().reduce(1, Plus{})),
               decltype(of<Block>().inclusive_scan(1.f, Plus{})), decltype(of<Block>().exclusive_scan(1.f, Plus{}, 0)),
               decltype(of<Block>().broadcast(1.f, 0)), decltype(Block::any(true)), decltype(Block::all(true)),
               decltype(Block::count(true)), decltype(Block::ballot(true)), decltype(Block::any_warp(true)),
               decltype(Block::all_warp(true)), decltype(of<Block>().template scratch<float>(1)),
               decltype(of<Block>().stream_reduce(1, of<Reads<float>>(), 0, Plus{}, Double{}))>;

template <class Block>
using Runs =
    std::tuple<decltype(of<Block>().cancelled()), decltype(of<Block>().param(Param<float>{})), decltype(of<Block>().emit(1.f)),
               decltype(of<Block>().spawn(Count{})), decltype(of<Block>().spawn(Count{}, Priority::high)),
               decltype(of<Block>().iteration()), decltype(of<Block>().worker()), decltype(of<Block>().workers()),
               decltype(of<Block>().idle_workers()), decltype(of<Block>().grid_sync()), decltype(of<Block>().stamp()),
               decltype(of<Block>().await()), decltype(of<Block>().await_sent())>;

/// What returns nothing.
template <class Block>
concept HasCommands = requires(Block& block) {
  block.sync();
  block.sync_warp();
  block.for_each(1, Ignore{});
  block.stream(1, of<Reads<float>>(), Take{});
  block.stream(1, of<Reads<float>>(), of<Writes<float>>(), Double{});
  block.borrow_handoffs();
  block.fail(1);
  block.stop();
  block.sent();
};

template <class Operands>
using Pages = std::tuple<decltype(of<Operands>().consumer_wait()), decltype(of<Operands>().consumer_release())>;

/// `auto`: the compiler has to instantiate the body to know what it returns.
struct Deduced {
  template <class Block>
  FLYWHEEL_TASK auto operator()(Block& block) const {
    int sum = 0;
    block.for_each(3, [&](int i) { sum += i; });
    if constexpr (Block::kOnGpu) sum = block.shuffle_xor(sum, 1);
    return block.reduce(sum, Plus{});
  }
};

}  // namespace

TEST_CASE("any block: members and results are those of a CPU worker's block") {
  STATIC_REQUIRE(std::is_same_v<Threads<AnyBlock<false>>, Threads<Real>>);
  STATIC_REQUIRE(std::is_same_v<Threads<AnyBlock<true>>, Threads<Real>>);
  STATIC_REQUIRE(std::is_same_v<Runs<AnyBlock<false>>, Runs<Real>>);
  STATIC_REQUIRE(HasCommands<AnyBlock<false>>);
  STATIC_REQUIRE(HasCommands<Real>);
  STATIC_REQUIRE(std::is_same_v<Pages<AnyOperands>, Pages<CpuOperands>>);
}

TEST_CASE("any block: it tells the result of a body whose type is deduced") {
  STATIC_REQUIRE(std::is_same_v<decltype(Deduced{}(of<AnyBlock<false>>())), int>);
  STATIC_REQUIRE(std::is_same_v<decltype(Deduced{}(of<AnyBlock<true>>())), int>);
}
