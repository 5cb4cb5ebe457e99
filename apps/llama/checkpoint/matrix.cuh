// A weight matrix as a checkpoint's tensors are kept in device memory.
#pragma once

#include <flywheel/task.cuh>

#include <bit>
#include <cstdint>

namespace llama {

using namespace flywheel;

/// The upper half of a float.
struct Bf16 {
  std::uint16_t bits;
};

FLYWHEEL_TASK inline float to_float(float value) { return value; }
FLYWHEEL_TASK inline float to_float(Bf16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }

/// Row-major, rows 16-byte aligned: `columns` is a multiple of 8.
struct Matrix {
  const void* data;
  std::int32_t columns;
  std::uint32_t is_bf16;  // else float

  /// use(pointer to the first weight), with the pointer's true type.
  template <class Use>
  FLYWHEEL_TASK void visit(Use&& use) const {
    is_bf16 ? use(static_cast<const Bf16*>(data)) : use(static_cast<const float*>(data));
  }
};

inline constexpr int kChunk = 8;  // columns one lane takes at a time: 16 bytes of bf16

}  // namespace llama
