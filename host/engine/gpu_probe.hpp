// Examines a GPU: whether a resident kernel can run on it, in which mode, and how much shared memory a worker gets.
// Included by the GPU engine; block_fit.cpp and gpu_probe.cpp implement it.
#pragma once

#include <functional>
#include <string>

#include "../../runtime/records/entry.hpp"
#include "../base/options.hpp"

namespace flywheel::detail {

/// What the library needs to know of a GPU.
struct GpuFacts {
  std::string name;
  int multiprocessors;
  int cooperative_launch;
  int has_watchdog;  // the GPU drives a display, which limits the time of kernels
  int shared_bytes_optin;
  double bytes_of_tick;  // rated memory bandwidth in bytes per tick of the SMs' clock; 0: not known
  int major = 0;         // of the compute capability
};

/// Fills in `facts`. False, with `why`, if the library cannot use the device. Sets CUDA_MODULE_LOADING to EAGER unless
/// it is set.
bool probe_gpu(int device, GpuFacts& facts, std::string& why);
/// True if the kernel must end when its work is done: Options::mode or FLYWHEEL_MODE asks for it or, if neither says
/// anything, a profiler, a sanitizer or a display's time limit needs it.
bool choose_drain(const Options& options, const GpuFacts& facts);

/// How the kernel uses the GPU.
struct GpuFit {
  std::uint32_t workers;
  std::uint32_t operand_pages;  // per worker
  std::uint32_t scratch_bytes;  // per worker
  std::uint32_t shared_bytes;   // dynamic shared memory: pages, then scratch, then handoff
};
/// Scratch beside pages at most, if Options::scratch_bytes has its default value: dynamic tasks have the pages, too.
inline constexpr std::size_t kScratchBesidePages = 32u << 10;

/// Divides the shared memory of a block among operand pages, scratch and handoffs. `own_bytes` is the kernel's static
/// shared memory. If Options::scratch_bytes has its default value, scratch shrinks until the fewest pages fit. Throws
/// CapacityError if they do not.
GpuFit fit_shared(bool has_operands, const Options& options, const GpuFacts& facts, std::size_t own_bytes);
/// The CUDA calls that read and set a kernel's limit of dynamic shared memory on the current device. Tests replace
/// them.
struct SharedLimitCalls {
  std::function<std::size_t(const void* kernel)> get;
  std::function<void(const void* kernel, std::size_t bytes)> set;
};
/// Raises the kernel's limit of dynamic shared memory to `bytes`. All runtimes with the same task list on one GPU share
/// the limit, so it is never lowered. A launch that uses less than the limit is not affected by it.
void raise_shared_limit(const void* kernel, std::size_t bytes, const SharedLimitCalls& calls);
/// Like the function above, with the CUDA runtime's calls.
void raise_shared_limit(const void* kernel, std::size_t bytes);
/// Loads the kernel, divides its shared memory, and checks that one block fits on an SM. Throws CapacityError if it
/// does not.
GpuFit fit_kernel(const KernelEntry& entry, const Options& options, const GpuFacts& facts);

}  // namespace flywheel::detail
