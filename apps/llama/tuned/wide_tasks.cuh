// The tasks of a step of many texts, one a row, between matrix products: see wide.hpp. Their rows are the places of texts, each
// at a position of its own. Phases order them, so what they leave to each other are plain values.
#pragma once

#include "apps/llama/tuned/attend_area.cuh"
#include "apps/llama/tuned/choose.cuh"
#include "apps/llama/tuned/prefill_tasks.cuh"

namespace llama {

/// The residual stream as it begins: the embeddings of the texts' last tokens.
struct WideEmbed {
  const Bf16* embedding;
  const StepState* states;
  float* x;  // [texts][columns]
  std::int32_t columns, first, count;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const auto width = static_cast<std::size_t>(columns);
    for (int i = group_of(block); i < count; i += kGroups<Block>) {
      const auto row = static_cast<std::size_t>(first + i);
      const Bf16* const from = embedding + states[row].token * width;
      for_each_of_lane<kChunk>(block, columns, [&](int column) {
        float values[kChunk];
        load_chunk(from + column, values);
        store_chunk(x + row * width + column, values);
      });
    }
  }
};

/// Attention of the query heads of one key and value head of a text, of heads that TunedAttend::knows(). Its step's key and
/// value go into the cache, too.
struct WideAttend {
  const float* qkv;  // [texts][heads + 2 kv_heads][head_dim], before norm and rotation
  TunedCache cache;
  const float* rope;    // [context][head_dim / 2][cos, sin]
  const float* q_norm;  // [head_dim], or null
  const float* k_norm;
  const StepState* states;
  flywheel::Bf16* results;  // [texts][heads][head_dim]
  float eps;
  std::int32_t room;  // positions in the cache, of each text
  std::int16_t text, heads, kv_heads, kv_head, head_dim;
  std::uint16_t window;  // the last positions alone are attended to; 0: all

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if constexpr (!Block::kOnGpu) return portable(block);
    else if (head_dim == 64) attend<4>(block);
    else if (head_dim == 128) attend<8>(block);
    else attend_any(block);
  }

 private:
  FLYWHEEL_TASK int group() const { return heads / kv_heads; }  // query heads of the key and value head
  FLYWHEEL_TASK const float* head_of(int i) const {
    return qkv + static_cast<std::size_t>((heads + 2 * kv_heads) * text + i) * static_cast<std::size_t>(head_dim);
  }
  FLYWHEEL_TASK const float* query(int i) const { return head_of(kv_head * group() + i); }
  FLYWHEEL_TASK const float* key() const { return head_of(heads + kv_head); }
  FLYWHEEL_TASK const float* value() const { return head_of(heads + kv_heads + kv_head); }
  FLYWHEEL_TASK flywheel::Bf16* result(int i) const {
    return results + static_cast<std::size_t>(heads * text + kv_head * group() + i) * static_cast<std::size_t>(head_dim);
  }
  FLYWHEEL_TASK TunedCache cache_of_head() const { return cache.head(text * kv_heads + kv_head, room, head_dim); }
  FLYWHEEL_TASK const float* turn_of(int position) const {
    return rope + static_cast<std::size_t>(position) * static_cast<std::size_t>(head_dim);
  }
  /// 1 / sqrt(head_dim), and log2(e): weights are powers of 2.
  FLYWHEEL_TASK float query_scale() const { return 1.44269504f * inverse_sqrt(static_cast<float>(head_dim)); }
  /// In one part, which begins with the tile of the first position that is attended to.
  FLYWHEEL_TASK Span span() const {
    const int position = static_cast<int>(states[text].position), all = position + 1;
    const int begin = window && all > window ? all - window : 0;
    return {position, begin / 16 * 16, all, 1, begin};
  }

  template <class Block>
  FLYWHEEL_COLD void attend_any(Block block) const {
    switch (head_dim) {
      case 32:
        return attend<2>(block);
      case 80:
        return attend<5>(block);
      case 96:
        return attend<6>(block);
      default:
        return attend<16>(block);
    }
  }

  template <int kTiles, class Block>
  FLYWHEEL_COLD void attend(Block block) const {
    auto* const shared = block.template scratch<AttendArea<kTiles>>(1);
    if (!shared) return;
    AttendArea<kTiles>& area = *block.in_scratch(shared);
    const Span part = span();
    for (int done = 0; done < group(); done += kHeadsTogether) attend<kTiles>(block, area, part, done);
    if (const int which = block.warp() - kHeadsTogether; which == 0 || which == 1)
      area.append(block, cache_of_head(), part.position, which);
  }
  /// Of up to kHeadsTogether heads, the first of which is `done`. Warps 0..3 make a query each ready, the next one the step's
  /// key, and one its value, which does not turn; each weighs its positions, and then their sums are put together.
  template <int kTiles, class Block>
  FLYWHEEL_TASK void attend(Block& block, AttendArea<kTiles>& area, const Span& part, int done) const {
    const int warp = block.warp(), count = group() - done < kHeadsTogether ? group() - done : kHeadsTogether;
    const TunedCache head = cache_of_head();
    WarpAttention<kTiles> mine(head.keys, head.values);
    const int first = part.first + warp * 16;
    mine.load_keys(block, first, part.last);
    mine.load_values(block, first, part.last);
    HeadValues<FixedSize<kTiles>> values;
    if (warp < count) prepare(block, values, query(done + warp), {nullptr, q_norm, query_scale(), true}, part.position);
    else if (warp == kHeadsTogether) prepare(block, values, key(), {nullptr, k_norm, 1, true}, part.position);
    else if (warp == kHeadsTogether + 1) prepare(block, values, value(), {nullptr, nullptr, 1, false}, part.position);
    block.sync();  // all warps are through with what lies there
    if (warp < kHeadsTogether) area.put_query(block, values);
    else if (warp < kHeadsTogether + 2) area.put_step(block, values, warp - kHeadsTogether);
    block.sync();
    mine.take_queries(block, area.query);
    for (int at = first; at < part.last; at += mine.kAll) {
      mine.put_step(block, area.step, part.position, at);
      mine.template add<true>(block, at, part);
    }
    mine.leave(block, area.left);
    block.sync();
    WarpsScale scale = area.scale(block);
    scale.factor *= reciprocal(scale.weights);
    area.for_each_sum(block, scale.factor, [&](int h, int dim, float sum) {
      if (h < count) result(done + h)[dim] = flywheel::Bf16::nearest(sum);
    });
  }
  template <class Block, class Values>
  FLYWHEEL_TASK void prepare(Block& block, Values& values, const float* from, const HeadSource& how, int position) const {
    values.prepare(block, how, turn_of(position));
    values.load(block, from);
    values.rotate(block, how, eps);
  }

  /// One thread.
  template <class Block>
  FLYWHEEL_TASK void portable(Block& block) const {
    const Span part = span();
    float* const turned = block.template scratch<float>(head_dim);
    float* const weights = block.template scratch<float>(part.last);
    if (!turned || !weights) return;
    const TunedCache mine = cache_of_head();
    turn_values(key(), k_norm, turn_of(part.position), head_dim, eps, turned);
    for (int i = 0; i < head_dim; ++i) {
      mine.keys[TunedCache::key_at(part.position, i, head_dim)].bits = static_cast<std::uint16_t>(round_to_half(turned[i]));
      mine.values[TunedCache::value_at(part.position, i, head_dim)].bits =
          static_cast<std::uint16_t>(round_to_half(value()[i]));
    }
    for (int h = 0; h < group(); ++h) {
      turn_values(query(h), q_norm, turn_of(part.position), head_dim, eps, turned);
      attend_alone(mine, part.begin, part.last, turned, head_dim, query_scale(), weights, result(h));
    }
  }
};
static_assert(sizeof(WideAttend) <= kTaskArgBytes);

/// Ends a text's step, as TunedChoose does.
struct WideChoose {
  const ChoiceMemory* memory;
  StepState* states;
  TunedText* texts;
  std::int32_t text;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const ChoiceMemory m = *memory;
    const TunedText how = texts[text];
    const std::uint32_t next = states[text].position + 1;
    const bool given = next < how.prompt_count;
    if (next >= how.end) return;
    const float* const logits = m.logits + static_cast<std::size_t>(text) * static_cast<std::size_t>(m.vocabulary);
    const std::uint32_t token = given ? m.prompt[text * m.context + static_cast<int>(next)]
                                      : choose_token(block, logits, m.vocabulary, how.sampling, next);
    block.sync();  // every thread has read the state and the text
    if (!block.leader()) return;
    states[text].position = next;
    states[text].token = token;
    if (!given) tell_token(block, m, texts, text, how, token, next + 1);
  }
};

}  // namespace llama
