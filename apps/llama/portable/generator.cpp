#include "apps/llama/portable/generator.hpp"

namespace llama {

PortableGenerator::PortableGenerator(Runtime& runtime, Config config, Weights weights, int context)
    : Generator(runtime, std::move(config), context),
      weights_(std::move(weights)),
      memory_(runtime, this->config(), context),
      graph_(build_portable_graph(runtime, this->config(), weights_, memory_)),
      executable_(runtime.load(graph_.graph)) {}

PortableGenerator::PortableGenerator(Runtime& runtime, const std::filesystem::path& folder, int context)
    : PortableGenerator(runtime, read_config(folder), load_weights(runtime, read_config(folder), folder),
                        choose_context(read_config(folder), context)) {}

void PortableGenerator::write_texts(const std::vector<Request>& requests, Tally& tally) {
  for (std::size_t text = 0; text < requests.size(); ++text)
    tally.add_steps(follow(submit_text(requests[text]), [&](const WrittenToken& written) { tally.add(text, written.token); }));
}

Run PortableGenerator::submit_text(const Request& request) {
  memory_.prompt.write(request.prompt);
  memory_.state.write({{0, request.prompt[0]}});
  const RunSettings settings{request.sampling, static_cast<std::uint32_t>(request.prompt.size()), request.stop_at_end};
  return runtime().submit(executable_, repeat_until_stop(steps_from(0, request)), set(graph_.settings, settings));
}

/// A text that has been read as far as that, and no further.
Run PortableGenerator::submit_step(const std::vector<StepState>& states) {
  memory_.state.write(states);
  return runtime().submit(executable_, set(graph_.settings, RunSettings{{}, states.front().position + 1, 0}));
}

}  // namespace llama
