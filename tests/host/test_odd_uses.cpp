// Uses that a program may come to and that must not cost more than an error: exceptions where something was half done, values
// set twice, calls in the wrong place, objects that were moved from.
#include <flywheel/task.cuh>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/expect.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

struct OddCount {
  int* cell;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {
    std::atomic_ref<int>(*cell).fetch_add(1, std::memory_order_relaxed);
  }
};
/// Spawns ten tasks, but fails to make the one with number `bad`.
struct OddMaker {
  int* cells;
  std::uint32_t bad;
  template <class Block>
  FLYWHEEL_TASK int operator()(Block& block) const {
    return static_cast<int>(block.spawn_n(10, [&](std::uint32_t i) {
      if (i == bad) throw std::runtime_error("cannot make it");
      return OddCount{cells + i};
    }));
  }
};
struct OddValue {
  int value, ms;
  template <class Block>
  FLYWHEEL_TASK int operator()(Block&) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    return value;
  }
};
struct OddEcho {
  Param<int> value;
  template <class Block>
  FLYWHEEL_TASK int operator()(Block& block) const {
    return block.param(value);
  }
};
struct OddNode {
  using Grain = flywheel::Thread;
  std::uint32_t left;
  template <class Block>
  FLYWHEEL_TASK int operator()(Block& block) const {
    if (left == 0) throw std::runtime_error("this node");
    for (int i = 0; i < 2; ++i) block.spawn(OddNode{left - 1});
    return 1;
  }
};
struct OddMeeting {
  template <class Block>
  FLYWHEEL_TASK int operator()(Block& block) const {
    return block.grid_sync();
  }
};
class Silent : public std::exception {
 public:
  const char* what() const noexcept override { return nullptr; }
};
struct OddThrower {
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {
    throw Silent();
  }
};
struct OddScratch {
  template <class Block>
  FLYWHEEL_TASK int operator()(Block& block) const {
    return block.template scratch<int>(16) && block.template scratch<int>(-5);
  }
};
/// Its buffer is refused by an exception of its own.
struct OddBuffers {
  bool bad;
  int* cell;
  template <class Note>
  void buffers(Note&& note) const {
    note("cell", cell);
    if (bad) throw std::runtime_error("no such buffer");
  }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {
    std::atomic_ref<int>(*cell).fetch_add(1, std::memory_order_relaxed);
  }
};

Options odd_options(std::uint32_t workers = 2) {
  Options options;
  options.target = Target::cpu;
  options.workers = workers;
  options.stall_limit = std::chrono::seconds(20);
  return options;
}
Runtime odd_runtime(std::uint32_t workers = 2) {
  return start<OddCount, OddMaker, OddValue, OddEcho, TreeTask<OddNode>, OddMeeting, OddThrower, OddScratch, OddBuffers>(
      odd_options(workers));
}

}  // namespace

TEST_CASE("a task that cannot be made in spawn_n() fails the one that spawns, and nothing is lost") {
  Runtime rt = odd_runtime();
  const auto cells = rt.allocate<int>(10);
  for (std::uint32_t round = 0; round < 30; ++round) {
    const std::uint32_t bad = round % 11;
    auto future = rt.submit(OddMaker{cells.data(), 99});
    auto failing = rt.submit(OddMaker{cells.data(), bad});
    if (bad < 10) CHECK(failing.status() == Status::task_threw);
    else CHECK(failing.get() == 10);
    CHECK(future.get() == 10);
    CHECK(rt.submit(OddValue{7, 0}).get() == 7);
  }
  rt.submit(OddValue{0, 0}).get();
  for (const int cell : cells.read()) CHECK(cell >= 30);  // what was spawned before the exception runs, too
}

TEST_CASE("a run whose spawn_n() has thrown ends behind what was spawned before") {
  Runtime rt = odd_runtime(1);  // which comes to the spawned ones after the one that spawns
  for (std::uint32_t bad = 1; bad < 10; ++bad) {
    const auto cells = rt.allocate<int>(10);
    CHECK(rt.submit(OddMaker{cells.data(), bad}).status() == Status::task_threw);
    std::vector<int> expected(10, 0);
    std::fill_n(expected.begin(), bad, 1);
    CHECK(cells.read() == expected);
  }
}

TEST_CASE("of a parameter that is set twice the later value counts, known or not") {
  Runtime rt = odd_runtime();
  Graph graph;
  const auto param = graph.param<int>();
  const auto task = graph.add(OddEcho{param});
  const Executable echo = rt.load(graph);
  for (const int wait : {0, 10}) {
    auto first = rt.submit(OddValue{20, wait}), second = rt.submit(OddValue{10, wait / 2});
    if (!wait) first.wait(), second.wait();
    CHECK(rt.submit(echo, set(param, first), set(param, second)).get(task) == 10);
    CHECK(rt.submit(echo, set(param, second), set(param, first)).get(task) == 20);
    CHECK(rt.submit(echo, set(param, first), set(param, 9)).get(task) == 9);
    CHECK(rt.submit(echo, set(param, 9), set(param, first)).get(task) == 20);
  }
  auto late = rt.submit(OddValue{20, 30}), early = rt.submit(OddValue{10, 0});
  early.wait();
  CHECK(rt.submit(echo, set(param, late), set(param, early)).get(task) == 10);
  CHECK(rt.submit(echo, set(param, early), set(param, late)).get(task) == 20);
}

