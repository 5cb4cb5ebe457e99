// Checks CUDA calls. FLYWHEEL_CUDA(call) throws a DeviceError that names the call, the CUDA error and a remedy; cuda_note()
// logs the same where nothing may be thrown. Included by the sources of the GPU engine; a library without CUDA does not
// include it.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "error.hpp"
#include "log.hpp"

namespace flywheel::detail {

/// What the user can do about this CUDA error.
inline std::string cuda_remedy(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "free GPU memory, or lower the sizes in Options";
    case cudaErrorCooperativeLaunchTooLarge:
      return "start fewer workers with Options::workers";
    case cudaErrorInsufficientDriver:
      return "install an NVIDIA driver as new as this program's CUDA version";
    case cudaErrorNoDevice:
      return "no NVIDIA GPU is visible: check nvidia-smi and CUDA_VISIBLE_DEVICES";
    case cudaErrorNoKernelImageForDevice:
      return "rebuild with this GPU's architecture in FLYWHEEL_CUDA_ARCHITECTURES";
    default:
      return "look the error up in the CUDA documentation; compute-sanitizer helps with Mode::drain";
  }
}

/// The text of an error message: the call, the CUDA error and the remedy.
inline std::string cuda_failure(cudaError_t error, const char* call) {
  return std::string(call) + " failed: " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) +
         "). To do: " + cuda_remedy(error);
}

/// Throws DeviceError unless `error` is cudaSuccess. `call` is the source text of the call.
inline void cuda_check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw DeviceError(cuda_failure(error, call));
}

/// For destructors and functions that free: logs the failure. Level debug, because after the loss of a context all of them
/// fail, and the runs have reported the cause by then.
inline void cuda_note(cudaError_t error, const char* call) {
  if (error != cudaSuccess) log::debug(cuda_failure(error, call));
}

}  // namespace flywheel::detail

#define FLYWHEEL_CUDA(call) ::flywheel::detail::cuda_check((call), #call)
