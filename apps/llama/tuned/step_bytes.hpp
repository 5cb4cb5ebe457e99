// The bytes that a decode step cannot do without: what its time is held against.
#pragma once

#include <cstdint>

#include "apps/llama/checkpoint/config.hpp"

namespace llama {

/// Of all matrices in bf16 but the embedding table, unless that is the output matrix too; and of all norms and biases, in
/// float.
std::uint64_t weight_bytes(const Config& config);
/// Of the keys and values of one position of one text, in halves.
std::uint64_t position_bytes(const Config& config);
/// What one step of `sequences` texts reads, each with `positions` in its cache (a mean over steps may be a fraction), of which
/// layers with a window read the last.
double step_bytes(const Config& config, int sequences, double positions);
/// Of the matrices as the tuned tasks take them: whole groups of rows, whole steps of columns.
std::uint64_t stream_bytes(const Config& config);

}  // namespace llama
