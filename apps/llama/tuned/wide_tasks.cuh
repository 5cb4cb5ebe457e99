// The tasks of a step of many texts, one a row, between matrix products: see wide.hpp. Their rows are the places of texts, each
// at a position of its own. Phases order them, so what they leave to each other are plain values.
#pragma once

#include "apps/llama/tuned/attend_area.cuh"
#include "apps/llama/tuned/choose.cuh"
#include "apps/llama/tuned/prefill_tasks.cuh"

namespace llama {

/// The residual stream as it begins: the embeddings of the texts' last tokens. And which texts there are: for those that have
/// ended, or whose prompt is being read, nothing is attended to.
struct WideEmbed {
  static constexpr bool kCompiled = false;
  const Bf16* embedding;
  const StepState* states;
  const TunedText* texts;
  float* x;                 // [texts][columns]
  std::int32_t* positions;  // [texts]: negative where there is none
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
        if (column == 0) positions[row] = position(row);
      });
    }
  }

 private:
  FLYWHEEL_TASK std::int32_t position(std::size_t row) const {
    const std::uint32_t at = states[row].position;
    return at + 1 < texts[row].end ? static_cast<std::int32_t>(at) : -1;
  }
};

/// Attention of the query heads of a key and value head of a text, of heads that TunedAttend::knows(); of kTeams of them, pair
/// text * kv_heads + kv_head, by two warps each: a task takes as long as its trips to memory, one after the other, so tasks are
/// to be few. Each step's key and value go into the cache, too.
struct WideAttend {
  static constexpr bool kCompiled = false;
  static constexpr int kTeamWarps = 2, kTeams = kTileWarps / kTeamWarps;

  PartSums qkv;  // [texts][heads + 2 kv_heads][head_dim], before norm and rotation
  TunedCache cache;
  const float* rope;    // [context][head_dim / 2][cos, sin]
  const float* q_norm;  // [head_dim], or null
  const float* k_norm;
  const std::int32_t* positions;  // [texts], see WideEmbed
  flywheel::Bf16* results;        // [texts][heads][head_dim]
  float eps;
  std::int32_t room;                                     // positions in the cache, of each text
  std::int16_t first, texts, heads, kv_heads, head_dim;  // the first pair; texts in all
  std::uint16_t window;                                  // the last positions alone are attended to; 0: all

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if constexpr (!Block::kOnGpu) return portable(block);
    else if (head_dim == 64) attend<4>(block);
    else if (head_dim == 128) attend<8>(block);
    else attend_any(block);
  }

 private:
  /// What one team attends for.
  struct Pair {
    int text, kv_head;
    bool is_one;  // of a text that is there
    Span span;
  };
  FLYWHEEL_TASK int pairs() const { return texts * kv_heads; }
  FLYWHEEL_TASK Pair pair(int number) const {
    if (number >= pairs()) return {};
    const int text = number / kv_heads, position = positions[text];
    return {text, number % kv_heads, position >= 0, span(position)};
  }
  FLYWHEEL_TASK int group() const { return heads / kv_heads; }  // query heads of the key and value head
  FLYWHEEL_TASK HeadOfSums head_of(const Pair& of, int i) const {
    return {qkv, static_cast<std::size_t>(of.text), i, heads + 2 * kv_heads, head_dim};
  }
  FLYWHEEL_TASK HeadOfSums query(const Pair& of, int i) const { return head_of(of, of.kv_head * group() + i); }
  FLYWHEEL_TASK HeadOfSums key(const Pair& of) const { return head_of(of, heads + of.kv_head); }
  FLYWHEEL_TASK HeadOfSums value(const Pair& of) const { return head_of(of, heads + kv_heads + of.kv_head); }
  FLYWHEEL_TASK flywheel::Bf16* result(const Pair& of, int i) const {
    return results + static_cast<std::size_t>(heads * of.text + of.kv_head * group() + i) * static_cast<std::size_t>(head_dim);
  }
  FLYWHEEL_TASK TunedCache cache_of(const Pair& of) const {
    return cache.head(of.text * kv_heads + of.kv_head, room, head_dim);
  }
  FLYWHEEL_TASK const float* turn_of(int position) const {
    return rope + static_cast<std::size_t>(position) * static_cast<std::size_t>(head_dim);
  }
  /// 1 / sqrt(head_dim), and log2(e): weights are powers of 2.
  FLYWHEEL_TASK float query_scale() const { return 1.44269504f * inverse_sqrt(static_cast<float>(head_dim)); }
  /// In one part, which begins with the tile of the first position that is attended to.
  FLYWHEEL_TASK Span span(int position) const {
    const int all = position + 1;
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
    using Area = AttendArea<kTiles, kTeamWarps>;
    auto* const shared = block.template scratch<Area>(kTeams);
    if (!shared) return;
    const TeamBlock<Block, kTeamWarps> team(block);
    Area& area = block.in_scratch(shared)[team.team()];
    const Pair of = pair(first + team.team());
    for (int done = 0; done < group(); done += kHeadsTogether) {
      if (of.is_one) attend<kTiles>(block, team, area, of, done);
      else wait_for_others(block, done);
    }
    if (of.is_one) area.append(team, cache_of(of), of.span.position, team.warp());
  }
  /// A team without a pair, in place of attend(): its barriers are those of all teams.
  template <class Block>
  FLYWHEEL_TASK static void wait_for_others(Block& block, int done) {
    if (done > 0) block.sync();
    block.sync();
    block.sync();
  }
  /// Of up to kHeadsTogether heads, the first of which is `done`. A warp of the team makes some queries ready, and the step's
  /// key or value, which does not turn; each weighs its positions, and then their sums are put together.
  template <int kTiles, class Block, class Team>
  FLYWHEEL_TASK void attend(Block& block, const Team& team, AttendArea<kTiles, kTeamWarps>& area, const Pair& of,
                            int done) const {
    constexpr int kQueries = kHeadsTogether / kTeamWarps;  // of a warp
    static_assert(kTeamWarps == 2, "one makes the key ready, one the value");
    const int warp = team.warp(), count = group() - done < kHeadsTogether ? group() - done : kHeadsTogether;
    const TunedCache head = cache_of(of);
    const Span& part = of.span;
    WarpAttention<kTiles, kTeamWarps> mine(head.keys, head.values);
    const int from = part.first + warp * 16;
    mine.load_keys(block, from, part.last);
    mine.load_values(block, from, part.last);
    if (done > 0) block.sync();  // all warps are through with what lies there
    // One after the other, by the same instructions: each is fetched by this task anew, see tuning.md.
    FLYWHEEL_ROLLED
    for (int i = 0; i <= kQueries; ++i) {
      const bool is_query = i < kQueries, is_key = !is_query && warp == 0;
      const int h = warp * kQueries + i;
      const int which = is_query ? of.kv_head * group() + done + h : heads + of.kv_head + (is_key ? 0 : kv_heads);
      const HeadSource how{nullptr,
                           is_query ? q_norm
                           : is_key ? k_norm
                                    : nullptr,
                           is_query ? query_scale() : 1, is_query || is_key};
      HeadValues<FixedSize<kTiles>> values;
      if (!is_query || h < count) {
        values.prepare(block, how, turn_of(part.position));
        values.load(block, head_of(of, which));
        values.rotate(block, how, eps);
      }
      if (is_query) area.put_query(block, values, h);
      else area.put_step(block, values, warp);
    }
    block.sync();
    mine.take_queries(block, area.query);
    for (int at = from; at < part.last; at += mine.kAll) {
      mine.put_step(block, area.step, part.position, at);
      mine.template add<true>(block, at, part);
    }
    mine.leave(team, area.left);
    block.sync();
    WarpsScale scale = area.scale(block);
    scale.factor *= reciprocal(scale.weights);
    area.for_each_sum(team, scale.factor, [&](int h, int dim, float sum) {
      if (h < count) result(of, done + h)[dim] = flywheel::Bf16::nearest(sum);
    });
  }
  /// One thread.
  template <class Block>
  FLYWHEEL_TASK void portable(Block& block) const {
    float* const turned = block.template scratch<float>(head_dim);
    const int end = first + kTeams < pairs() ? first + kTeams : pairs();
    int most = 0;
    for (int number = first; number < end; ++number) most = pair(number).span.last > most ? pair(number).span.last : most;
    float* const weights = block.template scratch<float>(most);
    if (!turned || !weights) return;
    for (int number = first; number < end; ++number)
      if (pair(number).is_one) portable(pair(number), turned, weights);
  }
  FLYWHEEL_TASK void portable(const Pair& of, float* turned, float* weights) const {
    const Span& part = of.span;
    const TunedCache mine = cache_of(of);
    turn_values(key(of), k_norm, turn_of(part.position), head_dim, eps, turned);
    for (int i = 0; i < head_dim; ++i) {
      mine.keys[TunedCache::key_at(part.position, i, head_dim)].bits = static_cast<std::uint16_t>(round_to_half(turned[i]));
      mine.values[TunedCache::value_at(part.position, i, head_dim)].bits =
          static_cast<std::uint16_t>(round_to_half(value(of)(i)));
    }
    for (int h = 0; h < group(); ++h) {
      turn_values(query(of, h), q_norm, turn_of(part.position), head_dim, eps, turned);
      attend_alone(mine, part.begin, part.last, turned, head_dim, query_scale(), weights, result(of, h));
    }
  }
};
static_assert(sizeof(WideAttend) <= kTaskArgBytes);

