// cuSPARSE and cuBLAS as a peer of the solver, found when the program runs: nothing is linked, and where one of them is missing
// the peer's rows are left out.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace bench {

struct SolverFunctions;
/// Null where a library is not found. Throws std::runtime_error if one lacks a function.
std::shared_ptr<const SolverFunctions> find_solver_functions();

/// A square matrix of double in rows (CSR), in device memory.
struct DeviceCsr {
  std::uint32_t* offsets;
  std::uint32_t* columns;
  double* values;
  std::uint32_t rows, entries;
};

/// Calls on one stream, whose scalars lie in device memory, so that none waits for the GPU. They can be captured, but for the
/// first of each kind, in which libraries load their kernels. One thread uses it. Errors: std::runtime_error.
class SolverCalls {
 public:
  SolverCalls(std::shared_ptr<const SolverFunctions> functions, cudaStream_t stream);
  ~SolverCalls();
  SolverCalls(const SolverCalls&) = delete;
  SolverCalls& operator=(const SolverCalls&) = delete;

  /// What cuBLAS may write to, which it would allocate in a graph otherwise. It asks for 32 MB on Hopper.
  void set_workspace(void* memory, std::size_t bytes);
  /// The product to = A from is for these vectors from here on. `zero_one`: the two numbers. Returns the bytes that it needs.
  std::size_t set_product(const DeviceCsr& a, double* from, double* to, const double* zero_one);
  /// Prepares the product; so many bytes of device memory are its own then.
  void prepare_product(void* memory);

  void multiply();
  void dot(const double* x, const double* y, double* result);
  /// y += a x.
  void add(const double* a, const double* x, double* y);
  /// x = a x.
  void scale(const double* a, double* x);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bench
