// The same workload as test_sanitize.cu, from a kernel in which every thread arrives and waits for itself: see
// support/racecheck/flywheel/detail/group.cuh, which this is compiled with.
//   compute-sanitizer --tool racecheck tests/test_device_racecheck
// And three mistakes that racecheck finds there:
//   compute-sanitizer --tool racecheck tests/test_device_racecheck "planted: *"
#include "support/drained_work.hpp"

namespace flywheel::testing {

/// Reads what other threads write, without block.sync() between.
struct HastyScratch {
  std::uint32_t* out;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    auto* numbers = block.template scratch<int>(block.size());
    if (!numbers) return;
    numbers[block.rank()] = block.rank();
    put_in(*out, static_cast<std::uint32_t>(numbers[block.size() - 1 - block.rank()]));
  }
};

/// Writes to a handoff that it has passed on, or reads pages that it has given back.
struct HastyParts {
  std::uint32_t* out;
  bool hands_over;

  static constexpr std::uint32_t kBytes = 8 * kPageBytes;
  std::uint32_t operand_bytes() const { return kBytes; }

  template <class Block>
  FLYWHEEL_TASK void pack(Block& block, unsigned char* to) const {
    block.for_each(static_cast<int>(kBytes), [&](int i) { to[i] = 1; });
  }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}

  template <class Block, class Operands>
  FLYWHEEL_TASK void compute(Block& block, Operands& operands) const {
    while (const unsigned char* page = operands.consumer_wait()) {
      if (hands_over) pass_on_early(block, page[0]);
      operands.consumer_release();
      if (!hands_over) put_in(*out, std::uint32_t{page[block.rank()]});
    }
  }
  template <class Block>
  FLYWHEEL_TASK void store(Block& block) const {
    while (const auto* words = block.template consumer_wait<std::uint32_t>()) {
      put_in(*out, words[block.rank()]);
      block.consumer_release();
    }
  }

 private:
  template <class Block>
  FLYWHEEL_TASK static void pass_on_early(Block& block, std::uint32_t value) {
    if constexpr (Block::kOnGpu) {
      auto* words = block.template producer_acquire<std::uint32_t>();
      block.producer_commit();
      words[block.rank()] = value;
    }
  }
};

struct Hasty {
  Runtime runtime = start<HastyScratch, HastyParts>([] {
    Options options = drained();
    options.operand_pages = 2;
    return options;
  }());
  Buffer<std::uint32_t> out = runtime.allocate<std::uint32_t>(1);

  void run_parts(bool hands_over) {
    Graph graph;
    graph.add(HastyParts{out.data(), hands_over});
    CHECK(runtime.submit(runtime.load(graph, compiled), repeat(2)).status() == Status::ok);
  }
};

// Not run by themselves: what they compute depends on who comes first.
TEST_CASE("planted: scratch", "[.planted]") {
  Hasty hasty;
  Graph graph;
  graph.add(HastyScratch{hasty.out.data()});
  CHECK(hasty.runtime.submit(hasty.runtime.load(graph)).status() == Status::ok);
}
TEST_CASE("planted: page", "[.planted]") { Hasty().run_parts(false); }
TEST_CASE("planted: handoff", "[.planted]") { Hasty().run_parts(true); }

}  // namespace flywheel::testing
