#include "apps/llama/portable/memory.hpp"

#include "apps/llama/decode/rope.hpp"

namespace llama {
namespace {

std::size_t size_of(int a, int b = 1) { return static_cast<std::size_t>(a) * static_cast<std::size_t>(b); }

int whole_blocks(int context) { return (context + kLanes - 1) / kLanes * kLanes; }

CacheBuffer make_cache(Runtime& runtime, const Config& config, int context) {
  const std::size_t size = size_of(config.key_value_size(), context);
  CacheBuffer buffer{runtime.allocate<float>(size), runtime.allocate<float>(size), {}};
  buffer.cache = {buffer.keys.data(), buffer.values.data(), context, config.head_dim};
  return buffer;
}

}  // namespace

PortableMemory::PortableMemory(Runtime& runtime, const Config& config, int context)
    : x(runtime.allocate<float>(size_of(config.hidden_size))),
      qkv(runtime.allocate<float>(size_of(config.qkv_size()))),
      attended(runtime.allocate<float>(size_of(config.query_size()))),
      inner(runtime.allocate<float>(size_of(config.intermediate_size))),
      logits(runtime.allocate<float>(size_of(config.vocab_size))),
      prompt(runtime.allocate<std::uint32_t>(size_of(context))),
      ends(runtime.upload(std::vector<std::uint32_t>(config.eos_token_ids.begin(), config.eos_token_ids.end()))),
      rope(runtime.upload(rope_table(config, context))),
      state(runtime.allocate<StepState>(1)) {
  for (int layer = 0; layer < config.num_hidden_layers; ++layer)
    caches.push_back(make_cache(runtime, config, whole_blocks(context)));
}

}  // namespace llama
