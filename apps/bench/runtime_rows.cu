#include "apps/bench/runtime_rows.hpp"

#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <memory>
#include <stdexcept>
#include <thread>

namespace bench {

using namespace flywheel;
using measure::Effort;
using measure::Measurement;
using measure::microseconds_since;
using measure::Samples;
using measure::time_each;

namespace {

struct Empty {
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

/// Meets all other workers `times` times: nothing but phase boundaries.
struct Meet {
  int times;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    for (int i = 0; i < times; ++i)
      if (!block.grid_sync()) return;
  }
};

FLYWHEEL_TASK std::uint64_t mix(std::uint64_t x) {  // the finaliser of splitmix64 (Steele et al., 2014)
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// Adds a hash of who it is to its worker's sum. A worker runs one task at a time, so no atomics are needed.
struct Sign {
  Param<std::uint64_t> run;
  std::uint64_t task;
  std::uint64_t* sums;  // 16 apart, one for each worker
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) sums[16 * block.worker()] += mix(block.param(run) * 0x9e3779b97f4a7c15ull + task);
  }
};

Options options_for(bool on_gpu) {
  Options options;
  options.target = on_gpu ? Target::gpu : Target::cpu;
  options.mode = Mode::resident;
  options.heap_bytes = std::size_t{16} << 20;
  return options;
}

Runtime start_runtime(const Options& options) { return start<Empty, Meet, Sign>(options); }

Samples submit_to_result(bool on_gpu, int samples) {
  Runtime rt = start_runtime(options_for(on_gpu));
  Graph graph;
  graph.add(Empty{});
  const Executable exec = rt.load(graph);
  return time_each(200, samples, [&] { rt.submit(exec).wait(); });
}

/// A task of a worker's own for each, as a phase or compiled.
template <bool kPhased>
Samples all_workers_to_result(bool on_gpu, int samples) {
  Runtime rt = start_runtime(options_for(on_gpu));
  Graph graph;
  if (kPhased) graph.phase();
  for (std::uint32_t worker = 0; worker < rt.workers(); ++worker) graph.add(Empty{});
  const Executable exec = kPhased ? rt.load(graph) : rt.load(graph, compiled);
  return time_each(200, samples, [&] { rt.submit(exec).wait(); });
}

Samples empty_block_tasks(bool on_gpu, int samples) {
  const int tasks = on_gpu ? 100000 : 10000;
  Runtime rt = start_runtime(options_for(on_gpu));
  Graph graph;
  for (int i = 0; i < tasks; ++i) graph.add(Empty{});
  const Executable exec = rt.load(graph);
  Samples rates = time_each(3, samples, [&] { rt.submit(exec).wait(); });
  for (double& rate : rates) rate = tasks / rate;
  return rates;
}

/// `tasks` tasks in ten levels. Those behind the first level wait for tasks of the level before, with `edges`
/// dependencies in all.
Graph ten_levels(std::uint64_t tasks, std::uint64_t edges) {
  const std::uint64_t width = tasks / 10, later = tasks - width;
  Graph graph;
  std::vector<TaskRef<>> all, waits;
  all.reserve(tasks);
  for (std::uint64_t task = 0; task < width; ++task) all.push_back(graph.add(Empty{}));
  for (std::uint64_t task = 0; task < later; ++task) {
    waits.clear();
    const std::uint64_t count = (task + 1) * edges / later - task * edges / later;
    for (std::uint64_t i = 0; i < count; ++i) waits.push_back(all[task - task % width + (task + 7 * i) % width]);
    all.push_back(graph.add(Empty{}, after(waits)));
  }
  return graph;
}

/// Builds, loads and runs a graph of one task, and gives its memory back.
Samples fresh_graph_1(bool on_gpu, int samples) {
  Runtime rt = start_runtime(options_for(on_gpu));
  return time_each(200, samples, [&] {
    Graph graph;
    graph.add(Empty{});
    rt.submit(rt.load(graph)).wait();
  });
}

/// The same with 100,000 tasks and 200,000 dependencies in ten levels.
Samples fresh_graph_100k(bool on_gpu, int samples) {
  Runtime rt = start_runtime(options_for(on_gpu));
  return time_each(3, samples, [&] { rt.submit(rt.load(ten_levels(100000, 200000))).wait(); });
}

/// A chain whose every link goes to another worker, because no worker keeps a successor.
Samples hop(bool on_gpu, int samples) {
  const int length = 1000;
  Options options = options_for(on_gpu);
  options.tuning.keep_successor = false;
  Runtime rt = start_runtime(options);
  Graph graph;
  auto last = graph.add(Empty{});
  for (int i = 1; i < length; ++i) last = graph.add(Empty{}, after(last));
  const Executable exec = rt.load(graph);
  Samples times = time_each(3, samples, [&] { rt.submit(exec).wait(); });
  for (double& time : times) time /= length;
  return times;
}

Samples phase_boundary(bool on_gpu, int samples) {
  const int times = on_gpu ? 10000 : 100;
  Runtime rt = start_runtime(options_for(on_gpu));
  Graph graph;
  graph.add_grid(Meet{times});
  const Executable exec = rt.load(graph);
  Samples all = time_each(2, samples, [&] { rt.submit(exec).wait(); });
  for (double& time : all) time /= times;
  return all;
}

/// Submits `runs` of the same graph from one thread, a few in flight; returns the sum of hashes they must leave.
std::uint64_t submit_many(Runtime& rt, const Executable& exec, Param<std::uint64_t> param, std::uint64_t first,
                          std::uint64_t runs, std::uint64_t tasks) {
  std::uint64_t expected = 0;
  std::vector<Run> flying;
  for (std::uint64_t r = first; r < first + runs; ++r) {
    flying.push_back(rt.submit(exec, set(param, r)));
    for (std::uint64_t t = 0; t < tasks; ++t) expected += mix(r * 0x9e3779b97f4a7c15ull + t);
    if (flying.size() < 4) continue;
    flying.front().wait();
    flying.erase(flying.begin());
  }
  for (Run& run : flying) run.wait();
  return expected;
}

/// Eight threads submit graphs of many tasks; every task must run exactly once.
Samples soak(bool on_gpu, std::uint64_t wanted) {
  constexpr std::uint64_t kThreads = 8, kTasks = 10000;
  Options options = options_for(on_gpu);
  options.queue_capacity = 1u << 18;
  Runtime rt = start_runtime(options);
  auto sums = rt.allocate<std::uint64_t>(16 * rt.workers());
  const std::uint64_t runs = std::max<std::uint64_t>(wanted / kTasks / kThreads, 1);
  std::vector<std::uint64_t> expected(kThreads);
  std::vector<std::thread> threads;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      Graph graph;
      const auto param = graph.param<std::uint64_t>();
      for (std::uint64_t t = 0; t < kTasks; ++t) graph.add(Sign{param, t, sums.data()});
      expected[i] = submit_many(rt, rt.load(graph), param, i * runs, runs, kTasks);
    });
  for (std::thread& thread : threads) thread.join();
  const double us = microseconds_since(begin);
  std::uint64_t found = 0, wanted_sum = 0;
  for (const std::uint64_t sum : sums.read()) found += sum;
  for (const std::uint64_t sum : expected) wanted_sum += sum;
  if (found != wanted_sum) throw std::runtime_error("the soak's checksum is wrong: tasks were lost or ran twice");
  return {static_cast<double>(runs * kThreads * kTasks) / us};
}

}  // namespace

