#include "apps/llama/tuned/generator.hpp"

namespace llama {
namespace {

TunedText text_of(const Request& request) {
  const auto prompt_count = static_cast<std::uint32_t>(request.prompt.size());
  return {request.sampling, prompt_count, prompt_count + request.tokens, request.stop_at_end};
}

}  // namespace

TunedGenerator::TunedGenerator(Runtime& runtime, Config config, Weights weights, int context, int texts)
    : Generator(runtime, std::move(config), context),
      weights_(std::move(weights)),
      memory_(runtime, this->config(), context, sequences_for(texts)),
      graph_(build_tuned_graph(runtime, this->config(), weights_, memory_)),
      decode_(runtime.load(graph_.decode, compiled)),
      embed_(runtime.load(graph_.embed)) {}

TunedGenerator::TunedGenerator(Runtime& runtime, const std::filesystem::path& folder, int context, int texts)
    : TunedGenerator(runtime, read_config(folder), load_weights(runtime, read_config(folder), folder),
                     choose_context(read_config(folder), context), texts) {}

/// Sequences beyond those given have no text: they compute the first step of one, whose result is dropped.
void TunedGenerator::begin(const std::vector<StepState>& states, const std::vector<TunedText>& texts) {
  if (numbers_lost_) memory_.forget_values();
  numbers_lost_ = false;
  const auto count = static_cast<std::size_t>(sequences());
  std::vector<StepState> all_states(states);
  std::vector<TunedText> all_texts(texts);
  all_states.resize(count, StepState{0, 0});
  all_texts.resize(count, kNoText);
  memory_.states.write(all_states);
  memory_.texts.write(all_texts);
  memory_.writing.write({static_cast<std::uint32_t>(texts.size())});
  runtime().submit(embed_).wait();
}

/// All begin at position 0, so none that has ended is ever asked for a step beyond the context.
Run TunedGenerator::submit_texts(const std::vector<Request>& requests, std::uint32_t steps) {
  std::vector<StepState> states;
  std::vector<TunedText> texts;
  for (const Request& request : requests) {
    const std::size_t at = texts.size() * static_cast<std::size_t>(memory_.context);
    memory_.prompt.write(request.prompt.data(), request.prompt.size(), at);
    states.push_back({0, request.prompt[0]});
    texts.push_back(text_of(request));
  }
  begin(states, texts);
  return runtime().submit(decode_, repeat_until_stop(steps));
}

Run TunedGenerator::submit_step(const std::vector<StepState>& states) {
  begin(states, std::vector<TunedText>(states.size()));
  return runtime().submit(decode_);
}

std::chrono::duration<double> TunedGenerator::run(std::uint32_t start, std::uint32_t tokens, Trace* trace,
                                                  const Sampling& sampling) {
  const std::uint64_t end = std::uint64_t{start} + tokens;
  if (end > static_cast<std::uint64_t>(context()))
    throw RequestError(std::to_string(tokens) + " tokens from position " + std::to_string(start) +
                       " on go beyond the context of " + std::to_string(context()) + ": make it for " + std::to_string(end) +
                       " positions, or ask for fewer");
  const auto count = static_cast<std::size_t>(sequences());
  begin(std::vector<StepState>(count, StepState{start, 0}), std::vector<TunedText>(count, TunedText{.sampling = sampling}));
  const auto begin_time = std::chrono::steady_clock::now();
  std::chrono::duration<double> time{};
  watch(trace ? runtime().submit(decode_, repeat(tokens), traced) : runtime().submit(decode_, repeat(tokens)), [&](Run& run) {
    while (run.next<WrittenToken>()) {}
    run.wait();
    time = std::chrono::steady_clock::now() - begin_time;
    if (trace) *trace = run.trace();
  });
  return time;
}

std::string TunedGenerator::describe() const { return runtime().describe(graph_.decode); }

}  // namespace llama
