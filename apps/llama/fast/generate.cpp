#include "apps/llama/fast/generate.hpp"

#include <algorithm>

#include "apps/llama/generate.hpp"

namespace flywheel::llama {

FastGenerator::FastGenerator(Runtime& runtime, Config config, Weights weights, int context, int sequences)
    : runtime_(runtime), config_(std::move(config)), weights_(std::move(weights)),
      memory_(runtime, config_, context, sequences), graph_(build_fast_graph(runtime, config_, weights_, memory_)),
      decode_(runtime.load(graph_.decode, compiled)), embed_(runtime.load(graph_.embed)) {}

FastGenerator::FastGenerator(Runtime& runtime, const std::filesystem::path& folder, int context)
    : FastGenerator(runtime, read_config(folder), load_weights(runtime, read_config(folder), folder),
                    choose_context(read_config(folder), context)) {}

void FastGenerator::begin(const std::vector<StepState>& states) {
  memory_.states.write(states);
  runtime_.submit(embed_).wait();
}

Outcome FastGenerator::generate(const Request& request, const OnToken& on_token) {
  check_request(request, config_, context());
  if (sequences() != 1) throw RequestError("this decode was made for several texts at once: ask for one of one text");
  const auto begin_time = std::chrono::steady_clock::now();
  const auto prompt_count = static_cast<std::uint32_t>(request.prompt.size());
  memory_.prompt.write(request.prompt);
  begin({{0, request.prompt[0]}});
  Run run = runtime_.submit(decode_, repeat_until_stop(prompt_count - 1 + request.tokens),
                            set(graph_.settings, RunSettings{request.sampling, prompt_count, request.stop_at_end}));
  return collect_tokens(run, request, config_, begin_time, on_token);
}

std::vector<std::vector<float>> FastGenerator::logits(const std::vector<std::uint32_t>& ids) {
  check_ids(ids, config_, context());
  std::vector<std::vector<float>> all;
  for (std::uint32_t position = 0; position < ids.size(); ++position) {
    begin({{position, ids[position]}});
    Run run = runtime_.submit(decode_, set(graph_.settings, RunSettings{{}, position + 1, 0}));
    run.wait();
    all.push_back(last_logits());
  }
  return all;
}

std::chrono::duration<double> FastGenerator::run(std::uint32_t start, std::uint32_t tokens, Trace* trace) {
  if (start + tokens > static_cast<std::uint32_t>(context()))
    throw RequestError("positions " + std::to_string(start) + " to " + std::to_string(start + tokens - 1) +
                       " go beyond the context of " + std::to_string(context()));
  begin(std::vector<StepState>(static_cast<std::size_t>(sequences()), StepState{start, 0}));
  const auto settings = set(graph_.settings, RunSettings{{}, 1, 0});
  const auto begin_time = std::chrono::steady_clock::now();
  Run run = trace ? runtime_.submit(decode_, repeat(tokens), settings, traced)
                  : runtime_.submit(decode_, repeat(tokens), settings);
  while (run.next<std::uint64_t>()) {
  }
  run.wait();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin_time;
  if (trace) *trace = run.trace();
  return time;
}

std::string FastGenerator::describe() const { return runtime_.describe(graph_.decode); }

}  // namespace flywheel::llama
