#include "host/load/upload.hpp"
#include "support/internals.hpp"

#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "support/piecewise_engine.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

TEST_CASE("an upload brings every value to its place, however small the pieces are") {
  for (const std::size_t piece : {128, 256, 1024, 1 << 20}) {
    PiecewiseEngine engine(kernel_entry<Count>(), on_cpu(), piece);
    std::vector<std::uint64_t> memory(16 * 40);
    Upload upload(engine, memory.data(), memory.size() * 8);
    std::uint64_t value = 0;
    for (const std::size_t count : {100, 3, 16, 400}) {
      for (std::size_t written = 0; written < count;)
        for (std::uint64_t& to : upload.next<std::uint64_t>(count - written)) to = ++value, ++written;
      upload.align(128);
    }
    const std::uint64_t number = upload.finish();
    CHECK(number == engine.sent());
    CHECK(memory[0] == 1);
    CHECK(memory[99] == 100);
    CHECK(memory[112] == 101);
    CHECK(memory[128] == 104);
    CHECK(memory[144 + 399] == 519);
    CHECK(engine.taken() == 0);
  }
}

TEST_CASE("an upload that is given up gives its piece back") {
  PiecewiseEngine engine(kernel_entry<Count>(), on_cpu(), 128);
  std::vector<std::uint64_t> memory(16);
  {
    Upload upload(engine, memory.data(), 128);
    upload.next<std::uint64_t>(1)[0] = 5;
    CHECK(engine.taken() == 1);
  }
  CHECK(engine.taken() == 0);
  CHECK(memory[0] == 0);
}

TEST_CASE("a runtime whose uploads arrive late submits no run before they have") {
  const KernelEntry& entry = kernel_entry<Count, Square>();
  auto made = std::make_unique<PiecewiseEngine>(entry, on_cpu(), 256);
  PiecewiseEngine& engine = *made;
  engine.hold_back(true);  // until a run asks for them
  Runtime runtime(entry, on_cpu(), std::move(made));
  for (std::uint32_t round = 1; round < 50; ++round) {
    Graph graph;
    std::vector<TaskRef<std::uint64_t>> tasks;
    for (std::uint32_t i = 0; i < round; ++i)
      tasks.push_back(i ? graph.add(Square{i}, after(tasks[i / 2], tasks[0])) : graph.add(Square{i}));
    const Executable executable = runtime.load(graph);
    CHECK(engine.waiting() > 0);
    Run run = runtime.submit(executable);
    CHECK(engine.waiting() == 0);
    CHECK(run.get(tasks.back()) == std::uint64_t{round - 1} * (round - 1));
  }
}
