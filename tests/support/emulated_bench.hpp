// A runtime of small tasks on an emulated GPU, with words that tests and tasks share.
#pragma once

#include "support/emulated_engine.hpp"
#include "support/expect.hpp"
#include "support/small_tasks.hpp"

namespace flywheel::testing {

inline Options emulated_options(std::uint32_t workers = 3) {
  Options options;
  options.workers = workers;
  options.log_level = "error";                       // says why a launch was lost
  options.start_timeout = std::chrono::seconds(60);  // of processors that others keep busy
  return options;
}

struct EmulatedBench {
  explicit EmulatedBench(const Options& options = emulated_options(), std::size_t count = 4096)
      : runtime(start_emulated<Count, Square, Read, Load, Fail, Gate, EmitRange, Log, Fibonacci, StopAt, Rounds, MeetUnequally,
                               Reduce, TrySpawn, Meet>(options)),
        words(runtime.allocate<std::uint32_t>(count)) {}

  std::uint32_t* at(std::size_t i) const { return words.data() + i; }
  std::uint32_t get(std::size_t i) const {
    std::uint32_t value = 0;
    words.read(&value, 1, i);
    return value;
  }
  void put(std::size_t i, std::uint32_t value) { words.write(&value, 1, i); }

  Executable dynamic(const Graph& graph) { return runtime.load(graph); }
  Executable load(const Graph& graph) { return runtime.load(graph, compiled); }

  Runtime runtime;
  Buffer<std::uint32_t> words;
};

}  // namespace flywheel::testing
