// Attention over a split context: each part leaves a weighted sum of values, its largest score and its sum of weights;
// who is the last to leave one puts them together ("Flash-Decoding", Dao et al. 2023), in the order of the parts, so
// that the result does not depend on who that was. (Tried: parts leave stamped words and count themselves as they begin, so
// that the last one waits for words alone. Llama-3.2-1B at position 1024 took 0.730 ms a token on an H200 in place of 0.716.)
#pragma once

#include "apps/llama/fast/inputs.cuh"
#include "apps/llama/tasks/step.cuh"

namespace flywheel::llama {

/// Positions that one part takes at least: two blocks of 16 for each warp. With 512, Llama-3.2-1B took as long at position
/// 128, and 1.007 ms a token in place of 0.946 at 1024 (H200).
inline constexpr int kFewestPositions = 256;

/// A context up to here is not split: to put parts together takes as long. (Llama-3.2-1B on an H200, positions 128 to 383:
/// 0.706 ms a token in one part, 0.707 in parts of 256.)
inline constexpr int kAlone = 1024;

/// One part of one query head. In units of log2: weights are 2^(score - largest).
struct PartScale {
  float largest, sum;
};

/// All that parts of one layer leave, in one piece of memory: values [sequences][heads][splits][head_dim], results
/// [sequences][heads][head_dim] of the portable tasks, scales [sequences][heads][splits], a count for each
/// [sequence][head].
///
/// Each layer has its own. Attention is an early task: it follows the layer before by stamped words alone, which are relaxed
/// and order nothing but themselves. So in one layer's memory the next one's plain stores would race with combine()'s plain
/// loads on another SM, and its fetch_add with the count's reset. In memory of its own a layer's next use is in the next
/// pass, and the gate lies in between: the last part's loads and its reset come before the release in settle(), all parts
/// of the next pass after the acquire in GridBarrier::wait().
struct Partials {
  float* memory;  // zeros at first
  std::int16_t heads, splits;  // splits: a power of 2; divisions are slow on a GPU
  std::int16_t head_dim, sequences;

  FLYWHEEL_TASK std::size_t all_heads() const { return static_cast<std::size_t>(sequences * heads); }
  FLYWHEEL_TASK std::size_t parts() const { return all_heads() * static_cast<std::size_t>(splits); }
  FLYWHEEL_TASK std::size_t floats() const {
    return (parts() + all_heads()) * static_cast<std::size_t>(head_dim) + 2 * parts() + all_heads();
  }
  FLYWHEEL_TASK int columns() const { return heads * head_dim; }

  /// (Not std::countr_zero, which nvcc 13.0 makes 32 for all numbers on a device.)
  /// How many positions each part takes of a context of `position` + 1: kAlone, or a multiple of kFewestPositions.
  FLYWHEEL_TASK int share(std::uint32_t position) const {
    if (position < kAlone) return kAlone;
    const int each = (static_cast<int>(position) + splits) >> lowest_bit(static_cast<std::uint64_t>(splits));
    return (each + kFewestPositions - 1) / kFewestPositions * kFewestPositions;
  }
  /// Parts that have any: position / share + 1. The half keeps the quotient away from whole numbers.
  FLYWHEEL_TASK static int used(std::uint32_t position, int share) {
    return static_cast<int>((static_cast<float>(position) + .5f) * reciprocal(static_cast<float>(share))) + 1;
  }

  FLYWHEEL_TASK int index(int sequence, int head, int split) const { return (sequence * heads + head) * splits + split; }
  FLYWHEEL_TASK float* values(int index) const { return memory + static_cast<std::size_t>(index) * static_cast<std::size_t>(head_dim); }
  FLYWHEEL_TASK float* results() const { return memory + parts() * static_cast<std::size_t>(head_dim); }
  FLYWHEEL_TASK float* result(int sequence, int head) const { return results() + (sequence * heads + head) * head_dim; }
  FLYWHEEL_TASK PartScale& scale(int index) const {
    return reinterpret_cast<PartScale*>(results() + all_heads() * static_cast<std::size_t>(head_dim))[index];
  }

  /// One thread, when a part of these heads is written: whether it was the last of `used`.
  FLYWHEEL_TASK bool leave(int sequence, int head, int used) const {
    auto* counts = reinterpret_cast<std::uint32_t*>(&scale(0) + parts());
    const AtomicRef<std::uint32_t, Scope::device> count(counts[sequence * heads + head]);
    // Release: what this part wrote, which the block's barrier before this gathered. Acquire: pairs with the releases of
    // all other parts; the block's barrier after this hands it on.
    if (count.fetch_add(1, Order::acq_rel) + 1 != static_cast<std::uint32_t>(used)) return false;
    count.store(0, Order::relaxed);  // for the next pass, which the gate orders after this one
    return true;
  }

  /// One value of a head, from all its parts.
  FLYWHEEL_TASK float combine(int sequence, int head, int dim, int used) const {
    const int from = index(sequence, head, 0);
    float sum = 0, weights = 0, largest = -std::numeric_limits<float>::infinity();
    // The sums so far are brought down when a larger score turns up: so no load waits for another.
#pragma unroll 4
    for (int part = 0; part < used; ++part) {
      const PartScale one = scale(from + part);
      const float value = values(from + part)[dim], now = one.largest > largest ? one.largest : largest;
      const float keep = std::exp2(largest - now), weight = std::exp2(one.largest - now);
      largest = now;
      weights = weights * keep + weight * one.sum;
      sum = sum * keep + weight * value;
    }
    return sum * reciprocal(weights);
  }
};

}  // namespace flywheel::llama
