#include "apps/llama/tuned/prompt_reader.hpp"

#include <algorithm>

namespace llama {
namespace {

/// Passes over chunks that take as long as the products of few rows: 0.67 ms each of the 2.9 of a short prompt, see tuning.md.
constexpr std::uint32_t kPassesAsProducts = 4;

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
  fewest_ = way == PromptWay::products ? 1 : kPassesAsProducts * static_cast<std::uint32_t>(memory_.sequences) + 1;
}

std::uint32_t PromptReader::add(std::uint32_t text, std::size_t tokens) {
  const auto end = static_cast<std::uint32_t>(tokens - 1);
  if (!prefill_ || end < fewest_) return memory_.add_chunks(queue_, text, tokens - 1);
  long_.push_back({text, 0, end});
  return end;
}

bool PromptReader::has(std::uint32_t text) const {
  const auto is_of = [&](const std::vector<PromptChunk>& some) {
    return std::ranges::find(some, text, &PromptChunk::text) != some.end();
  };
  return is_of(queue_) || is_of(long_);
}

Run PromptReader::submit(bool others_wait) {
  if (!queue_.empty()) return submit_passes(others_wait ? std::min(kPassesBetween, queue_.size()) : queue_.size());
  PromptChunk& one = long_.front();
  const std::uint32_t count = Prefill::next_count(one.end - one.first, others_wait), end = one.first + count;
  Run run = prefill_->submit(one.text, one.first, end, one.first == 0 && end == one.end);
  one.first = end;
  if (one.first == one.end) long_.erase(long_.begin());
  return run;
}

/// Each pass leaves the input of the chunk behind its own. Where there is none, what it leaves is not used.
Run PromptReader::submit_passes(std::size_t passes) {
  const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(passes);
  std::vector<PromptChunk> chunks(queue_.begin(), end);
  chunks.push_back(end == queue_.end() ? chunks.back() : *end);
  memory_.chunks.write(chunks.data(), chunks.size(), 0);
  if (!begun_) runtime_.submit(begin_).wait();
  queue_.erase(queue_.begin(), end);
  begun_ = !queue_.empty();
  return runtime_.submit(read_, repeat(static_cast<std::uint32_t>(passes)));
}

void PromptReader::forget() {
  queue_.clear();
  long_.clear();
  begun_ = false;
}

}  // namespace llama
