#include "apps/llama/cli/commands.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/llama/checkpoint/safetensors.hpp"
#include "apps/llama/cli/terminal.hpp"
#include "apps/llama/tuned/options.hpp"

namespace llama {
namespace {

Request make_request(const Session& session, const TextRequest& text, std::size_t number) {
  Request request;
  for (const int id : session.tokenizer.encode(text.prompts[number])) request.prompt.push_back(static_cast<std::uint32_t>(id));
  const auto bos = session.generator->config().bos_token_id;
  if (request.prompt.empty() && bos) request.prompt.push_back(static_cast<std::uint32_t>(*bos));
  request.tokens = text.tokens ? text.tokens : session.tokens_behind(request.prompt.size(), 0);
  request.sampling = text.sampling;
  request.sampling.seed += number;
  request.stop_at_end = text.stop_at_end;
  return request;
}

/// What one text came to.
struct Written {
  Outcome outcome;
  std::string text;  // with the prompt in front
  std::vector<std::uint32_t> tokens;
};

std::vector<Request> make_requests(const Session& session, const TextRequest& text) {
  std::vector<Request> requests;
  for (std::size_t i = 0; i < text.prompts.size(); ++i) requests.push_back(make_request(session, text, i));
  session.generator->check(requests);
  return requests;
}

/// What stands above a text, if there are several.
std::string heading(std::size_t number, std::size_t count) {
  return count == 1 ? "" : "--- text " + std::to_string(number + 1) + " of " + std::to_string(count) + "\n";
}

/// Texts on their way to the terminal: the first as it comes, then each that has ended, in the order of their ends.
class ShownTexts {
 public:
  ShownTexts(const Session& session, const TextRequest& text, Terminal* terminal)
      : terminal_(terminal),
        decoders_(text.prompts.size(), Decoder(session.tokenizer)) {
    for (const std::string& prompt : text.prompts) all_.push_back({{}, prompt, {}});
  }

  void begin(std::uint32_t tokens) {
    if (terminal_) terminal_->begin(heading(0, all_.size()) + all_[0].text, tokens);
  }
  void add(std::size_t i, std::uint32_t token) {
    const std::string piece = decoders_[i].push(static_cast<int>(token));
    all_[i].tokens.push_back(token);
    all_[i].text += piece;
    if (terminal_ && i == 0) terminal_->add(piece);
  }
  void end(std::size_t i) {
    const std::string rest = decoders_[i].finish();
    all_[i].text += rest;
    if (!terminal_) return;
    if (i != 0) held_ += heading(i, all_.size()) + all_[i].text + "\n";
    else held_ = rest + "\n" + held_;
    first_ended_ |= i == 0;
    if (first_ended_) terminal_->end(held_), held_.clear();
  }
  std::vector<Written> take(const std::vector<Outcome>& outcomes) {
    for (std::size_t i = 0; i < all_.size(); ++i) all_[i].outcome = outcomes[i];
    return std::move(all_);
  }

