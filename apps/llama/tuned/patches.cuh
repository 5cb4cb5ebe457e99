// What the stream of halves leaves of some weights, and how the store part adds it: so the products are those of the weights
// as they are in the model's files.
//
// A half keeps most bf16 weights as they are (see tile.cuh). Of each other one the rest, a float, is a patch: of a trained
// model about 1 weight in 10,000 has one. The store part has nothing to do until sums come, so it reads the patches of its
// rows and their inputs meanwhile.
#pragma once

#include "apps/llama/tuned/multiply.cuh"

namespace llama {

/// A weight is from_half(half_of_weight(code)) / kWeightUnits + rest, exactly.
struct alignas(8) Patch {
  std::int32_t column;
  float rest;  // not 0
};
FLYWHEEL_TASK inline float rest_of_weight(std::uint32_t bf16) {
  return to_float(Bf16{static_cast<std::uint16_t>(bf16)}) - from_half(half_of_weight(bf16)) * (1 / kWeightUnits);
}

/// A matrix that the stream brings, in device memory. Portable bodies need the weights alone.
struct StreamedMatrix {
  const Bf16* weights;         // [rows][columns]
  const std::uint32_t* first;  // [rows + 1]: where the patches of each row begin, and where the last one's end
  const Patch* patches;        // row after row, by columns
};

/// Brings a line of memory to L2.
FLYWHEEL_TASK inline void bring_near([[maybe_unused]] const void* at) {
#ifdef __CUDA_ARCH__
  asm volatile("prefetch.global.L2 [%0];" ::"l"(at) : "memory");
#endif
}

/// A warp, when a task begins and what it reads is not there yet: the patches of rows first..end-1 are on their way to L2, so
/// that sum_patches() waits for no trip to GPU memory.
FLYWHEEL_TASK inline void bring_patches(const StreamedMatrix& matrix, int lane, int first, int end) {
  constexpr int kLine = 128;  // bytes
  constexpr int kBounds = kLine / static_cast<int>(sizeof(std::uint32_t)), kPatches = kLine / static_cast<int>(sizeof(Patch));
  const std::uint32_t* const bounds = matrix.first;
  for (int row = first + lane * kBounds; row < end + kBounds; row += kLanes * kBounds)
    bring_near(bounds + (row < end ? row : end));
  const std::uint32_t last = bounds[end];
  for (std::uint32_t at = bounds[first] + static_cast<std::uint32_t>(lane * kPatches); at < last; at += kLanes * kPatches)
    bring_near(matrix.patches + at);
}

/// A warp: the sums of what patches add to the lane's rows from `row` on, before `end`, each in the order of columns. `inputs`:
/// of the lane's sequence. Not out of line: what the caller has in registers would be spilled around the call.
template <int kEach, class Block>
FLYWHEEL_TASK LaneSums<kEach> sum_patches(const Block& block, const StreamedMatrix& matrix, const Stamped* inputs,
                                          WantedStamp wanted, int row, int end) {
  constexpr std::uint32_t kAtOnce = kEach == 1 ? 2 : 4;  // patches whose inputs are looked for together
  std::uint32_t bounds[kEach + 1];
#pragma unroll
  for (int i = 0; i <= kEach; ++i) bounds[i] = row < end ? matrix.first[row + i < end ? row + i : end] : 0;
  LaneSums<kEach> sums{};
  const std::uint32_t last = bounds[kEach];
  for (std::uint32_t first = bounds[0]; block.any(first < last); first += kAtOnce) {
    Patch some[kAtOnce] = {};
    Stamped words[kAtOnce] = {};
#pragma unroll
    for (std::uint32_t i = 0; i < kAtOnce; ++i)
      if (first + i < last) some[i] = matrix.patches[first + i];
    block.spin([&] {
      std::uint32_t wrong = 0;
#pragma unroll
      for (std::uint32_t i = 0; i < kAtOnce; ++i)
        if (first + i < last) words[i] = look_at(inputs[some[i].column / 2]);
#pragma unroll
      for (std::uint32_t i = 0; i < kAtOnce; ++i)
        if (first + i < last) wrong |= wanted.wrong(words[i]);
      return wrong == 0;
    });
#pragma unroll
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      const float input = from_half(words[i].bits() >> (some[i].column % 2 * 16) & 0xffffu) * kWeightUnits;
#pragma unroll
      for (int of = 0; of < kEach; ++of)
        if (first + i >= bounds[of] && first + i < bounds[of + 1]) sums.of[of] += some[i].rest * input;
    }
  }
  return sums;
}

/// What patches add to the lane's rows, of a task that multiplies with `input`.
template <int kEach, class Block>
FLYWHEEL_TASK LaneSums<kEach> patches_of_rows(const Block& block, const StreamedMatrix& matrix, const TiledInput& input,
                                              int columns, int sequence, int row, int end) {
  return sum_patches<kEach>(block, matrix, input.packed + (static_cast<unsigned>(sequence * columns) >> 1),
                            wanted_stamp(block, input.old), row, end);
}

}  // namespace llama
