#include "apps/llama/tuned/generator.hpp"

#include <algorithm>

#include "apps/llama/portable/generator.hpp"

namespace llama {

namespace {

/// Passes until the last text has all its tokens.
std::uint32_t steps_for(const std::vector<Request>& requests) {
  std::uint32_t most = 0;
  for (const Request& request : requests)
    most = std::max(most, static_cast<std::uint32_t>(request.prompt.size()) - 1 + request.tokens);
  return most;
}

TunedText text_of(const Request& request) {
  const auto prompt_count = static_cast<std::uint32_t>(request.prompt.size());
  return {request.sampling, prompt_count, prompt_count + request.tokens, request.stop_at_end};
}

}  // namespace

TunedGenerator::TunedGenerator(Runtime& runtime, Config config, Weights weights, int context, int texts)
    : runtime_(runtime),
      config_(std::move(config)),
      context_(context),
      weights_(std::move(weights)),
      memory_(runtime, config_, context, sequences_for(texts)),
      graph_(build_tuned_graph(runtime, config_, weights_, memory_)),
      decode_(runtime.load(graph_.decode, compiled)),
      embed_(runtime.load(graph_.embed)) {}

TunedGenerator::TunedGenerator(Runtime& runtime, const std::filesystem::path& folder, int context, int texts)
    : TunedGenerator(runtime, read_config(folder), load_weights(runtime, read_config(folder), folder),
                    choose_context(read_config(folder), context), texts) {}

void TunedGenerator::check_count(std::size_t texts) const {
  if (texts > static_cast<std::size_t>(sequences()))
    throw RequestError("this decode writes " + std::to_string(sequences()) + " texts at once, not " +
                       std::to_string(texts) + ": make it for more, or write the others after them");
}

void TunedGenerator::check(const std::vector<Request>& requests) const {
  check_count(requests.size());
  check_requests(requests, config_, context());
}

/// What a step that failed for its numbers leaves among the values may be none: attention weighs whole blocks of positions,
/// those to come with 0, and makes no number of such a product. So they are forgotten before the next text begins.
template <class Use>
auto TunedGenerator::watch(Run run, Use&& use) {
  try {
    return use(run);
  } catch (...) {
    numbers_lost_ |= run.status() == Status::task_failed;
    throw;
  }
}

/// Sequences beyond those given have no text: they compute the first step of one, of which nobody hears.
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
  runtime_.submit(embed_).wait();
}

/// All begin at position 0, so none that has ended is ever asked for a step beyond the context.
void TunedGenerator::begin(const std::vector<Request>& requests) {
  std::vector<StepState> states;
  std::vector<TunedText> texts;
  for (const Request& request : requests) {
    const std::size_t at = texts.size() * static_cast<std::size_t>(memory_.context);
    memory_.prompt.write(request.prompt.data(), request.prompt.size(), at);
    states.push_back({0, request.prompt[0]});
    texts.push_back(text_of(request));
  }
  begin(states, texts);
}

std::vector<Outcome> TunedGenerator::generate(const std::vector<Request>& requests, const OnTextToken& on_token) {
  check(requests);
  const auto begin_time = std::chrono::steady_clock::now();
  begin(requests);
  return watch(runtime_.submit(decode_, repeat_until_stop(steps_for(requests))),
               [&](Run& run) { return collect_tokens(run, requests, config_, begin_time, on_token); });
}

Outcome TunedGenerator::generate(const Request& request, const OnToken& on_token) {
  return generate(std::vector{request}, [&](std::size_t, std::uint32_t token) { on_token(token); }).front();
}

std::vector<std::vector<std::vector<float>>> TunedGenerator::logits_of(
    const std::vector<std::vector<std::uint32_t>>& texts, const std::function<void()>& after_step) {
  check_count(texts.size());
  std::size_t longest = 0;
  for (const std::vector<std::uint32_t>& ids : texts) {
    check_ids(ids, config_, context());
    longest = std::max(longest, ids.size());
  }
  std::vector<std::vector<std::vector<float>>> all(texts.size());
  for (std::size_t position = 0; position < longest; ++position) {
    step_each(texts, position, all);
    if (after_step) after_step();
  }
  return all;
}

/// A text that has no id there takes its last step once more.
void TunedGenerator::step_each(const std::vector<std::vector<std::uint32_t>>& texts, std::size_t position,
                              std::vector<std::vector<std::vector<float>>>& all) {
  std::vector<StepState> states;
  for (const std::vector<std::uint32_t>& ids : texts) {
    const std::size_t at = std::min(position, ids.size() - 1);
    states.push_back({static_cast<std::uint32_t>(at), ids[at]});
  }
  begin(states, std::vector<TunedText>(texts.size()));
  watch(runtime_.submit(decode_), [](Run& run) { run.wait(); });
  const std::vector<float> logits = last_logits();
  for (std::size_t text = 0; text < texts.size(); ++text) {
    const auto first = logits.begin() + static_cast<std::ptrdiff_t>(text) * config_.vocab_size;
    if (position < texts[text].size()) all[text].emplace_back(first, first + config_.vocab_size);
  }
}

std::chrono::duration<double> TunedGenerator::run(std::uint32_t start, std::uint32_t tokens, Trace* trace,
                                                 const Sampling& sampling) {
  const std::uint64_t end = std::uint64_t{start} + tokens;
  if (end > static_cast<std::uint64_t>(context()))
    throw RequestError(std::to_string(tokens) + " tokens from position " + std::to_string(start) +
                       " on go beyond the context of " + std::to_string(context()) + ": make it for " +
                       std::to_string(end) + " positions, or ask for fewer");
  const auto count = static_cast<std::size_t>(sequences());
  begin(std::vector<StepState>(count, StepState{start, 0}), std::vector<TunedText>(count, TunedText{.sampling = sampling}));
  const auto begin_time = std::chrono::steady_clock::now();
  return watch(trace ? runtime_.submit(decode_, repeat(tokens), traced) : runtime_.submit(decode_, repeat(tokens)), [&](Run& run) {
    while (run.next<WrittenToken>()) {
    }
    run.wait();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin_time;
    if (trace) *trace = run.trace();
    return time;
  });
}

std::string TunedGenerator::describe() const { return runtime_.describe(graph_.decode); }

}  // namespace llama
