// Tensor core instructions on the CPU, bit layouts as in the PTX ISA.
#pragma once

#include <bit>
#include <cstdint>

#include "support/fiber_executor.hpp"

namespace flywheel::testing {

/// The two bf16 in one register as floats.
struct Bf16Pair {
  static float low(std::uint32_t word) { return std::bit_cast<float>(word << 16); }
  static float high(std::uint32_t word) { return std::bit_cast<float>(word & 0xffff0000u); }
};
/// The same of IEEE halves.
struct HalfPair {
  static float low(std::uint32_t word) {
    const std::uint32_t magnitude = word & 0x7fffu;
    const float size = magnitude < 0x7c00u ? std::bit_cast<float>(magnitude << 13) * 0x1p112f  // denormal ones, too
                                           : std::bit_cast<float>(0x7f800000u | (magnitude & 1023) << 13);
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(size) | (word & 0x8000u)
                                                                         << 16);  // a branch is wrong half the time
  }
  static float high(std::uint32_t word) { return low(word >> 16); }
};

/// One mma.sync.m16n8k16.row.col.f32 with f32 sums, of bf16 or f16: c += a * b. PTX ISA, "Matrix Fragments for mma.m16n8k16
/// with floating point type". A tile's sums are in double and rounded once; tensor cores have errors of their own.
template <class Pair>
struct WarpTile {
  typedef double Row __attribute__((vector_size(64)));  // so that it is fast hardly optimised, too
  double a[16][16];
  Row b[16], c[16];

  void add_lane(std::uint32_t lane, const FiberExecutor::Post& post) {
    const auto* in_a = static_cast<const std::uint32_t*>(post.first);
    const auto* in_b = static_cast<const std::uint32_t*>(post.second);
    const auto* sums = static_cast<const float*>(post.result);
    const std::uint32_t group = lane >> 2, pair = lane % 4 * 2;
    for (std::uint32_t r = 0; r < 4; ++r) {
      double* at = &a[group + r % 2 * 8][pair + r / 2 * 8];
      at[0] = Pair::low(in_a[r]);
      at[1] = Pair::high(in_a[r]);
      c[group + r / 2 * 8][pair + r % 2] = sums[r];
    }
    for (std::uint32_t r = 0; r < 2; ++r) {
      b[pair + r * 8][group] = Pair::low(in_b[r]);
      b[pair + r * 8 + 1][group] = Pair::high(in_b[r]);
    }
  }
  void multiply_add() {
    for (int m = 0; m < 16; ++m) {
      Row sums = c[m];
      for (int k = 0; k < 16; ++k) sums += a[m][k] * b[k];
      c[m] = sums;
    }
  }
  void give_lane(std::uint32_t lane, const FiberExecutor::Post& post) const {
    auto* sums = static_cast<float*>(post.result);
    for (std::uint32_t r = 0; r < 4; ++r) sums[r] = static_cast<float>(c[(lane >> 2) + r / 2 * 8][lane % 4 * 2 + r % 2]);
  }
};

/// All lanes of the calling fiber's warp.
template <class Pair>
void fiber_multiply_add(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  FiberExecutor::current().exchange({"multiply_add()"}, {a, b, sums, 0}, [](FiberExecutor::Posts& posts) {
    WarpTile<Pair> tile;
    for (std::uint32_t lane = 0; lane < 32; ++lane) tile.add_lane(lane, posts[lane]);
    tile.multiply_add();
    for (std::uint32_t lane = 0; lane < 32; ++lane) tile.give_lane(lane, posts[lane]);
  });
}

/// The value of lane `source`, a number below 32, from each lane.
template <class T>
T fiber_exchange(const char* name, T value, std::uint32_t source) {
  static_assert(std::is_trivially_copyable_v<T>, "lanes exchange plain values");
  T result = value;
  FiberExecutor::current().exchange({name, sizeof(T)}, {&value, nullptr, &result, source}, [](FiberExecutor::Posts& posts) {
    for (const FiberExecutor::Post& post : posts) std::memcpy(post.result, posts[post.source].first, sizeof(T));
  });
  return result;
}

/// The votes of the calling fiber's warp, lane l's in bit l.
inline std::uint32_t fiber_ballot(const char* name, bool vote) {
  std::uint32_t all = 0;
  FiberExecutor::current().exchange({name}, {&vote, nullptr, &all, 0}, [](FiberExecutor::Posts& posts) {
    std::uint32_t together = 0;
    for (std::uint32_t l = 0; l < 32; ++l) together |= std::uint32_t{*static_cast<const bool*>(posts[l].first)} << l;
    for (const FiberExecutor::Post& post : posts) *static_cast<std::uint32_t*>(post.result) = together;
  });
  return all;
}

}  // namespace flywheel::testing
