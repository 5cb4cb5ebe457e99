#include "apps/llama/tuned/generator.hpp"

#include <algorithm>

namespace llama {
namespace {

TunedText text_of(const Request& request) {
  const auto prompt_count = static_cast<std::uint32_t>(request.prompt.size());
  return {request.sampling, prompt_count, prompt_count + request.tokens, request.stop_at_end};
}

}  // namespace

TunedGenerator::PromptReader::PromptReader(Runtime& runtime, const Config& config, const Weights& weights,
                                           const TunedMemory& texts)
    : memory(runtime, config, texts, prompt_positions(config, PromptWay::chunks)),
      graph(build_prompt_graph(runtime, config, weights, texts, memory)),
      read(runtime.load(graph.decode, compiled)),
      begin(runtime.load(graph.embed)) {}

TunedGenerator::TunedGenerator(Runtime& runtime, Config config, Weights weights, int context, int texts, PromptWay prompts)
    : Generator(runtime, std::move(config), context),
      weights_(std::move(weights)),
      memory_(runtime, this->config(), context, sequences_for(texts), prompt_positions(this->config(), prompts)),
      graph_(build_tuned_graph(runtime, this->config(), weights_, memory_)),
      decode_(runtime.load(graph_.decode, compiled)),
      embed_(runtime.load(graph_.embed)) {
  if (prompts == PromptWay::chunks) prompt_reader_.emplace(runtime, this->config(), weights_, memory_);
}

TunedGenerator::TunedGenerator(Runtime& runtime, const std::filesystem::path& folder, int context, int texts)
    : TunedGenerator(runtime, read_config(folder), load_weights(runtime, read_config(folder), folder),
                     choose_context(read_config(folder), context), texts) {}

void TunedGenerator::forget_lost_numbers() {
  if (numbers_lost_) memory_.forget_values();
  numbers_lost_ = false;
}

/// Sequences beyond those given have no text: they compute the first step of one, whose result is dropped.
void TunedGenerator::begin(const std::vector<StepState>& states, const std::vector<TunedText>& texts) {
  forget_lost_numbers();
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

std::vector<std::uint32_t> TunedGenerator::read_prompts(const std::vector<std::vector<std::uint32_t>>& prompts) {
  std::vector<std::uint32_t> first(prompts.size());
  std::vector<PromptChunk> chunks;
  for (std::size_t text = 0; text < prompts.size(); ++text) {
    const std::vector<std::uint32_t>& prompt = prompts[text];
    memory_.prompt.write(prompt.data(), prompt.size(), text * static_cast<std::size_t>(memory_.context));
    if (prompt_reader_)
      first[text] = prompt_reader_->memory.add_chunks(chunks, static_cast<std::uint32_t>(text), prompt.size() - 1);
  }
  if (chunks.empty()) return first;
  const auto passes = static_cast<std::uint32_t>(chunks.size());
  chunks.push_back(chunks.back());
  forget_lost_numbers();
  prompt_reader_->memory.chunks.write(chunks.data(), chunks.size(), 0);
  runtime().submit(prompt_reader_->begin).wait();
  watch(runtime().submit(prompt_reader_->read, repeat(passes)), [](Run& run) { run.wait(); });
  return first;
}

Run TunedGenerator::submit_texts(const std::vector<Request>& requests) {
  std::vector<std::vector<std::uint32_t>> prompts;
  for (const Request& request : requests) prompts.push_back(request.prompt);
  const std::vector<std::uint32_t> first = read_prompts(prompts);
  std::vector<StepState> states;
  std::vector<TunedText> texts;
  std::uint32_t steps = 0;
  for (const Request& request : requests) {
    const std::size_t text = texts.size();
    states.push_back({first[text], request.prompt[first[text]]});
    texts.push_back(text_of(request));
    steps = std::max(steps, steps_from(first[text], request));
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
