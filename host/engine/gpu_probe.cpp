#include "gpu_probe.hpp"

#include <algorithm>
#include <cstdlib>

#include "../base/cuda_error.hpp"
#include "../base/log.hpp"
#include "../base/options_check.hpp"

namespace flywheel::detail {

namespace {

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  FLYWHEEL_CUDA(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

bool find_device(int device, std::string& why) {
  int driver = 0, count = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    why = "there is no NVIDIA driver on this machine";
    return false;
  }
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    why = std::string("the driver finds no GPU: ") + cudaGetErrorString(error) + " (" + cuda_remedy(error) + ")";
    return false;
  }
  if (device >= count) why = "Options::device is " + std::to_string(device) + " and there are " + std::to_string(count);
  return device < count;
}

/// The environment variable or tool that requires drain mode, or null. Such tools serialise or intercept kernels, and a
/// kernel that waits for the host would hang.
const char* reason_to_drain() {
  const char* blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (blocking && *blocking == '1') return "CUDA_LAUNCH_BLOCKING=1";
  if (std::getenv("NV_SANITIZER_INJECTION_PORT_BASE") || std::getenv("NV_COMPUTE_PROFILER_PERFWORKS_DIR") ||
      std::getenv("NV_TPS_LAUNCH_UUID") || std::getenv("CUDA_INJECTION64_PATH"))
    return "a profiler or sanitizer is attached";
  return nullptr;
}

/// The rated memory bandwidth, in bytes per tick of the SMs' clock. Each line of the bus transfers two bits per cycle
/// of the memory clock.
double bytes_of_tick(int device) {
  const int sm_khz = attribute(cudaDevAttrClockRate, device);
  const double bytes = 2. * attribute(cudaDevAttrGlobalMemoryBusWidth, device) / 8;
  return sm_khz > 0 ? bytes * attribute(cudaDevAttrMemoryClockRate, device) / sm_khz : 0;
}

}  // namespace

bool probe_gpu(int device, GpuFacts& facts, std::string& why) {
  // This must precede the first CUDA call that creates a context: with lazy loading, loading a kernel would wait for
  // the resident one.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  if (!find_device(device, why)) return false;
  cudaDeviceProp properties{};
  FLYWHEEL_CUDA(cudaGetDeviceProperties(&properties, device));
  facts = {properties.name,
           properties.multiProcessorCount,
           attribute(cudaDevAttrCooperativeLaunch, device),
           attribute(cudaDevAttrKernelExecTimeout, device),
           attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
           bytes_of_tick(device),
           properties.major};
  if (properties.major < 8) why = std::string(facts.name) + " is older than compute capability 8.0";
  else if (!facts.cooperative_launch) why = std::string(facts.name) + " cannot launch cooperative kernels (MPS or vGPU?)";
  return why.empty();
}

bool choose_drain(const Options& options, const GpuFacts& facts) {
  const Mode mode = options.mode == Mode::automatic ? mode_of_environment() : options.mode;
  if (mode != Mode::automatic) return mode == Mode::drain;
  const char* reason = facts.has_watchdog ? "a display's watchdog ends long kernels on this GPU" : reason_to_drain();
  if (reason) log::warn(std::string("drain mode: ") + reason + ". Set Options::mode to choose yourself.");
  return reason != nullptr;
}

void raise_shared_limit(const void* kernel, std::size_t bytes) {
  const auto get = [](const void* function) {
    cudaFuncAttributes attributes{};
    FLYWHEEL_CUDA(cudaFuncGetAttributes(&attributes, function));
    return static_cast<std::size_t>(std::max(attributes.maxDynamicSharedSizeBytes, 0));
  };
  const auto set = [](const void* function, std::size_t limit) {
    FLYWHEEL_CUDA(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(limit)));
  };
  raise_shared_limit(kernel, bytes, {get, set});
}

GpuFit fit_kernel(const KernelEntry& entry, const Options& options, const GpuFacts& facts) {
  cudaFuncAttributes attributes{};
  FLYWHEEL_CUDA(cudaFuncGetAttributes(&attributes, entry.kernel));  // also loads the kernel
  const GpuFit fit = fit_shared(entry.has_operands, options, facts, attributes.sharedSizeBytes);
  raise_shared_limit(entry.kernel, fit.shared_bytes);
  int blocks = 0;
  FLYWHEEL_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, entry.kernel, static_cast<int>(entry.block_threads),
                                                              fit.shared_bytes));
  if (blocks < 1) throw CapacityError("not one block of the kernel fits on an SM: lower Options::scratch_bytes");
  return fit;
}

}  // namespace flywheel::detail
