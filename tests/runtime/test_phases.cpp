// Phased runs: all tasks of a phase end before the next begins, and all workers leave at the same boundary.
#include "runtime/compiled/phases.hpp"
#include "support/internals.hpp"

#include <numeric>

#include "catch.hpp"
#include "support/launch.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using P = CpuPlatform;

/// Cell i of this phase from cells i-1, i and i+1 of the phase before, all in plain memory: a three-point
/// stencil.
struct Stencil {
  const std::uint64_t* from;
  std::uint64_t* to;
  std::uint32_t i, n;
  template <class Block>
  void operator()(Block&) const {
    to[i] = from[(i + n - 1) % n] + 2 * from[i] + 3 * from[(i + 1) % n];
  }
};

/// Fails, or asks to stop, in one pass; counts the passes it saw.
struct Ends {
  std::uint32_t* passes;
  std::uint32_t fail_in, stop_in;
  template <class Block>
  void operator()(Block& block) const {
    *passes = block.iteration() + 1;
    if (block.iteration() == fail_in) block.fail(5);
    if (block.iteration() == stop_in) block.stop();
  }
};

/// Every worker runs it: they meet a few times inside the body and read each other's plain cells.
struct Grid {
  std::uint64_t* cells;
  std::uint32_t* wrong;
  std::uint32_t meetings;
  template <class Block>
  void operator()(Block& block) const {
    for (std::uint32_t k = 0; k < meetings; ++k) {
      cells[block.worker()] = k;
      if (!block.grid_sync()) return;
      if (cells[(block.worker() + 1) % block.workers()] != k) P::device(*wrong).fetch_add(1, Order::relaxed);
      if (!block.grid_sync()) return;
    }
  }
};

using PhaseTasks = TaskList<Stencil, Ends, Grid>;
constexpr std::uint32_t kNever = ~0u;

void add_stencil(TestGraph<PhaseTasks>& graph, std::vector<std::uint64_t>& a, std::vector<std::uint64_t>& b) {
  const auto n = static_cast<std::uint32_t>(a.size());
  for (std::uint32_t p = 0; p < 2; ++p) {
    graph.phases.push_back({graph.size(), n, 0, 0});
    for (std::uint32_t i = 0; i < n; ++i) graph.add(Stencil{(p ? b : a).data(), (p ? a : b).data(), i, n});
  }
}

/// One phase of a lone task: so all but one worker have nothing to do but to meet.
RunConstants load_ends(TestDeviceState& device, std::uint32_t* passes, std::uint32_t fail_in, std::uint32_t stop_in) {
  TestGraph<PhaseTasks> graph;
  graph.add(Ends{passes, fail_in, stop_in});
  graph.phases = {{0, 1, 0, 0}, {0, 0, 0, 0}};
  return device.load(graph);
}
}  // namespace

TEST_CASE("a stencil in phases gives what a serial one gives") {
  for (const std::uint32_t workers : {1u, 2u, 4u}) {
    DeviceStateShape shape;
    shape.workers = workers;
    TestDeviceState device(shape);
    std::vector<std::uint64_t> a(10), b(10), x(10), y(10);
    std::iota(a.begin(), a.end(), 1);
    x = a;
    TestGraph<PhaseTasks> graph;
    add_stencil(graph, a, b);
    const RunConstants run = device.load(graph);
    Launch<PhaseTasks> launch(device);
    for (std::uint32_t round = 0; round < 15; ++round) {
      const std::uint32_t repeat = 1 + round % 4;
      REQUIRE(launch.run(run, round % 4, repeat) == 0);
      for (std::uint32_t p = 0; p < 2 * repeat; ++p, x.swap(y))
        for (std::uint32_t i = 0; i < 10; ++i) y[i] = x[(i + 9) % 10] + 2 * x[i] + 3 * x[(i + 1) % 10];
      CHECK(a == x);
    }
  }
}

TEST_CASE("phased runs in one slot follow one another at once, long and short") {
  TestDeviceState device;
  std::uint32_t passes = 0;
  const RunConstants run = load_ends(device, &passes, kNever, kNever);
  Launch<PhaseTasks> launch(device);
  for (std::uint32_t round = 0; round < 300; ++round) {
    const std::uint32_t repeat = round % 2 ? 30 : 1;
    REQUIRE(launch.run(run, 0, repeat) == 0);
    CHECK(passes == repeat);
    if (repeat > 1) CHECK(device.dev.completions[0].iterations == repeat);
  }
}

TEST_CASE("a task that fails ends the phased run for all workers at the next boundary") {
  TestDeviceState device;
  std::uint32_t passes = 0;
  const RunConstants run = load_ends(device, &passes, 6, kNever);
  Launch<PhaseTasks> launch(device);
  for (std::uint32_t round = 0; round < 30; ++round) {
    CHECK(launch.run(run, 0, 100) == kUserStatus + 5);
    CHECK(passes == 7);
    CHECK(device.dev.completions[0].fault_task == 1);
  }
}

TEST_CASE("a task that asks to stop ends the phased run after the pass") {
  TestDeviceState device;
  std::uint32_t passes = 0;
  const RunConstants run = load_ends(device, &passes, kNever, 3);
  Launch<PhaseTasks> launch(device);
  for (std::uint32_t round = 0; round < 30; ++round) {
    CHECK(launch.run(run, 0, 100) == 0);
    CHECK(passes == 4);
    CHECK(device.dev.completions[0].iterations == 4);
  }
}

TEST_CASE("a cancelled phased run ends for all workers, and the next one runs") {
  TestDeviceState device;
  std::uint32_t passes = 0;
  const RunConstants run = load_ends(device, &passes, kNever, kNever);
  Launch<PhaseTasks> launch(device);
  for (std::uint32_t round = 0; round < 10; ++round) {
    launch.submit(run, 0, ~0u);
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    launch.cancel(0);
    CHECK(launch.finish(0, 2 * round) == static_cast<std::uint32_t>(Status::cancelled));
    CHECK(launch.run(run, 0, 2) == 0);
  }
}

TEST_CASE("workers of a grid task meet inside its body") {
  TestDeviceState device;
  std::uint64_t cells[3] = {};
  std::uint32_t wrong = 0;
  TestGraph<PhaseTasks> graph;
  graph.add(Grid{cells, &wrong, 20});
  graph.phases = {{0, 1, 1, 0}};
  const RunConstants run = device.load(graph);
  Launch<PhaseTasks> launch(device);
  for (std::uint32_t round = 0; round < 10; ++round) CHECK(launch.run(run, 0, 2) == 0);
  CHECK(wrong == 0);
  launch.park();
  CHECK(device.dev.control->poller.joined == 10);
}
