// cuBLAS as a peer, found when the program runs: nothing is linked, and where there is none its rows are left out.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

namespace bench {

/// C = A B^T of bf16 with sums in float: A m x k, B n x k, C m x n, by rows. A matrix by rows is its transpose by columns, as
/// which cuBLAS reads it.
class Cublas {
 public:
  /// Null where the library is not found. Throws std::runtime_error if it lacks a function.
  static std::shared_ptr<const Cublas> find();
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  /// Starts one product on a stream. One thread calls. Throws std::runtime_error if the library does not start.
  void multiply(cudaStream_t stream, const void* a, const void* b, void* c, std::uint32_t m, std::uint32_t n,
                std::uint32_t k) const;

 private:
  Cublas() = default;
  struct Calls;
  std::unique_ptr<Calls> calls_;
};

}  // namespace bench
