// Positions that a measurement or a check takes, against those that the model was made for. Sums are taken in 64 bits. All
// throw RequestError, which names the program's options.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/llama/checkpoint/config.hpp"

namespace llama {

/// Of a run from `start` on. `asked`: as what the tokens were asked for, such as "--tokens 256".
int positions_of_run(const Config& config, std::uint64_t start, std::uint64_t tokens, const std::string& asked);
/// Of a check of the first `positions` of a text.
int positions_of_check(const Config& config, std::uint64_t positions);
/// Of a prompt to be measured, with its first token.
int positions_of_prompt(const Config& config, std::uint64_t length);
/// Of a check of a few steps from each start.
int positions_of_contexts(const Config& config, const std::vector<std::uint32_t>& starts);

/// Where `llama bench` starts if it is not told: positions 32 and 1024, as far as the model has room for a run from there.
std::vector<std::uint32_t> default_starts(const Config& config, std::uint64_t tokens, const std::string& asked);

}  // namespace llama
