#include "apps/llama/tuned/prompt_reader.hpp"

#include <algorithm>

namespace llama {
namespace {

/// Passes over chunks that, with the step behind them, take as long as the products of few rows: 0.67 ms each, see tuning.md.
constexpr std::uint32_t kPassesAsProducts = 2;

}  // namespace

PromptReader::PromptReader(Runtime& runtime, const Config& config, const StreamedWeights& weights, const TunedMemory& texts,
                           PromptWay way)
    : runtime_(runtime),
      memory_(runtime, config, texts, prompt_positions(config, way)),
      graph_(build_prompt_graph(runtime, config, weights, texts, memory_)),
      read_(runtime.load(graph_.decode, compiled)),
      begin_(runtime.load(graph_.embed)) {
  const bool products = way == PromptWay::products || (way == PromptWay::best && runtime.on_gpu());
  if (products && Prefill::knows(config)) prefill_.emplace(runtime, config, weights.plain(), texts);
  chooses_ = prefill_ && Prefill::chooses(config);
  fewest_ = way == PromptWay::products ? 1 : kPassesAsProducts * static_cast<std::uint32_t>(memory_.sequences) + 1;
}

std::uint32_t PromptReader::add(std::uint32_t text, std::size_t tokens, bool writes) {
  const auto last = static_cast<std::uint32_t>(tokens - 1);
  if (!prefill_ || last < fewest_) return memory_.add_chunks(queue_, text, tokens - 1);
  writes = writes && chooses_;
  long_.push_back({text, 0, writes ? last + 1 : last, writes});
  return last;
}

bool PromptReader::has(std::uint32_t text) const {
  return std::ranges::find(queue_, text, &PromptChunk::text) != queue_.end() ||
         std::ranges::find(long_, text, &LongPrompt::text) != long_.end();
}

Run PromptReader::submit(bool others_wait, bool is_traced) {
  if (!queue_.empty()) return submit_passes(others_wait ? std::min(kPassesBetween, queue_.size()) : queue_.size(), is_traced);
  LongPrompt& one = long_.front();
  const std::uint32_t end = next_end(one, others_wait);
  const std::size_t tokens = one.end + (one.writes ? 0 : 1);
  Run run = prefill_->submit(one.text, one.first, end, Prefill::is_few(tokens), one.writes && end == one.end, is_traced);
  one.first = end;
  if (one.first == one.end) long_.erase(long_.begin());
  return run;
}

std::uint32_t PromptReader::next_end(const LongPrompt& of, bool others_wait) {
  return of.first + Prefill::next_count(of.end - of.first, others_wait);
}

std::optional<std::uint32_t> PromptReader::next_to_write(bool others_wait) const {
  if (!queue_.empty() || long_.empty()) return {};
  const LongPrompt& one = long_.front();
  if (!one.writes || next_end(one, others_wait) != one.end) return {};
  return one.text;
}

/// Each pass leaves the input of the chunk behind its own. Where there is none, what it leaves is not used.
Run PromptReader::submit_passes(std::size_t passes, bool is_traced) {
  const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(passes);
  std::vector<PromptChunk> chunks(queue_.begin(), end);
  chunks.push_back(end == queue_.end() ? chunks.back() : *end);
  memory_.chunks.write(chunks.data(), chunks.size(), 0);
  if (!begun_) runtime_.submit(begin_).wait();
  queue_.erase(queue_.begin(), end);
  begun_ = !queue_.empty();
  const auto times = repeat(static_cast<std::uint32_t>(passes));
  return is_traced ? runtime_.submit(read_, times, traced) : runtime_.submit(read_, times);
}

void PromptReader::forget() {
  queue_.clear();
  long_.clear();
  begun_ = false;
}

}  // namespace llama
