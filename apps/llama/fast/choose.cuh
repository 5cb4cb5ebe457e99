// Logits, and the end of a step: the next token, its embedding, the next step's state.
#pragma once

#include "apps/llama/fast/project.cuh"
#include "apps/llama/tasks/sampling.cuh"

namespace flywheel::llama {

/// logits = weights * norm(x), and the likeliest of the task's rows. Nobody needs them while the prompt is being read,
/// but the weights come anyway.
struct FastLogits : RowsTask {
  NormInput norm;
  float* logits;        // [sequences][rows]
  std::uint64_t* best;  // [sequences][tasks]: see likelier()
  std::int16_t index, tasks;  // which of the tasks this is

  /// Orders by logit, then the smaller token first.
  FLYWHEEL_TASK static std::uint64_t likelier(float logit, int token) {
    return static_cast<std::uint64_t>(order_key(logit)) << 32 | ~static_cast<std::uint32_t>(token);
  }

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    portable_rows_of_norm(block, *this, norm, [&](int row, int s, float dot) { at(row, s) = dot; });
    for (int s = 0; s < input.sequences; ++s) {
      std::uint64_t most = 0;
      block.for_each(row_count(), [&](int i) { most = larger(most, likelier(at(first_row() + i, s), first_row() + i)); });
      most = block.reduce(most, larger);
      if (block.leader()) best[s * tasks + index] = most;
    }
  }

  template <class Block>
    requires Block::kOnGpu
  FLYWHEEL_TASK void store(Block& block) const {
    with_rows_of_lane(input.sequences, [&](auto each) { store_each<each()>(block); });
  }

 private:
  template <int kEach, class Block>
  FLYWHEEL_TASK void store_each(Block& block) const {
    std::uint64_t most = 0;
    const LaneRows<kEach> mine = lane_rows<kEach>(block, input.sequences);
    const float scale = norm.scale_of(block, input, columns, mine.sequence);
    const auto put = [&](int row, int s, const LaneSums<kEach>& sums, bool, bool) {
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if (row + i >= row_count()) continue;
        const float logit = sums.of[i] * scale;
        at(first_row() + row + i, s) = logit;
        most = larger(most, likelier(logit, first_row() + row + i));
      }
    };
    store_rows<kEach>(block, row_count(), input.sequences, [](int, int) { return true; }, ReadyAtOnce{}, put);
    mine.join(block, most, larger, [&](int s, std::uint64_t all) { best[s * tasks + index] = all; });
  }

  FLYWHEEL_TASK static std::uint64_t larger(std::uint64_t a, std::uint64_t b) { return a > b ? a : b; }
  FLYWHEEL_TASK float& at(int row, int sequence) const {
    return logits[static_cast<std::size_t>(sequence) * static_cast<std::size_t>(rows) + row];
  }
};

/// x = the embedding of the token: of the first step by a task of its own, of each later one by the choice before it.
struct FastEmbed {
  const Bf16* table;  // [vocabulary][hidden]
  ResidualOutput out;
  const StepState* states;
  std::int32_t hidden, sequences;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    for (int s = 0; s < sequences; ++s) embed(block, s, states[s].token);
  }
  template <class Block>
  FLYWHEEL_TASK void embed(Block& block, int sequence, std::uint32_t token) const {
    const Bf16* row = table + static_cast<std::size_t>(token) * static_cast<std::size_t>(hidden);
    float square = 0;
    const PackedOutput packed{out.packed, sequences, hidden, block.stamp()};
    block.for_each(hidden / 4, [&](int four) {
      float normed[4];
      for (int j = 0; j < 4; ++j) {
        const int i = 4 * four + j;
        const float value = to_float(row[i]);
        put_stamped(out.x[sequence * hidden + i], value, block.stamp());
        normed[j] = value * out.weights[i];
        square += value * value;
      }
      packed.put(block, sequence, 4 * four, normed, true);
    });
    square = block.reduce(square, [](float a, float b) { return a + b; });
    if (block.leader()) put_stamped(out.squares[sequence], square, block.stamp());
  }
};

