// cuBLAS as a peer, found when the program runs: nothing is linked, and where there is none its rows are left out.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

namespace measure {

/// Products of matrices by rows, with sums in float. A matrix by rows is its transpose by columns, as which cuBLAS reads it.
class Cublas {
 public:
  /// Null where the library is not found. Throws std::runtime_error if it lacks a function.
  static std::shared_ptr<const Cublas> find();
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  /// Starts C = A B^T of bf16 on a stream: A m x k, B n x k, C m x n. One thread calls. Throws std::runtime_error if the
  /// library does not start.
  void multiply(cudaStream_t stream, const void* a, const void* b, void* c, std::uint32_t m, std::uint32_t n,
                std::uint32_t k) const;
  /// The same of C = A B of floats, n x n each, without tensor cores.
  void multiply_floats(cudaStream_t stream, const float* a, const float* b, float* c, std::uint32_t n) const;

 private:
  Cublas() = default;
  struct Calls;
  void begin(cudaStream_t stream) const;

  std::unique_ptr<Calls> calls_;
};

}  // namespace measure
