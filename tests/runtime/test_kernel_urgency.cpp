// The GPU's kernel, emulated: how many less urgent tasks a worker begins before one that is more urgent.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <vector>

#include "catch.hpp"
#include "support/emulated_engine.hpp"
#include "support/threads.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
/// Notes when it ran among all, and on which worker.
struct Note {
  std::uint32_t *order, *next, id;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader())
      order[id] = AtomicRef<std::uint32_t, Scope::device>(*next).fetch_add(1, Order::relaxed) << 8 | block.worker();
    block.sync();
  }
};

/// Holds its worker until `words[1]` says go; `words[0]` counts those that are held.
struct Hold {
  std::uint32_t* words;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) {
      AtomicRef<std::uint32_t, Scope::device>(words[0]).add(1, Order::relaxed);
      while (!AtomicRef<std::uint32_t, Scope::device>(words[1]).load(Order::relaxed) && !block.cancelled()) {}
    }
    block.sync();
  }
};

Options of_workers(std::uint32_t workers) {
  Options options;
  options.workers = workers;
  options.queue_capacity = 1024;
  options.spawn_capacity = 16;
  options.log_level = "error";
  return options;
}
}  // namespace

TEST_CASE("a kept successor waits for one task that was staged before it, not for a share of roots") {
  for (const std::uint32_t workers : {1u, 2u}) {
    constexpr std::uint32_t kRoots = 300;
    Runtime rt = start_emulated<Note, Hold>(of_workers(workers));
    auto order = rt.allocate<std::uint32_t>(kRoots + 1), next = rt.allocate<std::uint32_t>(1);
    Graph graph;
    std::vector<TaskRef<>> roots;
    for (std::uint32_t i = 0; i < kRoots; ++i) roots.push_back(graph.add(Note{order.data(), next.data(), i}));
    graph.add(Note{order.data(), next.data(), kRoots}, after(roots[0]), Priority::high);
    rt.submit(rt.load(graph), Priority::low).wait();
    const std::vector<std::uint32_t> ran = order.read();
    // On the root's own worker: how many tasks another one runs meanwhile is up to the operating system.
    std::uint32_t between = 0;
    for (const std::uint32_t one : ran) between += one > ran[0] && one < ran[kRoots] && one % 256 == ran[0] % 256;
    INFO(workers << " workers: the root was number " << ran[0] / 256 << ", its successor " << ran[kRoots] / 256);
    CHECK(ran[kRoots] > ran[0]);
    CHECK(between <= 4);
  }
}

TEST_CASE("passes with many roots do not fill the queue while most workers are busy") {
  constexpr std::uint32_t kWorkers = 4;
  Options options = of_workers(kWorkers);
  options.queue_capacity = 64;
  Runtime rt = start_emulated<Note, Hold>(options);
  auto words = rt.allocate<std::uint32_t>(2), order = rt.allocate<std::uint32_t>(2 * kWorkers + 1),
       next = rt.allocate<std::uint32_t>(1);
  Graph hold, many;
  for (std::uint32_t i = 0; i + 1 < kWorkers; ++i) hold.add(Hold{words.data()});
  for (std::uint32_t i = 0; i <= 2 * kWorkers; ++i) many.add(Note{order.data(), next.data(), i});
  Run held = rt.submit(rt.load(hold));
  while (words.read()[0] + 1 < kWorkers) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  constexpr std::uint32_t kPasses = 60;
  rt.submit(rt.load(many), repeat(kPasses)).wait();
  CHECK(next.read()[0] == kPasses * (2 * kWorkers + 1));
  CHECK(rt.stats().queue_peak <= 2 * kWorkers + 1);
  words.write({kWorkers, 1u});
  held.wait();
}

TEST_CASE("long tasks that are no more than the workers begin side by side, also while workers are only just coming") {
  for (const std::uint32_t workers : {6u, 8u}) {
    for (int trial = 0; trial < 12; ++trial) {
      Runtime rt = start_emulated<Note, Hold>(of_workers(workers));
      auto words = rt.allocate<std::uint32_t>(2);
      Graph hold;
      for (std::uint32_t i = 0; i + 1 < workers; ++i) hold.add(Hold{words.data()});
      Run held = rt.submit(rt.load(hold));  // launches the kernel
      const Deadline deadline(10);
      while (words.read()[0] + 1 < workers && !deadline.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      CHECK(words.read()[0] + 1 == workers);
      words.write({workers, 1u});
      held.wait();
    }
  }
}
