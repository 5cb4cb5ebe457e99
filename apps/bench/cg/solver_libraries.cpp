#include "apps/bench/cg/solver_libraries.hpp"

#include "apps/measure/loaded_library.hpp"

namespace bench {

// From cublas_api.h, cusparse.h and library_types.h, which a machine without the libraries lacks. NVIDIA's documentation of
// cuSPARSE, "cusparseSpMV()", and of cuBLAS, "level-1 functions".
struct SolverFunctions {
  int (*cublas_create)(void**) = nullptr;
  int (*cublas_destroy)(void*) = nullptr;
  int (*cublas_stream)(void*, cudaStream_t) = nullptr;
  int (*cublas_pointers)(void*, int) = nullptr;
  int (*cublas_workspace)(void*, void*, std::size_t) = nullptr;
  int (*dot)(void*, int, const double*, int, const double*, int, double*) = nullptr;
  int (*axpy)(void*, int, const double*, const double*, int, double*, int) = nullptr;
  int (*scale)(void*, int, const double*, double*, int) = nullptr;
  int (*sparse_create)(void**) = nullptr;
  int (*sparse_destroy)(void*) = nullptr;
  int (*sparse_stream)(void*, cudaStream_t) = nullptr;
  int (*sparse_pointers)(void*, int) = nullptr;
  int (*create_csr)(void**, std::int64_t, std::int64_t, std::int64_t, void*, void*, void*, int, int, int, int) = nullptr;
  int (*destroy_matrix)(const void*) = nullptr;
  int (*create_vector)(void**, std::int64_t, void*, int) = nullptr;
  int (*destroy_vector)(const void*) = nullptr;
  int (*product_bytes)(void*, int, const void*, const void*, const void*, const void*, void*, int, int, std::size_t*) = nullptr;
  int (*prepare_product)(void*, int, const void*, const void*, const void*, const void*, void*, int, int, void*) = nullptr;
  int (*product)(void*, int, const void*, const void*, const void*, const void*, void*, int, int, void*) = nullptr;
};

using measure::check_library;
using measure::find_function;
using measure::load_library;

namespace {
constexpr int kScalarsOnDevice = 1, kAsItIs = 0, kIndex32 = 2, kFromZero = 0, kDouble = 1, kDefaultProduct = 0;
}

std::shared_ptr<const SolverFunctions> find_solver_functions() {
  void* const cublas = load_library({"libcublas.so.13", "libcublas.so.12", "libcublas.so"});
  void* const sparse = load_library({"libcusparse.so.12", "libcusparse.so"});
  if (!cublas || !sparse) return nullptr;
  auto found = std::make_shared<SolverFunctions>();
  find_function(cublas, "cublasCreate_v2", found->cublas_create);
  find_function(cublas, "cublasDestroy_v2", found->cublas_destroy);
  find_function(cublas, "cublasSetStream_v2", found->cublas_stream);
  find_function(cublas, "cublasSetPointerMode_v2", found->cublas_pointers);
  find_function(cublas, "cublasSetWorkspace_v2", found->cublas_workspace);
  find_function(cublas, "cublasDdot_v2", found->dot);
  find_function(cublas, "cublasDaxpy_v2", found->axpy);
  find_function(cublas, "cublasDscal_v2", found->scale);
  find_function(sparse, "cusparseCreate", found->sparse_create);
  find_function(sparse, "cusparseDestroy", found->sparse_destroy);
  find_function(sparse, "cusparseSetStream", found->sparse_stream);
  find_function(sparse, "cusparseSetPointerMode", found->sparse_pointers);
  find_function(sparse, "cusparseCreateCsr", found->create_csr);
  find_function(sparse, "cusparseDestroySpMat", found->destroy_matrix);
  find_function(sparse, "cusparseCreateDnVec", found->create_vector);
  find_function(sparse, "cusparseDestroyDnVec", found->destroy_vector);
  find_function(sparse, "cusparseSpMV_bufferSize", found->product_bytes);
  find_function(sparse, "cusparseSpMV_preprocess", found->prepare_product);
  find_function(sparse, "cusparseSpMV", found->product);
  return found;
}

struct SolverCalls::State {
  explicit State(std::shared_ptr<const SolverFunctions> found) : call(std::move(found)) {}
  // Its answers are of no use to a destructor.
  ~State() {
    if (from) call->destroy_vector(from);
    if (to) call->destroy_vector(to);
    if (matrix) call->destroy_matrix(matrix);
    if (cublas) call->cublas_destroy(cublas);
    if (sparse) call->sparse_destroy(sparse);
  }

