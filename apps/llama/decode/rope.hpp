// Rotary embedding: the angles of every position.
#pragma once

#include <vector>

#include "apps/llama/checkpoint/config.hpp"

namespace llama {

/// [context][head_dim / 2][cos, sin]. Made once on the host, so that all processors turn by the same numbers.
/// Angles are rounded to float where transformers rounds them.
std::vector<float> rope_table(const Config& config, int context);

}  // namespace llama
