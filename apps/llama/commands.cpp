#include "apps/llama/commands.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <variant>

#include "apps/llama/bench/fast_options.hpp"
#include "apps/llama/fast/generate.hpp"
#include "apps/llama/fast/start.hpp"
#include "apps/llama/files/error.hpp"
#include "apps/llama/files/safetensors.hpp"
#include "apps/llama/files/tokenizer.hpp"
#include "apps/llama/find_model.hpp"
#include "apps/llama/start.hpp"
#include "apps/llama/terminal.hpp"

namespace flywheel::llama {
namespace {

constexpr std::uint32_t kDefaultTokens = 256;

Runtime start_for(const Setup& setup, const std::filesystem::path& folder) {
  const Options options{.target = setup.target, .workers = setup.workers};
  if (!setup.tuned) return start_runtime(options_for(folder, setup.context, options));
  const Config config = read_config(folder);
  return start_fast_runtime(fast_options(config, {.context = choose_context(config, setup.context)}, options));
}

/// The portable or the tuned decode, behind what both can do.
class Decode {
 public:
  Decode(Runtime& runtime, const Setup& setup, const std::filesystem::path& folder)
      : either_(setup.tuned ? Either(std::in_place_type<FastGenerator>, runtime, folder, setup.context)
                            : Either(std::in_place_type<Generator>, runtime, folder, setup.context)) {}

  Outcome generate(const Request& request, const OnToken& on_token) {
    return std::visit([&](auto& one) { return one.generate(request, on_token); }, either_);
  }
  std::vector<std::vector<float>> logits(const std::vector<std::uint32_t>& ids) {
    return std::visit([&](auto& one) { return one.logits(ids); }, either_);
  }
  void check(const Request& request) const { check_request(request, config(), context()); }
  const Config& config() const {
    return std::visit([](const auto& one) -> const Config& { return one.config(); }, either_);
  }
  int context() const {
    return std::visit([](const auto& one) { return one.context(); }, either_);
  }
  std::uint32_t tasks() const {
    return std::visit([](const auto& one) { return one.tasks(); }, either_);
  }

 private:
  using Either = std::variant<Generator, FastGenerator>;
  Either either_;
};

/// A loaded model with all it needs, in the order in which it may go.
struct Session {
  explicit Session(const Setup& setup)
      : folder(setup.model.empty() ? find_model() : setup.model),
        tokenizer(Tokenizer::load(folder)),
        runtime(start_for(setup, folder)),
        generator(runtime, setup, folder) {
    if (tokenizer.size() <= generator.config().vocab_size) return;
    throw ModelError(folder, "the tokenizer knows more tokens than config.json's vocab_size",
                     "use a tokenizer.json and a config.json that belong together");
  }