  const std::shared_ptr<const SolverFunctions> call;
  void *cublas = nullptr, *sparse = nullptr, *matrix = nullptr, *from = nullptr, *to = nullptr, *memory = nullptr;
  const double* zero_one = nullptr;
  int rows = 0;
};

SolverCalls::SolverCalls(std::shared_ptr<const SolverFunctions> functions, cudaStream_t stream)
    : state_(std::make_unique<State>(std::move(functions))) {
  const SolverFunctions& call = *state_->call;
  check_library(call.cublas_create(&state_->cublas), "cublasCreate");
  check_library(call.cublas_stream(state_->cublas, stream), "cublasSetStream");
  check_library(call.cublas_pointers(state_->cublas, kScalarsOnDevice), "cublasSetPointerMode");
  check_library(call.sparse_create(&state_->sparse), "cusparseCreate");
  check_library(call.sparse_stream(state_->sparse, stream), "cusparseSetStream");
  check_library(call.sparse_pointers(state_->sparse, kScalarsOnDevice), "cusparseSetPointerMode");
}
SolverCalls::~SolverCalls() = default;

void SolverCalls::set_workspace(void* memory, std::size_t bytes) {
  check_library(state_->call->cublas_workspace(state_->cublas, memory, bytes), "cublasSetWorkspace");
}

std::size_t SolverCalls::set_product(const DeviceCsr& a, double* from, double* to, const double* zero_one) {
  State& state = *state_;
  state.rows = static_cast<int>(a.rows);
  state.zero_one = zero_one;
  check_library(state.call->create_csr(&state.matrix, a.rows, a.rows, a.entries, a.offsets, a.columns, a.values, kIndex32,
                                       kIndex32, kFromZero, kDouble),
                "cusparseCreateCsr");
  check_library(state.call->create_vector(&state.from, a.rows, from, kDouble), "cusparseCreateDnVec");
  check_library(state.call->create_vector(&state.to, a.rows, to, kDouble), "cusparseCreateDnVec");
  std::size_t bytes = 0;
  check_library(state.call->product_bytes(state.sparse, kAsItIs, zero_one + 1, state.matrix, state.from, zero_one, state.to,
                                          kDouble, kDefaultProduct, &bytes),
                "cusparseSpMV_bufferSize");
  return bytes;
}

void SolverCalls::prepare_product(void* memory) {
  State& state = *state_;
  state.memory = memory;
  check_library(state.call->prepare_product(state.sparse, kAsItIs, state.zero_one + 1, state.matrix, state.from, state.zero_one,
                                            state.to, kDouble, kDefaultProduct, memory),
                "cusparseSpMV_preprocess");
}

void SolverCalls::multiply() {
  State& state = *state_;
  check_library(state.call->product(state.sparse, kAsItIs, state.zero_one + 1, state.matrix, state.from, state.zero_one,
                                    state.to, kDouble, kDefaultProduct, state.memory),
                "cusparseSpMV");
}
void SolverCalls::dot(const double* x, const double* y, double* result) {
  check_library(state_->call->dot(state_->cublas, state_->rows, x, 1, y, 1, result), "cublasDdot");
}
void SolverCalls::add(const double* a, const double* x, double* y) {
  check_library(state_->call->axpy(state_->cublas, state_->rows, a, x, 1, y, 1), "cublasDaxpy");
}
void SolverCalls::scale(const double* a, double* x) {
  check_library(state_->call->scale(state_->cublas, state_->rows, a, x, 1), "cublasDscal");
}

}  // namespace bench