TEST_CASE("a tree whose node throws ends, with any number of workers") {
  for (const std::uint32_t workers : {1, 2, 4}) {
    Runtime rt = odd_runtime(workers);
    Tree<OddNode> tree(rt);
    const auto began = std::chrono::steady_clock::now();
    const std::string error = error_of<RunError>([&] { tree(OddNode{6}); });
    check_says(error, {"threw", "this node"});
    CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(15));
    CHECK(rt.submit(OddValue{3, 0}).get() == 3);
  }
}

TEST_CASE("grid_sync() outside of a phased graph fails its task") {
  Runtime rt = odd_runtime();
  check_says(error_of<RunError>([&] { rt.submit(OddMeeting{}).get(); }), {"grid_sync()", "add_grid()"});
  Graph graph;
  const auto task = graph.add(OddMeeting{});
  check_says(error_of<RunError>([&] { rt.submit(rt.load(graph)).get(task); }), {"grid_sync()", "add_grid()"});
  check_says(error_of<RunError>([&] { rt.submit(rt.load(graph, compiled)).get(task); }), {"grid_sync()", "add_grid()"});
  CHECK(rt.submit(OddValue{3, 0}).get() == 3);
}

TEST_CASE("a batch that was moved from has no task") {
  Runtime rt = odd_runtime();
  auto batch = rt.submit(std::vector<OddValue>(3, OddValue{5, 0}));
  const auto moved = std::make_unique<Batch<int>>(std::move(batch));
  CHECK(batch.size() == 0);
  CHECK_THROWS_AS(batch.get(0), UsageError);
  CHECK(moved->get(2) == 5);
  batch = std::move(*moved);
  CHECK(moved->size() == 0);
  CHECK(batch.get(0) == 5);
}

TEST_CASE("an exception without a text") {
  Runtime rt = odd_runtime();
  check_says(error_of<RunError>([&] { rt.submit(OddThrower{}).get(); }), {"threw", "without a text"});
}

TEST_CASE("scratch memory of a negative size") {
  Runtime rt = odd_runtime();
  CHECK(rt.submit(OddScratch{}).status() == Status::scratch_exhausted);
}

TEST_CASE("a task that a batch has refused is not in it") {
  Runtime rt = odd_runtime();
  const auto cell = rt.allocate<int>(1);
  BatchBuilder builder;
  builder.add(OddBuffers{false, cell.data()});
  CHECK_THROWS_AS(builder.add(OddBuffers{true, cell.data()}), std::runtime_error);
  builder.add(OddBuffers{false, cell.data()});
  CHECK(builder.size() == 2);
  rt.submit_batch(builder).wait();
  CHECK(cell.read()[0] == 2);
}

TEST_CASE("options that come from a cast, and negative times") {
  const auto refused = [](auto&& change) {
    Options options = odd_options();
    change(options);
    return error_of<CapacityError>([&] { start<OddCount>(options); });
  };
  check_says(refused([](Options& o) { o.target = static_cast<Target>(77); }), {"Options::target", "77"});
  check_says(refused([](Options& o) { o.mode = static_cast<Mode>(-1); }), {"Options::mode", "-1"});
  check_says(refused([](Options& o) { o.tuning.yield_gap = std::chrono::microseconds(-5); }), {"yield_gap", "-1 ms"});
}

TEST_CASE("a gang of tasks that return different things") {
  Runtime rt = odd_runtime();
  const auto cell = rt.allocate<int>(1);
  Graph graph;
  const auto value = graph.add(OddValue{4, 0});
  const auto count = graph.add(OddCount{cell.data()});
  graph.together(value, count);
  CHECK(rt.submit(rt.load(graph, compiled)).get(value) == 4);
  CHECK(cell.read()[0] == 1);
}

TEST_CASE("a long cycle is told in short") {
  Runtime rt = odd_runtime();
  Graph graph;
  std::vector<TaskRef<int>> tasks;
  for (int i = 0; i < 10000; ++i) tasks.push_back(graph.add(OddValue{i, 0}));
  for (std::size_t i = 0; i < tasks.size(); ++i) graph.edge(tasks[i], tasks[(i + 1) % tasks.size()]);
  const std::string error = error_of<GraphError>([&] { rt.load(graph); });
  check_says(error, {"cycle", "9901 more", "task 0 ("});
  CHECK(error.size() < 10000);
}
