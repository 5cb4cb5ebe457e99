// Logits, and the end of a step: the next token, its embedding, the next step's state.
#pragma once

#include "apps/llama/decode/sampling.cuh"
#include "apps/llama/tuned/maxima.cuh"
#include "apps/llama/tuned/project.cuh"

namespace llama {

/// A likeliest token as others see it, see likelier_of().
struct alignas(16) BestWords {
  Stamped upper, lower;

  FLYWHEEL_TASK void put(std::uint64_t best, std::uint32_t stamp) {
    put_stamped(upper, static_cast<std::uint32_t>(best >> 32), stamp);
    put_stamped(lower, static_cast<std::uint32_t>(best), stamp);
  }
  FLYWHEEL_TASK BestWords look() const { return {look_at(upper), look_at(lower)}; }
  FLYWHEEL_TASK bool there(std::uint32_t stamp) const { return upper.stamp() == stamp && lower.stamp() == stamp; }
  FLYWHEEL_TASK std::uint64_t value() const { return std::uint64_t{upper.bits()} << 32 | lower.bits(); }
};

/// Best words that the largest keys of a sequence's groups of rows take: whole ones, for these are read four keys at a time.
FLYWHEEL_TASK constexpr int words_of_maxima(int sequences, int tasks) {
  constexpr int kKeys = sizeof(BestWords) / sizeof(std::uint32_t);
  return (tasks * RowGroups{sequences}.count() + kKeys - 1) / kKeys;
}
/// Where these keys are, [tasks][groups]: behind all best words.
FLYWHEEL_TASK inline std::uint32_t* maxima_behind(BestWords* best, int sequences, int tasks, int sequence) {
  return reinterpret_cast<std::uint32_t*>(best + sequences * tasks + sequence * words_of_maxima(sequences, tasks));
}
/// Best words and maxima, in units of the former.
FLYWHEEL_TASK constexpr std::size_t best_words(int sequences, int tasks) {
  return static_cast<std::size_t>(sequences) * static_cast<std::size_t>(tasks + words_of_maxima(sequences, tasks));
}

/// logits = weights * norm(x), the likeliest of the task's rows, and the largest key of each group of them. They are not
/// needed while the prompt is being read, but the weights come anyway.
struct TunedLogits : RowsTask {
  NormInput norm;
  float* logits;              // [sequences][rows]
  BestWords* best;            // [sequences][tasks], then maxima: see best_words()
  std::int32_t index, tasks;  // which of the tasks this is

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    portable_rows_of_norm(block, *this, norm, [&](int row, int s, float dot) { at(row, s) = dot; });
    const RowGroups groups{input.sequences};
    for (int s = 0; s < input.sequences; ++s) {
      std::uint64_t most = 0;
      block.for_each(groups.count(), [&](int group) {
        const std::uint64_t of_group = likeliest(groups, group, s);
        put_maximum(s, group, of_group);
        most = larger(most, of_group);
      });
      most = block.reduce(most, larger);
      if (block.leader()) best[s * tasks + index].put(most, block.stamp());
    }
  }

  template <class Block>
  requires Block::kOnGpu FLYWHEEL_TASK void store(Block& block) const {
    with_rows_of_lane(input.sequences, [&](auto each) { store_each<each()>(block); });
  }

 private:
  template <int kEach, class Block>
  FLYWHEEL_TASK void store_each(Block& block) const {
    std::uint64_t most = 0;
    const LaneRows<kEach> mine = lane_rows<kEach>(block, input.sequences);
    PatchReader<kEach, Block> patches = read_patches<kEach>(block);
    const float scale = norm.scale_of<kEach>(block, input, columns, mine.sequence);
    const auto put = [&](int row, int s, const LaneSums<kEach>& sums, bool, bool) {
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (row + i >= row_count()) continue;
        const float logit = sums.of[i] * scale;
        at(first_row() + row + i, s) = logit;
        most = larger(most, likelier_of(logit, first_row() + row + i));
      }
    };
    store_rows<kEach>(
        block, *this, patches, [](int, int) { return true; }, ReadyAtOnce{}, put);
    mine.join(block, most, larger, [&](int s, std::uint64_t all) { best[s * tasks + index].put(all, block.stamp()); });
    if (mine.some) put_maximum(mine.sequence, mine.row / kEach, most);
  }

  /// A greedy choice may have gone on by then: only one that waits for the task reads it.
  FLYWHEEL_TASK void put_maximum(int sequence, int group, std::uint64_t most) const {
    const int groups = RowGroups{input.sequences}.count();
    maxima_behind(best, input.sequences, tasks, sequence)[index * groups + group] = static_cast<std::uint32_t>(most >> 32);
  }

  /// Portable: of a group, 0 if it has no rows.
  FLYWHEEL_TASK std::uint64_t likeliest(const RowGroups& groups, int group, int sequence) const {
    std::uint64_t most = 0;
    for (int i = 0; groups.row(group, i) < row_count(); ++i) {
      const int row = first_row() + groups.row(group, i);
      most = larger(most, likelier_of(at(row, sequence), row));
    }
    return most;
  }

  FLYWHEEL_TASK static std::uint64_t larger(std::uint64_t a, std::uint64_t b) { return a > b ? a : b; }
  FLYWHEEL_TASK float& at(int row, int sequence) const {
    return logits[static_cast<std::size_t>(sequence) * static_cast<std::size_t>(rows) + row];
  }
};

