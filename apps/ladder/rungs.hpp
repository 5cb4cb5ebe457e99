// The rungs of the ladder: ways to multiply two matrices, each with one idea more than the one before.
#pragma once

#include <functional>
#include <span>

struct CUstream_st;

namespace ladder {

using Stream = CUstream_st*;  // cudaStream_t, without CUDA's headers

/// C = A B, all n x n floats by rows, in device memory. n is a multiple of kStep.
struct Problem {
  const float* a;
  const float* b;
  float* c;
  int n;
};
inline constexpr int kStep = 256;

/// Starts the product on a stream.
using Launch = std::function<void(Stream)>;

struct Rung {
  const char* name;  // of its row, "ladder.<name>"
  const char* idea;  // what it has that the one before has not
  Launch (*prepare)(const Problem&);
  bool needs_hopper;  // compute capability 9.0, or else 8.0
};

/// From the plainest on; all of float.
std::span<const Rung> rungs();

}  // namespace ladder
