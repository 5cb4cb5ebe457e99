// Weights and caches of random numbers, for measurements that need a model's shape and not its sense.
#pragma once

#include <cstdint>

#include "apps/llama/checkpoint/weights.hpp"
#include "apps/llama/tuned/memory.hpp"

namespace llama {

/// Weights as load_weights() lays them out, made on the device: bf16, normal around 0 with a deviation of 0.02, but
/// 1 / sqrt(hidden) for embedding and head, which gives logits a deviation of about 1, and 0.5 for biases; norms are
/// around 1. The same for the same seed, on any processor. The runtime must know FillRandom. Throws RequestError for sizes
/// that are no multiples of 8.
Weights random_weights(Runtime& runtime, const Config& config, std::uint64_t seed);

/// Keys and values of all positions, normal with a deviation of 1.
void fill_cache(Runtime& runtime, TunedMemory& memory, std::uint64_t seed);

}  // namespace llama
