// Times from inside kernels, so that launching is not part of them, and waits inside kernels that always end.
#pragma once

#include <cuda_runtime.h>
#include <cuda/atomic>
#include <cuda/ptx>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/measure/cuda_objects.hpp"

namespace measure {

/// What one block of a measuring kernel tells the host. A kernel gets an array of them, one for each block.
struct KernelReport {
  unsigned long long begin_ns;
  unsigned long long end_ns;
  unsigned gave_up;  // 1 if a wait ran out of budget
  unsigned wrong;    // 1 if a result was not what it had to be
};

/// Two seconds at 2 GHz: some hundred thousand times longer than any wait measured here.
constexpr long long kWaitBudgetCycles = 4'000'000'000;

/// A word other SMs see.
using DeviceWord = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;

/// One thread of the block notes when the measured part begins and ends. Plain stores: the
/// host reads them after the kernel's end.
__device__ inline void note_begin(KernelReport* report) { report[blockIdx.x].begin_ns = cuda::ptx::get_sreg_globaltimer(); }
__device__ inline void note_end(KernelReport* report) { report[blockIdx.x].end_ns = cuda::ptx::get_sreg_globaltimer(); }

/// Relaxed, since several threads of the block may say the same.
__device__ inline void note_wrong(KernelReport* report) {
  DeviceWord(report[blockIdx.x].wrong).store(1, cuda::memory_order_relaxed);
}
__device__ inline void note_gave_up(KernelReport* report) {
  DeviceWord(report[blockIdx.x].gave_up).store(1, cuda::memory_order_relaxed);
}

/// Polls `reached` until it is true. False, and a note in the report, if the budget ran out first. The clock
/// is read once in 64 polls, so that it does not slow down the polling that is being measured.
template <class Reached>
__device__ bool spin_until(KernelReport* report, Reached reached) {
  const long long begin = clock64();
  do {
#pragma unroll 1
    for (int poll = 0; poll < 64; ++poll) {
      if (reached()) return true;
    }
  } while (clock64() - begin < kWaitBudgetCycles);
  note_gave_up(report);
  return false;
}

/// How a measuring kernel is launched.
struct Shape {
  int blocks = 1;
  int threads = 32;
  int shared_bytes = 0;  // dynamic, a block
  bool cooperative = false;
};

/// Dynamic shared memory, in bytes, that together with what the kernel has statically is all that a block may
/// have.
template <class... Params>
int spare_shared_bytes(void (*kernel)(Params...)) {
  cudaFuncAttributes attributes{};
  check_cuda(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)), "cudaFuncGetAttributes",
             "The kernel may not be built for this GPU: add its architecture to FLYWHEEL_CUDA_ARCHITECTURES");
  return device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) - static_cast<int>(attributes.sharedSizeBytes);
}

/// One block on every SM, all there at once. The blocks ask for all the shared memory a block may have, which
/// is more than half of what an SM has, so no two of them can share one.
template <class... Params>
Shape one_block_each_sm(void (*kernel)(Params...), int threads) {
  return {.blocks = sm_count(), .threads = threads, .shared_bytes = spare_shared_bytes(kernel), .cooperative = true};
}

/// Launches measuring kernels, one at a time, and reads their reports.
class KernelTimer {
 public:
  explicit KernelTimer(std::string row) : row_(std::move(row)), reports_(kMaxBlocks) {}
  const Stream& stream() const { return stream_; }

  /// Time from the first note_begin to the last note_end of one launch, in us.
  template <class... Params, class... Args>
  double run(const Shape& shape, void (*kernel)(KernelReport*, Params...), Args... args) const {
    reset(shape.blocks);
    check_cuda(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    shape.shared_bytes),
               "cudaFuncSetAttribute");
    cudaLaunchAttribute cooperative{};
    cooperative.id = cudaLaunchAttributeCooperative;
    cooperative.val.cooperative = shape.cooperative ? 1 : 0;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(shape.blocks));
    config.blockDim = dim3(static_cast<unsigned>(shape.threads));
    config.dynamicSmemBytes = static_cast<std::size_t>(shape.shared_bytes);
    config.stream = stream_.get();
    config.attrs = &cooperative;
    config.numAttrs = 1;
    check_cuda(cudaLaunchKernelEx(&config, kernel, reports_.get(), static_cast<Params>(args)...), "cudaLaunchKernelEx",
               "If it is too large for this GPU, another program may hold a part of it (MPS, MIG)");
    return finish(shape.blocks);
  }

 private:
  static constexpr int kMaxBlocks = 2048;

  void reset(int blocks) const {
    if (blocks > kMaxBlocks) throw std::invalid_argument(row_ + ": too many blocks; raise KernelTimer::kMaxBlocks");
    const KernelReport fresh{.begin_ns = ~0ull, .end_ns = 0, .gave_up = 0, .wrong = 0};
    const std::vector<KernelReport> reports(static_cast<std::size_t>(blocks), fresh);
    check_cuda(
        cudaMemcpyAsync(reports_.get(), reports.data(), reports.size() * sizeof fresh, cudaMemcpyHostToDevice, stream_.get()),
        "cudaMemcpyAsync");
    stream_.synchronize();
  }

  double finish(int blocks) const {
    std::vector<KernelReport> reports(static_cast<std::size_t>(blocks));
    check_cuda(cudaMemcpyAsync(reports.data(), reports_.get(), reports.size() * sizeof(KernelReport), cudaMemcpyDeviceToHost,
                               stream_.get()),
               "cudaMemcpyAsync");
    stream_.synchronize();
    KernelReport whole{.begin_ns = ~0ull, .end_ns = 0, .gave_up = 0, .wrong = 0};
    for (const KernelReport& one : reports) {
      whole.begin_ns = std::min(whole.begin_ns, one.begin_ns);
      whole.end_ns = std::max(whole.end_ns, one.end_ns);
      whole.gave_up += one.gave_up;
      whole.wrong += one.wrong;
    }
    check(whole);
    return static_cast<double>(whole.end_ns - whole.begin_ns) / 1000;
  }

  void check(const KernelReport& whole) const {
    if (whole.gave_up != 0) {
      throw std::runtime_error(row_ + ": " + std::to_string(whole.gave_up) +
                               " blocks gave up waiting inside the kernel "
                               "after about two seconds. Leave the GPU to this program alone and run it again");
    }
    if (whole.wrong != 0) {
      throw std::runtime_error(row_ + ": " + std::to_string(whole.wrong) +
                               " blocks got wrong results. Do not trust "
                               "this GPU: look for memory errors with nvidia-smi -q -d ECC");
    }
    if (whole.begin_ns >= whole.end_ns) {
      throw std::runtime_error(row_ + ": the kernel noted no time. Take more work into one launch");
    }
  }

  std::string row_;
  Stream stream_;
  DeviceBuffer<KernelReport> reports_;
};

}  // namespace measure
