#include "apps/llama/portable/generator.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace llama {
namespace {

constexpr int kDefaultContext = 4096;

std::string counted(std::size_t n, const char* thing) {
  return std::to_string(n) + " " + thing + (n == 1 ? "" : "s");
}

void check_sampling(const Sampling& how) {
  if (!std::isfinite(how.temperature) || how.temperature < 0)
    throw RequestError("the temperature must be 0 (always the likeliest token) or more, and finite");
  if (!(how.top_p > 0 && how.top_p <= 1))
    throw RequestError("top-p is a probability: give a number above 0 and at most 1");
}

/// A run ends before its caller's buffers and callbacks go, also when an exception takes the caller away.
class EndOfRun {
 public:
  explicit EndOfRun(Run& run) : run_(run) {}
  ~EndOfRun() {
    if (run_.done()) return;
    run_.cancel();
    run_.status();
  }
  EndOfRun(const EndOfRun&) = delete;
  EndOfRun& operator=(const EndOfRun&) = delete;

 private:
  Run& run_;
};

/// As run.wait(), with the words for a failure of the model's own.
void wait(Run& run) {
  try {
    run.wait();
  } catch (const RunError& error) {
    if (error.status() != Status::task_failed || error.user_code() != kLogitsNotFinite) throw;
    throw RequestError(
        "the model computes numbers that are no numbers: its weights are damaged (download it again), or its activations "
        "are too large for the tuned decode (write with the portable one)");
  }
}

}  // namespace

int choose_context(const Config& config, int wanted) {
  const int most = config.max_position_embeddings;
  if (wanted > most)
    throw RequestError("a context of " + counted(static_cast<std::size_t>(wanted), "position") +
                       " is more than the model was made for: ask for at most " + std::to_string(most));
  return wanted > 0 ? wanted : std::min(most, kDefaultContext);
}

Generator::Generator(Runtime& runtime, const std::filesystem::path& folder, int context)
    : runtime_(runtime),
      config_(read_config(folder)),
      context_(choose_context(config_, context)),
      weights_(load_weights(runtime, config_, folder)),
      memory_(runtime, config_, context_) {
  const PortableGraph decode = build_portable_graph(runtime, config_, weights_, memory_);
  settings_ = decode.settings;
  executable_ = runtime.load(decode.graph);
}

Outcome Generator::generate(const Request& request, const OnToken& on_token) {
  check(request);
  const auto begin = std::chrono::steady_clock::now();
  const auto prompt_count = static_cast<std::uint32_t>(request.prompt.size());
  memory_.prompt.write(request.prompt);
  memory_.state.write({{0, request.prompt[0]}});
  const RunSettings settings{request.sampling, prompt_count, request.stop_at_end};
  Run run = runtime_.submit(executable_, repeat_until_stop(prompt_count - 1 + request.tokens),
                            set(settings_, settings));
  return collect_tokens(run, {request}, config_, begin,
                        [&](std::size_t, std::uint32_t token) { on_token(token); })
      .front();
}

std::vector<Outcome> collect_tokens(Run& run, const std::vector<Request>& requests, const Config& config,
                                    std::chrono::steady_clock::time_point begin,
                                    const OnTextToken& on_token) {
  const EndOfRun guard(run);
  const auto& ends = config.eos_token_ids;
  std::vector<Outcome> outcomes(requests.size());
  while (const auto written = run.next<WrittenToken>()) {
    Outcome& outcome = outcomes.at(written->text);
    ++outcome.tokens;
    outcome.ended = requests[written->text].stop_at_end &&
                    std::ranges::find(ends, static_cast<int>(written->token)) != ends.end();
    on_token(written->text, written->token);
  }
  wait(run);
  const auto end = std::chrono::steady_clock::now();
  for (Outcome& outcome : outcomes) {
    outcome.time = end - begin;
    outcome.steps = run.iterations();
  }
  return outcomes;
}

std::vector<std::vector<float>> Generator::logits(const std::vector<std::uint32_t>& ids) {
  check_ids(ids, config_, context_);
  std::vector<std::vector<float>> all;
  for (std::uint32_t position = 0; position < ids.size(); ++position) {
    memory_.state.write({{position, ids[position]}});
    Run run = runtime_.submit(executable_, set(settings_, RunSettings{{}, position + 1, 0}));
    while (run.next<WrittenToken>()) {
    }
    wait(run);
    all.push_back(memory_.logits.read());
  }
  return all;
}

void check_request(const Request& request, const Config& config, int context) {
  if (request.tokens == 0) throw RequestError("there are no tokens to write: ask for 1 or more");
  check_sampling(request.sampling);
  check_ids(request.prompt, config, context);
  // The last token written needs no position: nothing comes after it.
  const std::size_t room = static_cast<std::size_t>(context) + 1 - request.prompt.size();
  if (request.tokens > room)
    throw RequestError(counted(request.prompt.size(), "token") + " of prompt and " +
                       std::to_string(request.tokens) + " to write go beyond the context of " +
                       std::to_string(context) + ": write at most " + std::to_string(room));
}

void check_requests(const std::vector<Request>& requests, const Config& config, int context) {
  if (requests.empty()) throw RequestError("there is no text to write: give one prompt or more");
  for (std::size_t i = 0; i < requests.size(); ++i) {
    try {
      check_request(requests[i], config, context);
    } catch (const RequestError& error) {
      if (requests.size() == 1) throw;
      throw RequestError("text " + std::to_string(i + 1) + " of " + std::to_string(requests.size()) + ": " +
                         error.what());
    }
  }
}

void check_ids(const std::vector<std::uint32_t>& ids, const Config& config, int context) {
  if (ids.empty()) throw RequestError("the prompt has no tokens: give at least one character of text");
  for (const std::uint32_t id : ids) {
    if (id >= static_cast<std::uint32_t>(config.vocab_size))
      throw RequestError("token " + std::to_string(id) + " is not in the vocabulary: ids go from 0 to " +
                         std::to_string(config.vocab_size - 1));
  }
  if (ids.size() > static_cast<std::size_t>(context))
    throw RequestError("the prompt has " + counted(ids.size(), "token") + ", and the context holds " +
                       std::to_string(context) + ": shorten the prompt");
}

Options options_for(const std::filesystem::path& folder, int context, Options options) {
  const Config config = read_config(folder);
  // Attend: the scores of all positions, and ten rows of a head. Norm: the residual stream. Sample: a sum a
  // thread.
  const auto floats = std::max(choose_context(config, context) + 10 * config.head_dim, config.hidden_size);
  const auto bytes = static_cast<std::uint32_t>(floats) * 4 + 256;
  options.scratch_bytes = std::max(options.scratch_bytes, bytes);
  return options;
}

}  // namespace llama
