#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

#include "support/listener.hpp"

using flywheel::testing::Listener;

namespace {

/// ctest reads this exit status as "skipped" (SKIP_RETURN_CODE).
constexpr int kSkipped = 77;

/// Why no GPU can be used, or null when one can. Without a driver cudaGetDeviceCount blames the driver's version,
/// so the driver is asked for first.
const char* reason_to_skip() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return "there is no NVIDIA driver";
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status != cudaSuccess) return cudaGetErrorString(status);
  return devices > 0 ? nullptr : "the driver sees no GPU";
}

/// The driver reads CUDA_MODULE_LOADING once, at the first call, and that call is made here: ask for what the
/// library asks for, because a kernel loaded lazily would wait for a resident one to end.
void skip_without_gpu() {
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  if (const char* reason = reason_to_skip()) {
    std::printf("skipped: %s\n", reason);
    std::exit(kSkipped);
  }
}

struct GpuGate : Listener {
  using Listener::Listener;
  void testRunStarting(const Catch::TestRunInfo&) override { skip_without_gpu(); }
};

}  // namespace

CATCH_REGISTER_LISTENER(GpuGate)
