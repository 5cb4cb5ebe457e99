// The tasks of a step that reads a prompt. Its sequences are neighbouring positions of one text, a chunk of the prompt, so that
// the weights are read once for all of them. The chunk's keys and values go into the cache before any of its positions attends.
// There are no logits.
#pragma once

#include "apps/llama/tuned/attend.cuh"
#include "apps/llama/tuned/choose.cuh"

namespace llama {

/// Positions first..end-1 of a text, at least one and at most as many as the step has sequences. Those beyond `end` take
/// the last one's token: what they leave in the cache is overwritten before anybody reads it.
struct PromptChunk {
  std::uint32_t text, first, end;
};

/// Puts the keys and values of one head into the cache, a position a warp. The cache has room for those beyond `end`, too.
struct TunedAppend {
  static constexpr bool kEarly = true;

  const Stamped* qkv;  // [positions][heads + 2 kv_heads][head_dim], before norm and rotation
  TunedCache cache;
  const float* rope;    // [context][head_dim / 2][cos, sin]
  const float* k_norm;  // [head_dim], or null
  const StepState* states;
  float eps;
  std::int32_t room;  // positions in the cache, of each text
  std::int16_t heads, kv_heads, kv_head, head_dim, positions;

  double cost_ns() const { return 1000; }

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    float* turned = block.template scratch<float>(head_dim);
    float* in = block.template scratch<float>(head_dim);
    if (!turned || !in) return;
    for (int i = 0; i < positions; ++i) {
      const StepState state = states[i];
      turn_head(block, key(i), k_norm, turn_of(state), head_dim, eps, in, turned);
      append_to_cache(block, cache_of(state), static_cast<int>(state.position), head_dim, turned, value(i));
    }
  }
  template <class Block, class Operands>
  requires Block::kOnGpu FLYWHEEL_TASK void compute(Block& block, Operands& operands) const {
    append_all(block);
    operands.renew();
  }

 private:
  FLYWHEEL_TASK const Stamped* row(int position, int i) const {
    return qkv + ((heads + 2 * kv_heads) * position + i) * head_dim;
  }
  FLYWHEEL_TASK const Stamped* key(int position) const { return row(position, heads + kv_head); }
  FLYWHEEL_TASK const Stamped* value(int position) const { return row(position, heads + kv_heads + kv_head); }
  FLYWHEEL_TASK const float* turn_of(const StepState& state) const {
    return rope + static_cast<std::size_t>(state.position) * static_cast<std::size_t>(head_dim);
  }
  FLYWHEEL_TASK TunedCache cache_of(const StepState& state) const {
    return cache.head(static_cast<int>(state.text) * kv_heads + kv_head, room, head_dim);
  }

  template <class Block>
  FLYWHEEL_COLD void append_all(Block block) const {
    if (const int position = block.warp(); position < positions) {
      const StepState state = states[position];
      const HeadSource from_key{key(position), k_norm, 1, true}, from_value{value(position), nullptr, 1, false};
      HeadValues keys(AnySize{head_dim}), values(AnySize{head_dim});
      keys.prepare(block, from_key, turn_of(state));
      values.prepare(block, from_value, nullptr);
      keys.load(block, from_key.words);
      values.load(block, from_value.words);
      keys.rotate(block, from_key, eps);
      values.rotate(block, from_value, eps);  // as what does not turn
      put(block, keys, values, cache_of(state), static_cast<int>(state.position));
    }
    block.sync();
  }
  template <class Block>
  FLYWHEEL_TASK void put(Block& block, const HeadValues<AnySize>& keys, const HeadValues<AnySize>& values, const TunedCache& to,
                         int position) const {
    const auto half = [](float value) { return static_cast<std::uint16_t>(round_half_or_infinite(value)); };
    keys.for_each(block, [&](int i, float value) { to.keys[TunedCache::key_at(position, i, head_dim)].bits = half(value); });
    values.for_each(block,
                    [&](int i, float value) { to.values[TunedCache::value_at(position, i, head_dim)].bits = half(value); });
  }
};
static_assert(sizeof(TunedAppend) <= kTaskArgBytes);

/// Attention of one position: the cache has the keys and values of all up to it when the tasks before this one are done.
struct TunedAttendCached : TunedAttend {
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    portable(block, {.appends = false});
  }
  template <class Block, class Operands>
  requires Block::kOnGpu FLYWHEEL_TASK void compute(Block& block, Operands& operands) const {
    compute_part(block, operands, AnyStep{.appends = false});
  }
};

/// Leaves the input of one sequence for the next chunk: when all tasks of the step that read the last one are done.
struct TunedNextChunk {
  TunedEmbed embed;
  StepState* states;
  const PromptChunk* chunks;    // the one behind the last is there, too: what it leaves is not used
  const std::uint32_t* prompt;  // [texts][context]
  std::int32_t context;
  std::int16_t sequence, ahead;  // of the pass that it is for: 0 before the first, then 1

  double cost_ns() const { return 1000; }

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const PromptChunk chunk = chunks[block.iteration() + static_cast<std::uint32_t>(ahead)];
    const std::uint32_t position = chunk.first + static_cast<std::uint32_t>(sequence);
    const std::uint32_t* const of_text = prompt + static_cast<std::size_t>(chunk.text) * static_cast<std::size_t>(context);
    const std::uint32_t token = of_text[position < chunk.end ? position : chunk.end - 1];
    embed.embed(block, sequence, token);
    if (block.leader()) states[sequence] = {position, token, chunk.text};
  }
};
static_assert(sizeof(TunedNextChunk) <= kTaskArgBytes);

}  // namespace llama