std::vector<Measurement> runtime_rows(const Effort& effort, bool on_gpu, std::uint64_t soak_tasks) {
  const auto take = [&](Samples (*measure)(bool, int), int full) {
    return [measure, on_gpu, samples = effort.samples(full)] { return measure(on_gpu, samples); };
  };
  return {
      {.name = "runtime.submit_to_result",
       .unit = "us",
       .peer = "peer.graph_one_node",
       .limit = "limit.flag_round_trip",
       .round = take(submit_to_result, 2000),
       .needs_gpu = false},
      {.name = "submit.phased_to_result",
       .unit = "us",
       .peer = "peer.launch_one_kernel",
       .limit = "limit.flag_round_trip",
       .round = take(all_workers_to_result<true>, 1000),
       .needs_gpu = false},
      {.name = "submit.compiled_to_result",
       .unit = "us",
       .peer = "peer.launch_one_kernel",
       .limit = "limit.flag_round_trip",
       .round = take(all_workers_to_result<false>, 1000),
       .needs_gpu = false},
      {.name = "submit.fresh_graph_1",
       .unit = "us",
       .peer = "peer.launch_one_kernel",
       .limit = "limit.flag_round_trip",
       .round = take(fresh_graph_1, 1000),
       .needs_gpu = false},
      {.name = "submit.fresh_graph_100k", .unit = "us", .round = take(fresh_graph_100k, 20), .needs_gpu = false},
      {.name = "runtime.empty_block_tasks",
       .unit = "M/s",
       .peer = "peer.graph_node_rate",
       .limit = "limit.atomic_rate",
       .round = take(empty_block_tasks, 30),
       .needs_gpu = false},
      {.name = "runtime.hop", .unit = "us", .limit = "limit.hop", .round = take(hop, 30), .needs_gpu = false},
      {.name = "runtime.phase_boundary",
       .unit = "us",
       .peer = "peer.grid_sync",
       .limit = "limit.hop",
       .round = take(phase_boundary, 20),
       .needs_gpu = false},
      {.name = "soak.tasks",
       .unit = "M/s",
       .peer = "peer.graph_node_rate",
       .round = [=] { return soak(on_gpu, soak_tasks); },
       .needs_gpu = false,
       .max_rounds = 1},
  };
}

}  // namespace bench
