#include "apps/measure/cublas.hpp"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace measure {

namespace {
// From cublas_api.h and library_types.h, which a machine without the library lacks. NVIDIA's documentation of cuBLAS,
// "cublasGemmEx()".
constexpr int kNoTranspose = 0, kTranspose = 1, kFloat = 0, kBf16 = 14, kComputeFloat = 68, kDefaultAlgorithm = -1;
using Handle = void*;

void check(int status, const char* call) {
  if (status != 0)
    throw std::runtime_error(std::string(call) + " failed with status " + std::to_string(status) +
                             ": look it up at cublasStatus_t; a driver older than the library is one cause");
}

template <class F>
F find_symbol(void* library, const char* name) {
  void* const found = dlsym(library, name);
  if (!found) throw std::runtime_error(std::string("libcublas has no ") + name + ": install a newer one");
  return reinterpret_cast<F>(found);
}
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
  void* library = nullptr;
  for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so"})
    if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) return nullptr;
  std::shared_ptr<Cublas> made(new Cublas);
  made->calls_ = std::make_unique<Calls>();
  Calls& calls = *made->calls_;
  calls.create = find_symbol<decltype(calls.create)>(library, "cublasCreate_v2");
  calls.destroy = find_symbol<decltype(calls.destroy)>(library, "cublasDestroy_v2");
  calls.set_stream = find_symbol<decltype(calls.set_stream)>(library, "cublasSetStream_v2");
  calls.gemm = find_symbol<decltype(calls.gemm)>(library, "cublasGemmEx");
  return made;
}

Cublas::~Cublas() {
  if (calls_ && calls_->handle) calls_->destroy(calls_->handle);
}

void Cublas::begin(cudaStream_t stream) const {
  if (!calls_->handle) check(calls_->create(&calls_->handle), "cublasCreate");
  check(calls_->set_stream(calls_->handle, stream), "cublasSetStream");
}

void Cublas::multiply(cudaStream_t stream, const void* a, const void* b, void* c, std::uint32_t m, std::uint32_t n,
                      std::uint32_t k) const {
  begin(stream);
  const float one = 1, zero = 0;
  const auto rows = static_cast<int>(n), columns = static_cast<int>(m), depth = static_cast<int>(k);
  check(calls_->gemm(calls_->handle, kTranspose, kNoTranspose, rows, columns, depth, &one, b, kBf16, depth, a, kBf16, depth,
                     &zero, c, kBf16, rows, kComputeFloat, kDefaultAlgorithm),
        "cublasGemmEx");
}

void Cublas::multiply_floats(cudaStream_t stream, const float* a, const float* b, float* c, std::uint32_t n) const {
  begin(stream);
  const float one = 1, zero = 0;
  const auto size = static_cast<int>(n);
  check(calls_->gemm(calls_->handle, kNoTranspose, kNoTranspose, size, size, size, &one, b, kFloat, size, a, kFloat, size,
                     &zero, c, kFloat, size, kComputeFloat, kDefaultAlgorithm),
        "cublasGemmEx");
}

}  // namespace measure
