#include "apps/llama/bench/timed_decode.hpp"

#include "apps/llama/bench/random_weights.hpp"
#include "apps/llama/request.hpp"

namespace flywheel::llama {

TimedDecode::TimedDecode(Runtime& runtime, Config config, Weights weights, int context, int sequences)
    : runtime_(runtime), config_(std::move(config)), weights_(std::move(weights)),
      memory_(runtime, config_, context, sequences), graph_(build_fast_graph(runtime, config_, weights_, memory_)),
      decode_(runtime.load(graph_.decode, compiled)), embed_(runtime.load(graph_.embed)) {}

void TimedDecode::fill_cache(std::uint64_t seed) { llama::fill_cache(runtime_, memory_, seed); }

std::chrono::duration<double> TimedDecode::run(std::uint32_t start, std::uint32_t tokens, Trace* trace) {
  if (start + tokens > static_cast<std::uint32_t>(context()))
    throw RequestError("positions " + std::to_string(start) + " to " + std::to_string(start + tokens - 1) +
                       " go beyond the context of " + std::to_string(context()));
  memory_.states.write(std::vector<StepState>(static_cast<std::size_t>(sequences()), StepState{start, 0}));
  runtime_.submit(embed_).wait();  // also has the kernel launched before the clock starts
  const auto settings = set(graph_.settings, RunSettings{{}, 1, 0});
  const auto begin = std::chrono::steady_clock::now();
  Run run = trace ? runtime_.submit(decode_, repeat(tokens), settings, traced)
                  : runtime_.submit(decode_, repeat(tokens), settings);
  while (run.next<std::uint64_t>()) {
  }
  run.wait();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  if (trace) *trace = run.trace();
  return time;
}

}  // namespace flywheel::llama
