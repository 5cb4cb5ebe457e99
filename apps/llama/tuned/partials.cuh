// Attention over a split context: each part leaves a weighted sum of values, its largest score and its sum of weights
// ("Flash-Decoding", Dao et al. 2023), in stamped words. The tuned parts then put them together side by side, a share of the
// dimensions each: see join.cuh. The portable part that is the last to leave does it alone.
#pragma once

#include "apps/llama/decode/step.cuh"
#include "apps/llama/tuned/inputs.cuh"

namespace llama {

/// Positions that one part takes at least: two blocks of 16 for each warp (0.946 ms a token at position 1024 against
/// 1.007 with 512, see tuning.md).
inline constexpr int kFewestPositions = 256;

/// A part takes a multiple of this (0.732 ms a token at position 8192 against 0.734 with 128, see tuning.md).
inline constexpr int kUnit = 64;

/// A context up to here is not split: to put parts together takes as long (0.706 ms a token at positions 128 to 383 against
/// 0.707 in parts of 256, see tuning.md).
inline constexpr int kAlone = 1024;

/// All that parts of one layer leave, in one piece of memory: values [sequences][heads][splits][head_dim], scales
/// [sequences][heads][splits], and of the portable tasks results [sequences][heads][head_dim] and a count for each
/// [sequence][head].
///
/// Each layer has its own, so that every word is written once in a pass: see stamped.hpp.
struct Partials {
  Stamped* memory;             // zeros at first
  std::int16_t heads, splits;  // splits: a power of 2; divisions are slow on a GPU
  std::int16_t head_dim, sequences;

  FLYWHEEL_TASK std::size_t all_heads() const { return static_cast<std::size_t>(sequences * heads); }
  FLYWHEEL_TASK std::size_t parts() const { return all_heads() * static_cast<std::size_t>(splits); }
  /// Of all; an even number: those of the next layer, which lie behind, are loaded two at a time, too.
  FLYWHEEL_TASK std::size_t words() const {
    const auto dims = static_cast<std::size_t>(head_dim);
    return (parts() * (dims + 2) + all_heads() * (dims / 2 + 1) + 1) / 2 * 2;
  }
  FLYWHEEL_TASK int columns() const { return heads * head_dim; }

  /// (Not std::countr_zero, which nvcc 13.0 makes 32 for all numbers on a device.)
  /// How many positions each part takes of a context of `position` + 1: kAlone, or a multiple of kUnit.
  FLYWHEEL_TASK int share(std::uint32_t position) const {
    if (position < kAlone) return kAlone;
    const int each = (static_cast<int>(position) + splits) >> flywheel::detail::lowest_bit(static_cast<std::uint64_t>(splits));
    return (each + kUnit - 1) / kUnit * kUnit;
  }
  /// Parts that have any: position / share + 1. The half keeps the quotient away from whole numbers.
  FLYWHEEL_TASK static int used(std::uint32_t position, int share) {
    return static_cast<int>((static_cast<float>(position) + .5f) * reciprocal(static_cast<float>(share))) + 1;
  }

  FLYWHEEL_TASK int index(int sequence, int head, int split) const { return (sequence * heads + head) * splits + split; }
  /// [head_dim]
  FLYWHEEL_TASK Stamped* values(int index) const {
    return memory + static_cast<std::size_t>(index) * static_cast<std::size_t>(head_dim);
  }
  /// A part's largest score, in units of log2: weights are 2^(score - largest); and the sum of its weights.
  FLYWHEEL_TASK StampedPair& scale(int index) const {
    return reinterpret_cast<StampedPair*>(memory + parts() * static_cast<std::size_t>(head_dim))[index];
  }
  FLYWHEEL_TASK float* results() const { return reinterpret_cast<float*>(&scale(0) + parts()); }
  FLYWHEEL_TASK float* result(int sequence, int head) const { return results() + (sequence * heads + head) * head_dim; }

  /// Portable: one thread, when a part of these heads is written: whether it was the last of `used`.
  FLYWHEEL_TASK bool leave(int sequence, int head, int used) const {
    auto* counts = reinterpret_cast<std::uint32_t*>(results() + all_heads() * static_cast<std::size_t>(head_dim));
    const AtomicRef<std::uint32_t, Scope::device> count(counts[sequence * heads + head]);
    // Release: what this part wrote, which the block's barrier before this gathered. Acquire: pairs with the releases of
    // all other parts; the block's barrier after this hands it on.
    if (count.fetch_add(1, Order::acq_rel) + 1 != static_cast<std::uint32_t>(used)) return false;
    count.store(0, Order::relaxed);  // for the next pass, which comes after this one
    return true;
  }

  /// Portable: one value of a head, from all its parts.
  FLYWHEEL_TASK float combine(int sequence, int head, int dim, int used) const {
    const int from = index(sequence, head, 0);
    float sum = 0, weights = 0, largest = -std::numeric_limits<float>::infinity();
    for (int part = 0; part < used; ++part) {
      const float score = look_at(scale(from + part).first).value();
      largest = score > largest ? score : largest;
    }
    for (int part = 0; part < used; ++part) {
      const float weight = std::exp2(look_at(scale(from + part).first).value() - largest);
      weights += weight * look_at(scale(from + part).second).value();
      sum += weight * look_at(values(from + part)[dim]).value();
    }
    return sum / weights;
  }
};

}  // namespace llama
