// Conjugate gradient by cuSPARSE and cuBLAS in a CUDA graph, as the peer of the solver's rows.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "apps/bench/cg/solver_libraries.hpp"
#include "apps/measure/cuda_objects.hpp"
#include "apps/sparse/csr.hpp"

namespace bench {

/// What an iteration's calls exchange, in device memory.
struct CgScalars {
  double zero = 0, one = 1;
  double rr = 0, rr_before = 0, p_a_p = 0, alpha = 0, minus_alpha = 0, beta = 0;
  double enough = 0;  // of rr
  std::uint32_t iterations = 0, most = 0;
};

/// The usual iteration, of a product, two sums and three updates. The loop is a WHILE node of the graph, which a kernel of one
/// thread decides on. Where the libraries cannot be captured into it, run() launches chunks of kChunk iterations and reads rr
/// in between. Errors: measure::CudaError and std::runtime_error.
class LibraryCg {
 public:
  static constexpr std::uint32_t kChunk = 16;

  LibraryCg(const std::shared_ptr<const SolverFunctions>& functions, const sparse::Matrix& a, double bound, std::uint32_t most);
  void set(const std::vector<double>& b) const;
  /// One solve, from launch to result.
  void run() const;
  std::uint32_t iterations() const { return scalars().iterations; }
  std::vector<double> x() const;
  /// Whether the device decides when to stop.
  bool decides_on_device() const { return whole_.has_value(); }
  /// Why not.
  const std::string& why_not() const { return why_not_; }

 private:
  void first_calls();
  void iteration_calls(cudaGraphConditionalHandle loop, bool in_loop);
  void capture(cudaGraph_t into, const std::function<void()>& calls) const;
  void make_loop();
  void make_chunks();
  void copy(void* to, const void* from, std::size_t bytes) const;
  CgScalars scalars() const;

  const std::uint32_t rows_;
  const double bound_;
  const measure::Stream stream_;
  const measure::DeviceBuffer<std::uint32_t> offsets_, columns_;
  const measure::DeviceBuffer<double> values_, b_, x_, r_, p_, s_;
  const measure::DeviceBuffer<CgScalars> scalars_;
  const measure::DeviceBuffer<unsigned char> workspace_;
  std::optional<measure::DeviceBuffer<unsigned char>> product_memory_;
  SolverCalls calls_;
  std::optional<measure::GraphExec> whole_, first_, chunk_;  // the first, or the other two
  std::string why_not_;
};

}  // namespace bench
