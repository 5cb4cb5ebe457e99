// The task that ends a step.
#pragma once

#include "apps/llama/decode/sampling.cuh"

namespace llama {

/// Ends a step: the next token is the prompt's, or one chosen from the logits and streamed to the host. Ends
/// the run at an end-of-text token.
struct Sample {
  const float* logits;
  const std::uint32_t* prompt;
  const std::uint32_t* ends;  // end-of-text tokens
  StepState* state;
  std::int32_t vocabulary, end_count;
  Param<RunSettings> settings;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const RunSettings run = block.param(settings);
    const std::uint32_t next = state->position + 1;
    const bool given = next < run.prompt_count;
    const std::uint32_t token = given ? prompt[next] : choose_token(block, logits, vocabulary, run.sampling, next);
    block.sync();  // every thread has read the state
    if (!block.leader()) return;
    state->position = next;
    state->token = token;
    if (given) return;
    block.emit(WrittenToken{token, 0});
    if (run.stop_at_end && is_end(token)) block.stop();
  }

 private:
  FLYWHEEL_TASK bool is_end(std::uint32_t token) const {
    for (int i = 0; i < end_count; ++i)
      if (ends[i] == token) return true;
    return false;
  }
};

}  // namespace llama