/// x = the embedding of the token: of the first step by a task of its own, of each later one by the choice before it.
struct TunedEmbed {
  const Bf16* table;  // [vocabulary][hidden]
  ResidualOutput out;
  const StepState* states;
  std::int32_t hidden, sequences;

  double cost_ns() const { return 1000; }

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    for (int s = 0; s < sequences; ++s) embed(block, s, states[s].token);
  }
  /// By the first half of the block's threads: others may have something else to do meanwhile. All that is read is on its way
  /// before the first of it is used.
  template <class Block>
  FLYWHEEL_TASK void embed(Block& block, int sequence, std::uint32_t token) const {
    constexpr int kAtOnce = 4;
    const Bf16* row = table + static_cast<std::size_t>(token) * static_cast<std::size_t>(hidden);
    const int half = (block.size() + 1) / 2;
    float square = 0;
    for (int first = block.rank(); block.rank() < half && first < hidden / 4; first += kAtOnce * half) {
      FourWeights values[kAtOnce] = {};
      LaneSums<4> norm[kAtOnce] = {};
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int four = first + i * half;
        if (four >= hidden / 4) continue;
        values[i] = *reinterpret_cast<const FourWeights*>(row + 4 * four);
        norm[i] = *reinterpret_cast<const LaneSums<4>*>(out.weights + 4 * four);
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        if (first + i * half < hidden / 4) square += put(block, sequence, 4 * (first + i * half), values[i], norm[i]);
    }
    square = block.reduce(square, [](float a, float b) { return a + b; });
    if (block.leader()) put_stamped(out.squares[sequence], square, block.stamp());
  }

 private:
  /// Four values of x, from `column` on. Gives the sum of their squares.
  template <class Block>
  FLYWHEEL_TASK float put(Block& block, int sequence, int column, const FourWeights& bf16, const LaneSums<4>& norm) const {
    const PackedOutput packed{out.packed, sequences, hidden, block.stamp()};
    StampedRow<4> x;
    float normed[4], square = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float value = to_float(Bf16{static_cast<std::uint16_t>(bf16.pairs[i / 2] >> (16 * (i % 2)))});
      x.of[i] = stamped(value, packed.stamp);
      normed[i] = value * norm.of[i];
      square += value * value;
    }
    packed.put(block, sequence, column, normed, true);
    x.put(block, out.x + sequence * hidden + column);
    return square;
  }
};

/// What choosing needs beside the logits.
struct ChoiceMemory {
  const float* logits;             // [sequences][vocabulary]
  BestWords* best;                 // [sequences][tasks], then maxima: see best_words()
  const std::int32_t* first_rows;  // [tasks + 1]: see LogitsLeft
  const std::uint32_t* prompt;     // [sequences][context]
  const std::uint32_t* ends;       // end-of-text tokens
  std::uint32_t* writing;          // how many texts have not ended
  std::int32_t vocabulary, tasks, context, end_count;
};

/// What one text of a run is to be: in device memory, of each sequence its own. As it is made here, it is written
/// greedily from its first token on and never ends.
struct TunedText {
  Sampling sampling;
  std::uint32_t prompt_count = 1;   // tokens in the prompt buffer; they are fed in, not chosen
  std::uint32_t end = 0xffffffffu;  // tokens it may have in all; once it has ended, those it has
  std::uint32_t stop_at_end = 0;    // an end-of-text token ends it
  std::uint32_t reserved = 0;
};
/// Of a sequence that no text was asked for: it has ended before it began.
inline constexpr TunedText kNoText{.sampling = {}, .prompt_count = 0, .end = 0};

