// Texts that come and go: many of random lengths through the places of a decode, and a long prompt beside texts that are
// being written.
#pragma once

#include "apps/llama/bench/rows.hpp"
#include "apps/llama/tuned/generator.hpp"

namespace llama {

/// Of texts drawn at random. A sample is one round's.
struct MixedTimes {
  std::uint32_t texts = 0, places = 0;
  std::uint32_t prompt = 0;  // tokens of the prompt that comes in beside others; 0: there is one place, and no others
  Samples written;           // tokens a second of all texts, prompts included in the time
  Samples endless;           // the same of as many texts as there are places, at the others' mean length, that never end
  Samples usual, slowest;    // ms between two tokens of a text while the prompt comes in: the median, and the longest
  Samples alone, beside;     // ms from when there is a place for the prompt to its first token
};

inline constexpr std::uint32_t kLongestMixedPrompt = 2000, kMostMixedTokens = 400, kPromptBeside = 2048;

/// `count` requests: prompts of 1 to kLongestMixedPrompt tokens and 1 to kMostMixedTokens tokens to write, both as far as the
/// context has room. The same for the same seed.
std::vector<Request> draw_texts(std::uint32_t count, int context, int vocabulary, std::uint64_t seed);

/// Positions for all of it, as far as the model was made for so many.
int positions_of_mixed(const Config& config);

/// `runs` rounds, at least one, of `count` texts. Some of these are written once more, each alone: throws std::runtime_error
/// where a token differs.
MixedTimes measure_mixed(TunedGenerator& generator, std::uint32_t count, int runs);

/// mixed.<model> (tokens/s; with .b<places> where there are not 64), and of the prompt beside others .slowest_step and .prompt
/// (ms).
std::vector<Row> mixed_rows(const std::string& model, const MixedTimes& times, const measure::Stamp& stamp);
std::string mixed_table(const std::string& model, const MixedTimes& times);

}  // namespace llama