  std::filesystem::path folder;
  Tokenizer tokenizer;
  Runtime runtime;
  Decode generator;
};

Request make_request(const Session& session, const TextRequest& text) {
  Request request;
  for (const int id : session.tokenizer.encode(text.prompt))
    request.prompt.push_back(static_cast<std::uint32_t>(id));
  const auto bos = session.generator.config().bos_token_id;
  if (request.prompt.empty() && bos) request.prompt.push_back(static_cast<std::uint32_t>(*bos));
  request.tokens = text.tokens;
  if (request.tokens == 0) {
    const auto room = static_cast<std::size_t>(session.generator.context()) + 1;
    const std::size_t left = room > request.prompt.size() ? room - request.prompt.size() : 1;
    request.tokens = static_cast<std::uint32_t>(std::min<std::size_t>(kDefaultTokens, left));
  }
  request.sampling = text.sampling;
  request.stop_at_end = text.stop_at_end;
  return request;
}

/// What one text came to.
struct Written {
  Outcome outcome;
  std::string text;  // with the prompt in front
  std::vector<std::uint32_t> tokens;
};

Written write_text(Session& session, const TextRequest& text, Terminal* terminal) {
  const Request request = make_request(session, text);
  session.generator.check(request);  // before anything is printed
  Written written;
  Decoder decoder(session.tokenizer);
  const auto show = [&](const std::string& piece) {
    written.text += piece;
    if (terminal) terminal->add(piece);
  };
  written.text = text.prompt;
  if (terminal) terminal->begin(text.prompt, request.tokens);
  written.outcome = session.generator.generate(request, [&](std::uint32_t token) {
    written.tokens.push_back(token);
    show(decoder.push(static_cast<int>(token)));
  });
  const std::string rest = decoder.finish();
  written.text += rest;
  if (terminal) terminal->end(rest + "\n");
  return written;
}

double rate(const Outcome& outcome) { return outcome.tokens / std::max(outcome.time.count(), 1e-9); }

void print_json(const Session& session, const TextRequest& request, const Written& written) {
  const Sampling& how = request.sampling;
  const nlohmann::json object = {{"prompt", request.prompt},
                                 {"text", written.text},
                                 {"tokens", written.tokens},
                                 {"ended", written.outcome.ended},
                                 {"seconds", written.outcome.time.count()},
                                 {"tokens_per_second", rate(written.outcome)},
                                 {"device", session.runtime.device()},
                                 {"model", session.folder.string()},
                                 {"seed", how.seed},
                                 {"temperature", how.temperature},
                                 {"top_k", how.top_k},
                                 {"top_p", how.top_p}};
  std::printf("%s\n", object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

/// A token for one line of a terminal: "\n" as two characters.
std::string quoted(const Tokenizer& tokenizer, int id) {
  return nlohmann::json(tokenizer.bytes_of(id))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void print_likeliest(const Tokenizer& tokenizer, const std::vector<float>& logits) {
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto five = order.begin() + std::min<std::ptrdiff_t>(5, std::ssize(order));
  std::partial_sort(order.begin(), five, order.end(), [&](int a, int b) {
    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
  });
  for (auto id = order.begin(); id != five; ++id)
    std::printf("  %6d %8.4f %s", *id, static_cast<double>(logits[static_cast<std::size_t>(*id)]),
                quoted(tokenizer, *id).c_str());
  std::printf("\n");
}

}  // namespace

void generate_text(const Setup& setup, const TextRequest& request) {
  Session session(setup);
  Terminal terminal;
  const Written written = write_text(session, request, request.json ? nullptr : &terminal);
  if (request.json) print_json(session, request, written);
  std::fprintf(stderr, "%u tokens in %.3f s, %.0f tokens/s, %s\n", written.outcome.tokens,
               written.outcome.time.count(), rate(written.outcome), session.runtime.device().c_str());
}

void print_logits(const Setup& setup, const std::vector<std::uint32_t>& ids) {
  Session session(setup);
  const auto all = session.generator.logits(ids);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::printf("%4zu %6u %s\n", i, ids[i], quoted(session.tokenizer, static_cast<int>(ids[i])).c_str());
    print_likeliest(session.tokenizer, all[i]);
  }
}

void print_info(const Setup& setup) {
  Session session(setup);
  const Config& config = session.generator.config();
  const SafeTensors weights = SafeTensors::open(session.folder);
  std::printf("model      %s\n", session.folder.c_str());
  std::printf("family     %s\n", config.family == Family::kLlama ? "Llama" : "Qwen3");
  std::printf("layers     %d, hidden size %d, inner size %d\n", config.num_hidden_layers, config.hidden_size,
              config.intermediate_size);
  std::printf("heads      %d of size %d, %d for keys and values\n", config.num_attention_heads,
              config.head_dim, config.num_key_value_heads);
  std::printf("vocabulary %d tokens\n", config.vocab_size);
  std::printf("context    %d of %d positions\n", session.generator.context(), config.max_position_embeddings);
  std::printf("weights    %.1f MB in %zu tensors\n", static_cast<double>(weights.bytes()) / 1e6,
              weights.names().size());
  std::printf("device     %s\n", session.runtime.device().c_str());
  std::printf("step       %u tasks for %u workers\n", session.generator.tasks(), session.runtime.workers());
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

}  // namespace flywheel::llama
