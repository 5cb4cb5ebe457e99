// What the tasks of a decode step know about where the text stands.
#pragma once

#include <cstdint>

namespace llama {

/// In device memory. Constant during a step; Sample writes it for the next one.
struct StepState {
  std::uint32_t position;  // of `token` in the text, from 0
  std::uint32_t token;     // the step's input
  std::uint32_t text = 0;  // of a step that reads a prompt: whose; elsewhere each text has a state of its own
};

/// How to choose a token from the logits. Filters apply in this order: temperature, top-k, top-p.
struct Sampling {
  float temperature = 0;    // 0: always the likeliest token
  float top_p = 1;          // keep the likeliest tokens that together have this probability; 1 keeps all
  std::uint32_t top_k = 0;  // keep this many of the likeliest tokens; 0 keeps all
  std::uint32_t reserved = 0;
  std::uint64_t seed = 0;
};

/// The run parameter of the decode graph.
struct RunSettings {
  Sampling sampling;
  std::uint32_t prompt_count = 1;  // tokens in the prompt buffer; they are fed in, not chosen
  std::uint32_t stop_at_end = 1;   // an end-of-text token ends the run
};

/// What a step streams to the host: a token that was chosen.
struct WrittenToken {
  std::uint32_t token;
  std::uint32_t text;  // of those that are written at once, from 0
};

/// block.fail() code of Sample: a logit is infinite or not a number.
inline constexpr std::uint32_t kLogitsNotFinite = 1;

}  // namespace llama
