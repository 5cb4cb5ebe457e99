#include "apps/llama/tuned/generator.hpp"

#include "apps/llama/tuned/crowd.hpp"
#include "apps/llama/tuned/fitness.hpp"

namespace llama {
TunedGenerator::TunedGenerator(Runtime& runtime, Config config, Weights weights, int context, int texts, PromptWay prompts)
    : Generator(runtime, std::move(config), context),
      weights_(std::move(weights)),
      streamed_(runtime, weights_),
      memory_(runtime, this->config(), context, sequences_for(texts), prompt_positions(this->config(), prompts)) {
  if (sequences() > kMostSequences) {
    check_tuned(this->config(), weights_, memory_);
    wide_.emplace(runtime, this->config(), weights_, memory_);
    decode_ = runtime.load(wide_->graph());
  } else {
    graph_ = build_tuned_graph(runtime, this->config(), streamed_, memory_);
    decode_ = runtime.load(graph_.decode, compiled);
    embed_ = runtime.load(graph_.embed);
  }
  if (prompts != PromptWay::token_by_token) reader_.emplace(runtime, this->config(), streamed_, memory_, prompts);
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
  embed();
}

/// Wide steps embed for themselves.
void TunedGenerator::embed() {
  if (!wide_) runtime().submit(embed_).wait();
}

void TunedGenerator::read(Crowd& crowd, const std::function<void(const WrittenToken&)>& add) {
  const bool others_wait = crowd.anybody_writes();
  const std::optional<std::size_t> place = crowd.begin_first();
  follow(reader_->submit(others_wait), add);
  if (place && crowd.end_first(*place)) embed();
}

std::vector<std::uint32_t> TunedGenerator::read_prompts(const std::vector<std::vector<std::uint32_t>>& prompts, Trace* trace) {
  check_count(prompts.size());
  for (const std::vector<std::uint32_t>& prompt : prompts) check_ids(prompt, config(), context());
  forget_lost_numbers();
  if (reader_) reader_->forget();
  std::vector<std::uint32_t> first(prompts.size());
  for (std::size_t text = 0; text < prompts.size(); ++text) {
    const std::vector<std::uint32_t>& prompt = prompts[text];
    memory_.prompt.write(prompt.data(), prompt.size(), text * static_cast<std::size_t>(memory_.context));
    if (reader_) first[text] = reader_->add(static_cast<std::uint32_t>(text), prompt.size(), false);
  }
  while (reader_ && reader_->has_any())
    watch(reader_->submit(false, trace), [&](Run& run) {
      run.wait();
      if (trace) *trace = run.trace();
    });
  return first;
}

void TunedGenerator::write_texts(const std::vector<Request>& requests, Tally& tally) {
  forget_lost_numbers();
  Crowd crowd(memory_, reader_ ? &*reader_ : nullptr, requests);
  const auto add = [&](const WrittenToken& written) {
    if (tally.add(crowd.text_in(written.text), written.token)) crowd.leave(written.text);
  };
  while (!crowd.over()) {
    if (crowd.seat()) embed();
    for (bool done = false; crowd.has_to_read(done); done = true) read(crowd, add);
    if (!crowd.anybody_there()) continue;
    const std::uint32_t made = follow(runtime().submit(decode_, repeat_until_stop(crowd.steps())), add);
    crowd.went(made);
    tally.add_steps(made);
  }
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

std::string TunedGenerator::describe() const { return runtime().describe(wide_ ? wide_->graph() : graph_.decode); }

}  // namespace llama
