// A runtime of small tasks with words that tests and tasks share.
#pragma once

#include "support/expect.hpp"
#include "support/small_tasks.hpp"

namespace flywheel::testing {

inline Options on_cpu(std::uint32_t workers = 2) {
  Options options;
  options.target = Target::cpu;
  options.workers = workers;
  return options;
}

inline Options on_gpu(const std::string& log_level = Options{}.log_level) {
  Options options;
  options.target = Target::gpu;
  options.log_level = log_level;
  return options;
}

/// `words[i]` are zero at first. The host writes and reads them with copies that go on while the kernel is
/// resident.
struct Bench {
  explicit Bench(const Options& options, std::size_t count = 64)
      : runtime(small_runtime(options)),
        words(runtime.allocate<std::uint32_t>(count)) {}

  std::uint32_t* at(std::size_t i) const { return words.data() + i; }
  /// CPU workers look at the same memory: there the host takes part as one more thread.
  std::uint32_t get(std::size_t i) {
    std::uint32_t value = 0;
    if (!runtime.on_gpu()) return peek_at(*at(i));
    words.read(&value, 1, i);
    return value;
  }
  void put(std::size_t i, std::uint32_t value) {
    if (!runtime.on_gpu()) return put_in(*at(i), value);
    words.write(&value, 1, i);
  }

  /// One task that counts in word i.
  Executable counter(std::size_t i) {
    Graph graph;
    graph.add(Count{at(i)});
    return runtime.load(graph);
  }
  /// A run that stands at a gate: entered in word i, open in word i + 1. Waits until its task has begun.
  Run hold(std::size_t i, Executable& executable) {
    Graph graph;
    graph.add(Gate{at(i), at(i + 1)});
    executable = runtime.load(graph);
    const std::uint32_t before = get(i);
    Run run = runtime.submit(executable);
    REQUIRE(eventually([&] { return get(i) > before; }));
    return run;
  }

  Runtime runtime;
  Buffer<std::uint32_t> words;
};

}  // namespace flywheel::testing
