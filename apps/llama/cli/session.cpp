#include "apps/llama/cli/session.hpp"

#include <algorithm>

#include "apps/llama/checkpoint/error.hpp"
#include "apps/llama/checkpoint/find_model.hpp"
#include "apps/llama/portable/generator.hpp"
#include "apps/llama/portable/start.hpp"
#include "apps/llama/tuned/generator.hpp"
#include "apps/llama/tuned/options.hpp"
#include "apps/llama/tuned/start.hpp"

namespace llama {
namespace {

constexpr std::uint32_t kDefaultTokens = 256;

Runtime start_for(const Setup& setup, const std::filesystem::path& folder, int texts) {
  Options options{.target = setup.target, .workers = setup.workers};
  const Config config = read_config(folder);
  const int context = choose_context(config, setup.context);
  if (setup.tuned) {
    options.tuning.operand_window = kBestWindow;
    return start_tuned_runtime(tuned_options(config, {.context = context, .texts = texts}, options));
  }
  options.scratch_bytes = std::max(options.scratch_bytes, portable_scratch_bytes(config, context));
  return start_portable_runtime(options);
}

std::unique_ptr<Generator> make_generator(Runtime& runtime, const Setup& setup, const std::filesystem::path& folder,
                                          int texts) {
  if (setup.tuned) return std::make_unique<TunedGenerator>(runtime, folder, setup.context, texts);
  return std::make_unique<PortableGenerator>(runtime, folder, setup.context);
}

}  // namespace

Session::Session(const Setup& setup, int texts)
    : folder(find_model(setup.model)),
      tokenizer(Tokenizer::load(folder)),
      runtime(start_for(setup, folder, texts)),
      generator(make_generator(runtime, setup, folder, texts)) {
  if (tokenizer.size() <= generator->config().vocab_size) return;
  throw ModelError(folder, "the tokenizer knows more tokens than config.json's vocab_size",
                   "use a tokenizer.json and a config.json that belong together");
}

std::uint32_t Session::tokens_behind(std::size_t prompt, std::uint32_t wanted) const {
  const auto room = static_cast<std::size_t>(generator->context()) + 1;
  const std::size_t left = room > prompt ? room - prompt : 1;
  return static_cast<std::uint32_t>(std::min<std::size_t>(wanted ? wanted : kDefaultTokens, left));
}

}  // namespace llama
