// Owners of CUDA objects, and the check that stands behind every CUDA call. Host code only.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace measure {

/// A CUDA call that failed. The message names the call, CUDA's reason and what to do next.
class CudaError : public std::runtime_error {
 public:
  CudaError(cudaError_t status, const std::string& call, const std::string& remedy)
      : std::runtime_error(call + " failed: " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + "). " + remedy) {
  }
};

inline void check_cuda(cudaError_t status, const char* call,
                       const char* remedy =
                           "If an earlier row failed, mend that one first: an error inside a kernel "
                           "breaks all calls after it; otherwise look at nvidia-smi") {
  if (status != cudaSuccess) throw CudaError(status, call, remedy);
}

/// For destructors, which must not throw: says what failed and goes on.
inline void report_cuda(cudaError_t status, const char* call) noexcept {
  if (status != cudaSuccess) std::fprintf(stderr, "measure: %s failed: %s\n", call, cudaGetErrorString(status));
}

/// The value of one attribute of the current device.
inline int device_attribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&value, attribute, device), "cudaDeviceGetAttribute");
  return value;
}

inline int sm_count() { return device_attribute(cudaDevAttrMultiProcessorCount); }

namespace detail {
struct Destroy {
  void operator()(cudaStream_t stream) const noexcept { report_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy"); }
  void operator()(cudaEvent_t event) const noexcept { report_cuda(cudaEventDestroy(event), "cudaEventDestroy"); }
  void operator()(cudaGraph_t graph) const noexcept { report_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy"); }
  void operator()(cudaGraphExec_t exec) const noexcept { report_cuda(cudaGraphExecDestroy(exec), "cudaGraphExecDestroy"); }
};
struct FreeDevice {
  void operator()(void* memory) const noexcept { report_cuda(cudaFree(memory), "cudaFree"); }
};
struct FreePinned {
  void operator()(void* memory) const noexcept { report_cuda(cudaFreeHost(memory), "cudaFreeHost"); }
};
/// CUDA's handles are pointers to types it keeps to itself.
template <class Handle>
using Owner = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy>;
}  // namespace detail

/// A stream that does not wait for the legacy default stream. Priorities are numbers from 0 down; a lower one runs first.
class Stream {
 public:
  explicit Stream(int priority = 0) {
    cudaStream_t stream = nullptr;
    check_cuda(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), "cudaStreamCreateWithPriority");
    stream_.reset(stream);
  }
  cudaStream_t get() const { return stream_.get(); }
  void synchronize() const { check_cuda(cudaStreamSynchronize(get()), "cudaStreamSynchronize"); }

 private:
  detail::Owner<cudaStream_t> stream_;
};

/// A point in the work of a stream, for other streams to wait for.
class Event {
 public:
  Event() {
    cudaEvent_t event = nullptr;
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    event_.reset(event);
  }
  void record(const Stream& stream) const { check_cuda(cudaEventRecord(event_.get(), stream.get()), "cudaEventRecord"); }
  /// What is submitted to the stream from now on runs after the recorded point.
  void let_wait(const Stream& stream) const {
    check_cuda(cudaStreamWaitEvent(stream.get(), event_.get(), 0), "cudaStreamWaitEvent");
  }

 private:
  detail::Owner<cudaEvent_t> event_;
};

/// `count` uninitialised objects in device memory.
template <class T>
class DeviceBuffer {
  static_assert(std::is_trivially_copyable_v<T>, "device memory holds bytes: store a trivially copyable type");

 public:
  explicit DeviceBuffer(std::size_t count) : bytes_(count * sizeof(T)) {
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, bytes_), "cudaMalloc",
               "Free GPU memory: end the other programs that nvidia-smi lists on this GPU");
    memory_.reset(memory);
  }
  T* get() const { return static_cast<T*>(memory_.get()); }
  std::size_t bytes() const { return bytes_; }

  /// Sets every byte, in the order of the stream.
  void fill(int byte, const Stream& stream) const {
    check_cuda(cudaMemsetAsync(get(), byte, bytes_, stream.get()), "cudaMemsetAsync");
  }

 private:
  std::size_t bytes_;
  std::unique_ptr<void, detail::FreeDevice> memory_;
};

/// One object in pinned host memory that the GPU sees as well, value-initialised.
template <class T>
class MappedObject {
  static_assert(std::is_trivially_copyable_v<T>, "the GPU sees bytes: map a trivially copyable type");

 public:
  MappedObject() {
    void* memory = nullptr;
    check_cuda(cudaHostAlloc(&memory, sizeof(T), cudaHostAllocMapped), "cudaHostAlloc",
               "Raise the limit on locked memory (ulimit -l)");
    memory_.reset(memory);
    new (memory) T{};
    check_cuda(cudaHostGetDevicePointer(&device_, memory, 0), "cudaHostGetDevicePointer");
  }
  T& host() const { return *static_cast<T*>(memory_.get()); }
  T* device() const { return static_cast<T*>(device_); }

 private:
  std::unique_ptr<void, detail::FreePinned> memory_;
  void* device_ = nullptr;
};

/// A CUDA graph under construction.
class Graph {
 public:
  Graph() {
    cudaGraph_t graph = nullptr;
    check_cuda(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
    graph_.reset(graph);
  }
  cudaGraph_t get() const { return graph_.get(); }

  /// Adds a kernel that runs after all of `before`. `arguments`: a pointer to each, copied here; null if it has none.
  cudaGraphNode_t add(const void* kernel, int blocks, int threads, std::span<const cudaGraphNode_t> before,
                      void** arguments = nullptr) const {
    void* no_arguments[] = {nullptr};
    cudaKernelNodeParams node{};
    node.func = const_cast<void*>(kernel);
    node.gridDim = dim3(static_cast<unsigned>(blocks));
    node.blockDim = dim3(static_cast<unsigned>(threads));
    node.kernelParams = arguments ? arguments : no_arguments;
    cudaGraphNode_t added = nullptr;
    check_cuda(cudaGraphAddKernelNode(&added, get(), before.data(), before.size(), &node), "cudaGraphAddKernelNode");
    return added;
  }

 private:
  detail::Owner<cudaGraph_t> graph_;
};

/// A graph made ready to launch and uploaded, so that the first launch is like all others.
class GraphExec {
 public:
  GraphExec(const Graph& graph, const Stream& stream) {
    cudaGraphExec_t exec = nullptr;
    check_cuda(cudaGraphInstantiate(&exec, graph.get(), 0), "cudaGraphInstantiate",
               "A big graph needs device memory for its nodes: end the other programs on this GPU");
    exec_.reset(exec);
    check_cuda(cudaGraphUpload(exec, stream.get()), "cudaGraphUpload");
    stream.synchronize();
  }
  void launch(const Stream& stream) const { check_cuda(cudaGraphLaunch(exec_.get(), stream.get()), "cudaGraphLaunch"); }

 private:
  detail::Owner<cudaGraphExec_t> exec_;
};

}  // namespace measure
