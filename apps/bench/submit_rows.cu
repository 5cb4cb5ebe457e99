#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <array>
#include <atomic>
#include <stdexcept>
#include <thread>

#include "apps/bench/runtime_rows.hpp"

namespace bench {

using namespace flywheel;
using measure::Effort;
using measure::Measurement;
using measure::microseconds_since;
using measure::Samples;
using measure::time_each;

namespace {

FLYWHEEL_TASK std::uint64_t stir(std::uint64_t x) { return (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ull + 1; }

/// 96 bytes in, 64 bytes out.
struct Large {
  struct Result {
    std::uint64_t words[8];
  };
  std::uint64_t words[12];
  template <class Block>
  FLYWHEEL_TASK Result operator()(Block&) const {
    Result result;
    for (int i = 0; i < 8; ++i) result.words[i] = stir(words[i] + words[(i + 4) % 12]);
    return result;
  }
};

/// 8 bytes in, 8 bytes out.
struct Small {
  std::uint64_t x;
  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block&) const {
    return stir(x);
  }
};

/// The same of a loaded graph's parameter.
struct FromParam {
  Param<std::uint64_t> x;
  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block& block) const {
    return stir(block.param(x));
  }
};

/// A step of a chain: finds what the one before wrote.
struct Link {
  std::uint64_t* word;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) *word = stir(*word);
  }
};

Runtime start_runtime(bool on_gpu, flywheel::Options options = {}) {
  options.target = on_gpu ? Target::gpu : Target::cpu;
  options.mode = Mode::resident;
  options.heap_bytes = std::size_t{16} << 20;
  return start<Large, Small, FromParam, Link>(options);
}

void require(bool right) {
  if (!right) throw std::runtime_error("a task's result is wrong");
}

Samples task_to_result(bool on_gpu, int samples) {
  Runtime rt = start_runtime(on_gpu);
  Large task{};
  return time_each(200, samples, [&] {
    for (std::uint64_t& word : task.words) word = stir(word + 3);
    const Large::Result result = rt.submit(task).get();
    for (int i = 0; i < 8; ++i) require(result.words[i] == stir(task.words[i] + task.words[(i + 4) % 12]));
  });
}

Samples loaded_with_param(bool on_gpu, int samples) {
  Runtime rt = start_runtime(on_gpu);
  Graph graph;
  const auto x = graph.param<std::uint64_t>();
  const auto task = graph.add(FromParam{x});
  const Executable exec = rt.load(graph);
  std::uint64_t value = 1;
  return time_each(200, samples, [&] {
    value = stir(value);
    require(rt.submit(exec, set(x, value)).get(task) == stir(value));
  });
}

/// A chain of 1,000 runs, each after the last, all submitted ahead: the time of one.
Samples run_chain(bool on_gpu, int samples) {
  constexpr std::uint32_t kRuns = 1000;
  flywheel::Options options;
  options.max_runs = options.overlap = 1100;
  Runtime rt = start_runtime(on_gpu, options);
  Buffer<std::uint64_t> word = rt.allocate<std::uint64_t>(1);
  Graph graph;
  graph.add(Link{word.data()});
  const Executable exec = rt.load(graph);
  std::uint64_t wanted = 0;
  Samples all = time_each(2, samples, [&] {
    Run last = rt.submit(exec);
    for (std::uint32_t i = 1; i < kRuns; ++i) last = rt.submit(exec, after(last));
    last.wait();
    for (std::uint32_t i = 0; i < kRuns; ++i) wanted = stir(wanted);
  });
  require(word.read().front() == wanted);
  for (double& us : all) us /= kRuns;
  return all;
}

/// Calls work(thread) on that many threads; millions a second, if all of them do `each`.
template <class Work>
Samples rate_of(std::uint32_t threads, std::uint64_t each, Work&& work) {
  std::vector<std::thread> all;
  std::atomic<bool> wrong{false};
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint32_t i = 0; i < threads; ++i)
    all.emplace_back([&, i] {
      if (!work(i)) wrong = true;
    });
  for (std::thread& thread : all) thread.join();
  const double us = microseconds_since(begin);
  require(!wrong);
  return {static_cast<double>(threads * each) / us};
}

/// Submits `count` tasks, at most `flying` at once, and checks each result.
bool submit_singly(Runtime& rt, std::uint64_t seed, std::uint64_t count, std::size_t flying) {
  struct Open {
    Future<std::uint64_t> future;
    std::uint64_t x;
  };
  std::vector<Open> open(flying);
  bool right = true;
  for (std::uint64_t i = 0; i < count + flying; ++i) {
    Open& oldest = open[i % flying];
    if (i >= flying) right &= oldest.future.get() == stir(oldest.x);
    if (i >= count) continue;
    oldest.x = seed = stir(seed);
    oldest.future = rt.submit(Small{oldest.x});
  }
  return right;
}