/// All threads: ends the step of a text at `position`, whose logits are row `row` of all, as TunedChoose does. Out of line, so
/// that the kernel has it once.
template <class Block>
FLYWHEEL_COLD void end_step(Block block, const ChoiceMemory* memory, StepState* states, TunedText* texts, int text, int row,
                            std::uint32_t position) {
  const ChoiceMemory m = *memory;
  const TunedText how = texts[text];
  const std::uint32_t next = position + 1;
  const bool given = next < how.prompt_count;
  if (next >= how.end) return;
  const float* const logits = m.logits + static_cast<std::size_t>(row) * static_cast<std::size_t>(m.vocabulary);
  const std::uint32_t token = given ? m.prompt[text * m.context + static_cast<int>(next)]
                                    : choose_token(block, logits, m.vocabulary, how.sampling, next);
  block.sync();  // every thread has read the state and the text
  if (!block.leader()) return;
  states[text].position = next;
  states[text].token = token;
  if (!given) tell_token(block, m, texts, text, how, token, next + 1);
}

/// Ends a text's step.
struct WideChoose {
  static constexpr bool kCompiled = false;
  const ChoiceMemory* memory;
  StepState* states;
  TunedText* texts;
  std::int32_t text;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    end_step(block, memory, states, texts, text, text, states[text].position);
  }
};

/// Chooses the token behind a prompt, if the run has read its last position, `tail`: the logits are the first row of all.
struct PrefillChoose {
  static constexpr bool kCompiled = false;
  const Stretch* tail;
  const ChoiceMemory* memory;
  StepState* states;
  TunedText* texts;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (tail->count > 0) end_step(block, memory, states, texts, static_cast<int>(tail->text), 0, tail->first);
  }
};

}  // namespace llama
