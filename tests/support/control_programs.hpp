// Checks of a runtime with random programs that have control, see control_graph.hpp, and of continuations with fib.
#pragma once

#include "support/control_graph.hpp"
#include "support/seed.hpp"

namespace flywheel::testing {

/// `count` programs of at most some `most` steps, each submitted three times, several of them in flight together.
inline void check_programs(Runtime& runtime, std::uint64_t seed, std::uint32_t count, std::uint32_t most) {
  constexpr std::uint32_t kTogether = 6;
  Random random(seed);
  for (std::uint32_t begin = 0; begin < count; begin += kTogether) {
    std::vector<std::unique_ptr<LoadedProgram>> programs;
    const auto draw = [&](std::uint32_t low, std::uint32_t high) { return pick(random, low, high); };
    for (std::uint32_t i = begin; i < std::min(count, begin + kTogether); ++i)
      programs.push_back(std::make_unique<LoadedProgram>(runtime, ControlProgram(draw, pick(random, 1, most))));
    for (int round = 0; round < 3; ++round) {
      std::vector<Run> runs;
      for (const auto& program : programs) runs.push_back(program->submit(runtime, pick(random, 1, 3)));
      for (Run& run : runs) run.wait();
    }
    for (std::size_t i = 0; i < programs.size(); ++i) {
      CAPTURE(begin + i);
      CHECK(programs[i]->check() == "");
    }
  }
}

/// fib(n) by continuations: each call leaves its result in a cell of its own, and its continuation adds up those of two calls.
struct FibSum {
  std::uint64_t* cells;
  std::uint64_t cell;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) cells[cell] = cells[2 * cell] + cells[2 * cell + 1];
  }
};
struct FibCall {
  std::uint64_t* cells;
  std::uint64_t cell;  // 1: the root; those of the calls that cell c makes are 2c and 2c + 1
  std::uint32_t n;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) call(block);
  }

 private:
  template <class Block>
  FLYWHEEL_TASK void call(Block& block) const {
    if (n < 2 || !block.then(FibSum{cells, cell})) {
      cells[cell] = alone();
      return;
    }
    for (std::uint32_t i = 0; i < 2; ++i)
      if (const FibCall below{cells, 2 * cell + i, n - 1 - i}; !block.spawn(below)) cells[2 * cell + i] = below.alone();
  }
  FLYWHEEL_TASK std::uint64_t alone() const {
    std::uint64_t a = 0, b = 1;
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint64_t c = a + b;
      a = b;
      b = c;
    }
    return a;
  }
};

/// Whether fib(0) to fib(most) come out right, and a task behind the call sees the result. 2^most cells.
inline void check_fib(Runtime& runtime, std::uint32_t most) {
  Buffer<std::uint64_t> cells = runtime.allocate<std::uint64_t>(std::size_t{1} << (most + 1));
  std::uint64_t a = 0, b = 1;
  for (std::uint32_t n = 0; n <= most; ++n) {
    Graph graph;
    const TaskRef<> root = graph.add(FibCall{cells.data(), 1, n});
    graph.add(FibSum{cells.data(), 0}, after(root));  // cell 0: what was in cell 0 and in cell 1
    cells.write(std::vector<std::uint64_t>{0, 0});
    runtime.submit(runtime.load(graph)).wait();
    std::uint64_t got[2];
    cells.read(got, 2);
    CAPTURE(n);
    CHECK(got[1] == a);
    CHECK(got[0] == a);
    a = std::exchange(b, a + b);
  }
}

}  // namespace flywheel::testing
