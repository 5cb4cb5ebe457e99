#include "apps/llama/tuned/prompt_reader.hpp"

#include <algorithm>

#include "apps/llama/tuned/prompt_way.hpp"

namespace llama {

PromptReader::PromptReader(Runtime& runtime, const Config& config, const Weights& weights, const TunedMemory& texts)
    : runtime_(runtime),
      memory_(runtime, config, texts, prompt_positions(config, PromptWay::chunks)),
      graph_(build_prompt_graph(runtime, config, weights, texts, memory_)),
      read_(runtime.load(graph_.decode, compiled)),
      begin_(runtime.load(graph_.embed)) {}

std::uint32_t PromptReader::add(std::uint32_t text, std::size_t tokens) { return memory_.add_chunks(queue_, text, tokens - 1); }

bool PromptReader::has(std::uint32_t text) const { return std::ranges::find(queue_, text, &PromptChunk::text) != queue_.end(); }

/// Each pass leaves the input of the chunk behind its own. Where there is none, what it leaves is not used.
Run PromptReader::submit(std::size_t passes) {
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
  begun_ = false;
}

}  // namespace llama