 private:
  Terminal* terminal_;
  std::vector<Decoder> decoders_;
  std::vector<Written> all_;
  std::string held_;  // of texts that have ended before the first
  bool first_ended_ = false;
};

std::vector<Written> write_texts(Session& session, const TextRequest& text, Terminal* terminal) {
  const std::vector<Request> requests = make_requests(session, text);  // before anything is printed
  ShownTexts shown(session, text, terminal);
  shown.begin(requests[0].tokens);
  return shown.take(session.generator->generate(
      requests, [&](std::size_t i, std::uint32_t token) { shown.add(i, token); },
      [&](std::size_t i, const Outcome&) { shown.end(i); }));
}

/// Of all texts: their tokens, and the time until the last has ended.
Outcome sum_of(const std::vector<Written>& all) {
  Outcome sum = all.front().outcome;
  for (std::size_t i = 1; i < all.size(); ++i) {
    sum.tokens += all[i].outcome.tokens;
    sum.time = std::max(sum.time, all[i].outcome.time);
  }
  return sum;
}

double rate(const Outcome& outcome) { return outcome.tokens / std::max(outcome.time.count(), 1e-9); }

nlohmann::json json_of(const std::string& prompt, const Written& written, std::uint64_t seed) {
  return {
      {"prompt", prompt}, {"text", written.text}, {"tokens", written.tokens}, {"ended", written.outcome.ended}, {"seed", seed}};
}

/// Of one text its own object, of several one with all of them as "texts".
void print_json(const Session& session, const TextRequest& request, const std::vector<Written>& all) {
  const Sampling& how = request.sampling;
  const Outcome sum = sum_of(all);
  nlohmann::json texts;
  for (std::size_t i = 0; i < all.size(); ++i) texts.push_back(json_of(request.prompts[i], all[i], how.seed + i));
  nlohmann::json object = all.size() == 1 ? texts[0] : nlohmann::json{{"texts", texts}};
  object.update({{"seconds", sum.time.count()},
                 {"tokens_per_second", rate(sum)},
                 {"device", session.runtime.device()},
                 {"model", session.folder.string()},
                 {"temperature", how.temperature},
                 {"top_k", how.top_k},
                 {"top_p", how.top_p}});
  std::printf("%s\n", object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

/// A token for one line of a terminal: "\n" as two characters.
std::string quoted(const Tokenizer& tokenizer, int id) {
  return nlohmann::json(tokenizer.bytes_of(id)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void print_likeliest(const Tokenizer& tokenizer, const std::vector<float>& logits) {
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto five = order.begin() + std::min<std::ptrdiff_t>(5, std::ssize(order));
  std::partial_sort(order.begin(), five, order.end(),
                    [&](int a, int b) { return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)]; });
  for (auto id = order.begin(); id != five; ++id)
    std::printf("  %6d %8.4f %s", *id, static_cast<double>(logits[static_cast<std::size_t>(*id)]),
                quoted(tokenizer, *id).c_str());
  std::printf("\n");
}

/// Those of the file, behind those that were given.
void add_prompts_of_file(TextRequest& request) {
  std::ifstream file(request.prompt_file);
  if (!file) throw RequestError("--prompts " + request.prompt_file.string() + ": cannot be read: name a text file");
  const std::size_t before = request.prompts.size();
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) request.prompts.push_back(line);
  if (request.prompts.size() == before)
    throw RequestError("--prompts " + request.prompt_file.string() + ": has no prompt: each line that is not empty is one");
}

}  // namespace

void generate_text(const Setup& setup, TextRequest request) {
  if (request.places && !setup.tuned)
    throw RequestError("--places: the portable decode writes one text at a time: give --tuned, or leave --places out");
  if (!request.prompt_file.empty()) add_prompts_of_file(request);
  else if (request.prompts.empty()) request.prompts = {"ROMEO:\n"};
  const std::size_t count = request.prompts.size();
  const int places = request.places ? request.places : static_cast<int>(std::min<std::size_t>(count, kMostSequences));
  Session session(setup, places);
  Terminal terminal;
  const auto all = write_texts(session, request, request.json ? nullptr : &terminal);
  if (request.json) print_json(session, request, all);
  const Outcome sum = sum_of(all);
  const std::string texts = count == 1 ? "" : " of " + std::to_string(count) + " texts";
  std::fprintf(stderr, "%u tokens%s in %.3f s, %.0f tokens/s, %s\n", sum.tokens, texts.c_str(), sum.time.count(), rate(sum),
               session.runtime.device().c_str());
}

void print_logits(const Setup& setup, const std::vector<std::uint32_t>& ids) {
  Session session(setup);
  const auto all = session.generator->logits(ids);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::printf("%4zu %6u %s\n", i, ids[i], quoted(session.tokenizer, static_cast<int>(ids[i])).c_str());
    print_likeliest(session.tokenizer, all[i]);
  }
}

void print_info(const Setup& setup) {
  Session session(setup);
  const Config& config = session.generator->config();
  const SafeTensors weights = SafeTensors::open(session.folder);
  std::printf("model      %s\n", session.folder.c_str());
  std::printf("family     %s\n", describe(config.family));
  std::printf("layers     %d, hidden size %d, inner size %d\n", config.num_hidden_layers, config.hidden_size,
              config.intermediate_size);
  std::printf("heads      %d of size %d, %d for keys and values\n", config.num_attention_heads, config.head_dim,
              config.num_key_value_heads);
  std::printf("vocabulary %d tokens\n", config.vocab_size);
  std::printf("context    %d of %d positions\n", session.generator->context(), config.max_position_embeddings);
  std::printf("weights    %.1f MB in %zu tensors\n", static_cast<double>(weights.bytes()) / 1e6, weights.names().size());
  std::printf("device     %s\n", session.runtime.device().c_str());
  std::printf("step       %u tasks for %u workers\n", session.generator->tasks(), session.runtime.workers());
}

bool bench_decode(const Measured& what, const BenchRequest& request) {
  return run_bench(find_bench_model(what.shape, what.model), request);
}

bool soak_decode(const Measured& what, const SoakRequest& request, const Options& options) {
  const auto print = [](const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  };
  const SoakResult result = soak(find_bench_model(what.shape, what.model), request, options, print);
  print(describe(result));
  return result.passed;
}

}  // namespace llama