/// One thread, when a text has its next token: tells the host, and whether that was the text's last one. `length`: of the text
/// with it; `text`: as all threads have read it.
template <class Block>
FLYWHEEL_TASK void tell_token(Block& block, const ChoiceMemory& m, TunedText* texts, int sequence, const TunedText& text,
                              std::uint32_t token, std::uint32_t length) {
  block.emit(WrittenToken{token, static_cast<std::uint32_t>(sequence)});
  const auto is_end = [&] {
    for (int i = 0; i < m.end_count; ++i)
      if (m.ends[i] == token) return true;
    return false;
  };
  if (length != text.end && !(text.stop_at_end && is_end())) return;
  texts[sequence].end = length;  // every thread has read it: they met to choose the token
  // Relaxed: pairs with the other texts' fetch_add. The task that brings the count to 0 needs nothing but the count.
  const AtomicRef<std::uint32_t, Scope::device> writing(*m.writing);
  if (writing.fetch_add(~0u, Order::relaxed) == 1) block.stop();
}

/// Ends a sequence's step: the next token is the prompt's, or one chosen from the logits and streamed to the host. A text
/// that has ended stays where it is, step after step, until all have ended: that is the end of the run.
struct TunedChoose {
  static constexpr bool kEarly = true;
  const ChoiceMemory* memory;
  TunedEmbed embed;
  StepState* states;
  TunedText* texts;
  std::int32_t sequence;

  double cost_ns() const { return 1000; }

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const ChoiceMemory m = *memory;
    const TunedText text = texts[sequence];
    StepState& state = states[sequence];
    const std::uint32_t next = state.position + 1, last = state.token;
    const bool given = next < text.prompt_count, ended = next >= text.end;
    const bool greedy = !given && !ended && text.sampling.temperature == 0;
    // Until all tasks before it are done, it has read what the pass before left. What a greedy text needs of them is stamped:
    // it has the next x put before those are done. All that read the last x are through with it: this token comes of it.
    if (!greedy && !block.await()) return;
    std::uint32_t token = last;
    if (given) token = m.prompt[sequence * m.context + static_cast<int>(next)];
    else if (greedy && !likeliest(block, m, token)) return;
    else if (!greedy && !ended) token = draw_token(block, left(m), text.sampling, next);
    // The host is far away: the last thread tells it while others embed.
    if (!given && !ended && block.rank() == block.size() - 1) tell_token(block, m, texts, sequence, text, token, next + 1);
    embed.embed(block, sequence, token);
    block.sync();                                            // every thread has read the state and the text
    if (!block.await() || !block.leader() || ended) return;  // others have read the state by then, too
    state.position = next;
    state.token = token;
  }

 private:
  FLYWHEEL_TASK LogitsLeft left(const ChoiceMemory& m) const {
    const float* logits = m.logits + static_cast<std::size_t>(sequence) * static_cast<std::size_t>(m.vocabulary);
    return {logits,         maxima_behind(m.best, embed.sequences, m.tasks, sequence), m.first_rows, m.vocabulary, m.tasks,
            embed.sequences};
  }

  /// False if a task before this one has failed: there may be no token.
  template <class Block>
  FLYWHEEL_TASK bool likeliest(Block& block, const ChoiceMemory& m, std::uint32_t& token) const {
    constexpr std::uint64_t kCalledOff = std::uint64_t{0xffffffffu} << 32;  // more than any logit that is a number
    const auto larger = [](std::uint64_t a, std::uint64_t b) { return a > b ? a : b; };
    std::uint64_t most = 0;
    for (int warp = block.rank() - block.rank() % kLanes, i = block.rank(); warp < m.tasks;
         warp += block.size(), i += block.size()) {
      const BestWords* at = m.best + sequence * m.tasks + (i < m.tasks ? i : warp);
      BestWords words = at->look();
      bool there = true;
      if constexpr (Block::kOnGpu)
        there = block.spin([&] {
          const bool seen = words.there(block.stamp());
          if (!seen) words = at->look();
          return seen;
        });
      most = larger(most, there ? words.value() : kCalledOff);
    }
    most = block.reduce(most, larger);
    if (most == kCalledOff) return false;
    const float logit = keyed(static_cast<std::uint32_t>(most >> 32));
    if (!(logit - logit == 0)) block.fail(kLogitsNotFinite);
    token = ~static_cast<std::uint32_t>(most);
    return true;
  }
};

}  // namespace llama
