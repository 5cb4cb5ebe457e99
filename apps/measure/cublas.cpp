#include "apps/measure/cublas.hpp"

#include "apps/measure/loaded_library.hpp"

namespace measure {

namespace {
// From cublas_api.h and library_types.h, which a machine without the library lacks. NVIDIA's documentation of cuBLAS,
// "cublasGemmEx()".
constexpr int kNoTranspose = 0, kTranspose = 1, kFloat = 0, kBf16 = 14, kComputeFloat = 68, kDefaultAlgorithm = -1;
using Handle = void*;
}  // namespace

struct Cublas::Calls {
  Handle handle = nullptr;  // from the first product on: there may be the library and no GPU
  int (*create)(Handle*) = nullptr;
  int (*destroy)(Handle) = nullptr;
  int (*set_stream)(Handle, cudaStream_t) = nullptr;
  int (*gemm)(Handle, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int, const void*, void*,
              int, int, int, int) = nullptr;
};

std::shared_ptr<const Cublas> Cublas::find() {
  void* const library = load_library({"libcublas.so.13", "libcublas.so.12", "libcublas.so"});
  if (!library) return nullptr;
  std::shared_ptr<Cublas> made(new Cublas);
  made->calls_ = std::make_unique<Calls>();
  Calls& calls = *made->calls_;
  find_function(library, "cublasCreate_v2", calls.create);
  find_function(library, "cublasDestroy_v2", calls.destroy);
  find_function(library, "cublasSetStream_v2", calls.set_stream);
  find_function(library, "cublasGemmEx", calls.gemm);
  return made;
}

Cublas::~Cublas() {
  if (calls_ && calls_->handle) calls_->destroy(calls_->handle);
}

void Cublas::begin(cudaStream_t stream) const {
  if (!calls_->handle) check_library(calls_->create(&calls_->handle), "cublasCreate");
  check_library(calls_->set_stream(calls_->handle, stream), "cublasSetStream");
}

void Cublas::multiply(cudaStream_t stream, const void* a, const void* b, void* c, std::uint32_t m, std::uint32_t n,
                      std::uint32_t k) const {
  begin(stream);
  const float one = 1, zero = 0;
  const auto rows = static_cast<int>(n), columns = static_cast<int>(m), depth = static_cast<int>(k);
  check_library(calls_->gemm(calls_->handle, kTranspose, kNoTranspose, rows, columns, depth, &one, b, kBf16, depth, a, kBf16,
                             depth, &zero, c, kBf16, rows, kComputeFloat, kDefaultAlgorithm),
                "cublasGemmEx");
}

void Cublas::multiply_floats(cudaStream_t stream, const float* a, const float* b, float* c, std::uint32_t n) const {
  begin(stream);
  const float one = 1, zero = 0;
  const auto size = static_cast<int>(n);
  check_library(calls_->gemm(calls_->handle, kNoTranspose, kNoTranspose, size, size, size, &one, b, kFloat, size, a, kFloat,
                             size, &zero, c, kFloat, size, kComputeFloat, kDefaultAlgorithm),
                "cublasGemmEx");
}

}  // namespace measure