/// What choosing needs beside the logits.
struct ChoiceMemory {
  const float* logits;          // [sequences][vocabulary]
  const std::uint64_t* best;    // [sequences][tasks]
  std::uint32_t* mass;          // [sequences][vocabulary]
  const std::uint32_t* prompt;  // [sequences][context]
  const std::uint32_t* ends;    // end-of-text tokens
  std::uint32_t* writing;       // how many texts have not ended
  std::int32_t vocabulary, tasks, context, end_count;
};

/// What one text of a run is to be: in device memory, of each sequence its own. As it is made here, it is written
/// greedily from its first token on and never ends.
struct FastText {
  Sampling sampling;
  std::uint32_t prompt_count = 1;   // tokens in the prompt buffer; they are fed in, not chosen
  std::uint32_t end = 0xffffffffu;  // tokens it may have in all; once it has ended, those it has
  std::uint32_t stop_at_end = 0;    // an end-of-text token ends it
  std::uint32_t reserved = 0;
};
/// Of a sequence that no text was asked for: it has ended before it began.
inline constexpr FastText kNoText{.sampling = {}, .prompt_count = 0, .end = 0};

/// Ends a sequence's step: the next token is the prompt's, or one chosen from the logits and streamed to the host. A text
/// that has ended stays where it is, step after step, until all have ended: that is the end of the run.
struct FastChoose {
  static constexpr bool kEarly = true;
  const ChoiceMemory* memory;
  FastEmbed embed;
  StepState* states;
  FastText* texts;
  std::int32_t sequence;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const ChoiceMemory m = *memory;
    const FastText text = texts[sequence];
    StepState& state = states[sequence];
    const std::uint32_t next = state.position + 1, last = state.token;
    const bool given = next < text.prompt_count, ended = next >= text.end;
    if (!block.await()) return;  // until then it has read what the pass before left
    std::uint32_t token = last;
    if (given) token = m.prompt[sequence * m.context + static_cast<int>(next)];
    else if (!ended) token = choose(block, m, text.sampling, next);
    embed.embed(block, sequence, token);
    block.sync();  // every thread has read the state and the text
    if (!block.leader() || ended) return;
    state = {next, token};
    if (!given) write(block, m, text, token, next + 1);
  }

 private:
  /// One thread. `length`: of the text with this token.
  template <class Block>
  FLYWHEEL_TASK void write(Block& block, const ChoiceMemory& m, const FastText& text, std::uint32_t token, std::uint32_t length) const {
    block.emit(WrittenToken{token, static_cast<std::uint32_t>(sequence)});
    if (length != text.end && !(text.stop_at_end && is_end(m, token))) return;
    texts[sequence].end = length;
    // Relaxed: of all that texts leave, whoever brings the count to 0 needs nothing but the count.
    const AtomicRef<std::uint32_t, Scope::device> writing(*m.writing);
    if (writing.fetch_add(~0u, Order::relaxed) == 1) block.stop();
  }

  template <class Block>
  FLYWHEEL_TASK std::uint32_t choose(Block& block, const ChoiceMemory& m, Sampling how, std::uint32_t position) const {
    const float* logits = m.logits + static_cast<std::size_t>(sequence) * static_cast<std::size_t>(m.vocabulary);
    if (how.temperature == 0) return likeliest(block, m);
    std::uint32_t* mass = m.mass + static_cast<std::size_t>(sequence) * static_cast<std::size_t>(m.vocabulary);
    return choose_token(block, logits, mass, m.vocabulary, how, position);
  }

  template <class Block>
  FLYWHEEL_TASK std::uint32_t likeliest(Block& block, const ChoiceMemory& m) const {
    const auto larger = [](std::uint64_t a, std::uint64_t b) { return a > b ? a : b; };
    std::uint64_t most = 0;
    block.for_each(m.tasks, [&](int i) { most = larger(most, m.best[sequence * m.tasks + i]); });
    most = block.reduce(most, larger);
    const float logit = keyed(static_cast<std::uint32_t>(most >> 32));
    if (!(logit - logit == 0)) block.fail(kLogitsNotFinite);
    return ~static_cast<std::uint32_t>(most);
  }

  FLYWHEEL_TASK static bool is_end(const ChoiceMemory& m, std::uint32_t token) {
    for (int i = 0; i < m.end_count; ++i)
      if (m.ends[i] == token) return true;
    return false;
  }
};

}  // namespace flywheel::llama
