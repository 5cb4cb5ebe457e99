// Which models the tuned tasks compute.
#pragma once

#include "apps/llama/checkpoint/weights.hpp"
#include "apps/llama/tuned/memory.hpp"

namespace llama {

/// Tasks of attention number heads in a byte.
inline constexpr int kMostTunedHeads = 255;

/// Throws RequestError for a model that has no tuned tasks, see build_tuned_graph(), and for a number of sequences that no
/// step has.
void check_tuned(const Config& config, const Weights& weights, const TunedMemory& memory);

}  // namespace llama