/// Like submit_singly(), with tasks of both sizes at random, one in ten of them of high priority.
bool submit_drawn(Runtime& rt, std::uint64_t seed, std::uint64_t count, std::size_t flying) {
  struct Open {
    Future<std::uint64_t> small;
    Future<Large::Result> large;
    std::uint64_t x = 0;
  };
  std::vector<Open> open(flying);
  bool right = true;
  for (std::uint64_t i = 0; i < count + flying; ++i) {
    Open& oldest = open[i % flying];
    const bool was_large = oldest.x >> 60 & 1;
    if (i >= flying && was_large) right &= oldest.large.get().words[7] == stir(oldest.x + oldest.x);
    else if (i >= flying) right &= oldest.small.get() == stir(oldest.x);
    if (i >= count) continue;
    oldest.x = seed = stir(seed + i);
    const Priority priority = seed % 10 == 0 ? Priority::high : Priority::normal;
    if (seed >> 60 & 1) {
      Large large;
      for (std::uint64_t& word : large.words) word = seed;
      oldest.large = rt.submit(large, priority);
    } else {
      oldest.small = rt.submit(Small{seed}, priority);
    }
  }
  return right;
}

/// Submits batches of 1,000 tasks, at most four at once, and checks each result.
bool submit_batches(Runtime& rt, std::uint64_t seed, std::uint64_t count) {
  constexpr std::size_t kTasks = 1000, kFlying = 4;
  std::array<std::vector<Small>, kFlying> tasks;
  std::array<Batch<std::uint64_t>, kFlying> batches;
  for (auto& of : tasks) of.resize(kTasks);
  bool right = true;
  for (std::uint64_t i = 0; i < count + kFlying; ++i) {
    const std::size_t at = i % kFlying;
    if (i >= kFlying)
      batches[at].for_each([&](std::size_t task, std::uint64_t value) { right &= value == stir(tasks[at][task].x); });
    if (i >= count) continue;
    for (Small& task : tasks[at]) task.x = seed = stir(seed);
    batches[at] = rt.submit(tasks[at]);
  }
  return right;
}

/// `submit`: of the functions above.
template <class Submit>
Samples rate(bool on_gpu, int samples, std::uint32_t threads, std::size_t flying, Submit&& submit) {
  const std::uint64_t each = on_gpu ? 100'000 : 2'000;
  Runtime rt = start_runtime(on_gpu);
  Samples all;
  for (int i = 0; i < samples; ++i)
    all.push_back(rate_of(threads, each, [&](std::uint32_t self) { return submit(rt, self, each, flying); }).front());
  return all;
}
Samples rate_1_thread(bool on_gpu, int samples) { return rate(on_gpu, samples, 1, 64, submit_singly); }
Samples rate_8_threads(bool on_gpu, int samples) { return rate(on_gpu, samples, 8, 32, submit_singly); }
Samples rate_drawn(bool on_gpu, int samples) { return rate(on_gpu, samples, 8, 32, submit_drawn); }

Samples fresh_batches(bool on_gpu, int samples) {
  const std::uint64_t each = on_gpu ? 2'000 : 5;
  Runtime rt = start_runtime(on_gpu);
  Samples all;
  for (int i = 0; i < samples; ++i)
    all.push_back(1000 * rate_of(4, each, [&](std::uint32_t self) { return submit_batches(rt, self, each); }).front());
  return all;
}

}  // namespace

std::vector<Measurement> submit_rows(const Effort& effort, bool on_gpu) {
  const auto take = [&](Samples (*measure)(bool, int), int full) {
    return [measure, on_gpu, samples = effort.samples(full)] { return measure(on_gpu, samples); };
  };
  return {
      {.name = "submit.task_to_result",
       .unit = "us",
       .peer = "peer.launch_one_kernel",
       .limit = "limit.flag_round_trip",
       .round = take(task_to_result, 2000),
       .needs_gpu = false},
      {.name = "submit.loaded_with_param",
       .unit = "us",
       .peer = "peer.launch_one_kernel",
       .limit = "limit.flag_round_trip",
       .round = take(loaded_with_param, 2000),
       .needs_gpu = false},
      {.name = "submit.run_chain",
       .unit = "us",
       .peer = "peer.launch_one_kernel",
       .limit = "limit.hop",
       .round = take(run_chain, 20),
       .needs_gpu = false},
      {.name = "submit.rate_1_thread",
       .unit = "M/s",
       .peer = "peer.stream_launch_rate",
       .round = take(rate_1_thread, 5),
       .needs_gpu = false},
      {.name = "submit.rate_8_threads",
       .unit = "M/s",
       .peer = "peer.stream_launch_rate",
       .round = take(rate_8_threads, 5),
       .needs_gpu = false},
      {.name = "submit.rate_drawn",
       .unit = "M/s",
       .peer = "peer.stream_launch_rate",
       .round = take(rate_drawn, 5),
       .needs_gpu = false},
      {.name = "submit.fresh_batches",
       .unit = "M/s",
       .peer = "peer.stream_launch_rate",
       .round = take(fresh_batches, 5),
       .needs_gpu = false},
  };
}

}  // namespace bench
