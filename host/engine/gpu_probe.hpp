// What kind of GPU this is, and whether a resident kernel can live on it.
#pragma once

#include <functional>
#include <string>

#include "../base/options.hpp"
#include "../../runtime/records/entry.hpp"

namespace flywheel {

struct GpuFacts {
  std::string name;
  int multiprocessors;
  int cooperative_launch;
  int has_watchdog;          // a display's time limit on kernels
  int shared_bytes_optin;
  double bytes_of_tick;      // that memory brings in a tick of the SMs' clock, as it is rated; 0: not known
};

/// False (and why) if the device cannot be used at all.
bool probe_gpu(int device, GpuFacts& facts, std::string& why);
/// Whether kernels must end by themselves here: asked for, or because of a profiler, sanitizer or display.
bool choose_drain(const Options& options, const GpuFacts& facts);

/// What of the kernel fits on the GPU.
struct GpuFit {
  std::uint32_t workers;
  std::uint32_t operand_pages;  // of a worker
  std::uint32_t scratch_bytes;  // of a worker
  std::uint32_t shared_bytes;   // dynamic shared memory: pages, then scratch, then handoff
};
/// What of a kernel fits whose blocks take `own_bytes` of shared memory of their own. Scratch that was not asked for gives
/// way to the fewest pages. Throws CapacityError.
GpuFit fit_shared(bool has_operands, const Options& options, const GpuFacts& facts, std::size_t own_bytes);
/// The two CUDA calls on a kernel's limit of dynamic shared memory, for the current device.
struct SharedLimitCalls {
  std::function<std::size_t(const void* kernel)> get;
  std::function<void(const void* kernel, std::size_t bytes)> set;
};
/// Lets blocks of the kernel have `bytes` of dynamic shared memory. All runtimes of a task list on one GPU share the limit, so it
/// only grows: a launch with less than the limit is as good.
void raise_shared_limit(const void* kernel, std::size_t bytes, const SharedLimitCalls& calls);
/// The same with CUDA's own calls.
void raise_shared_limit(const void* kernel, std::size_t bytes);
/// Loads the kernel and checks that one block fits on each SM.
GpuFit fit_kernel(const KernelEntry& entry, const Options& options, const GpuFacts& facts);

}  // namespace flywheel
