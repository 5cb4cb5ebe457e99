// The rows of a CUDA build.
#include "apps/measure/limits.hpp"

#include <stdlib.h>

#include <fstream>
#include <regex>

#include "apps/measure/cuda_objects.hpp"

namespace measure {
namespace {

// The kernel module says "580.95.05"; CUDA itself only knows which CUDA version the driver speaks.
std::string driver_version() {
  std::ifstream in("/proc/driver/nvidia/version");
  std::string line;
  std::smatch found;
  if (std::getline(in, line) && std::regex_search(line, found, std::regex(R"(\b\d{3,}\.\d+(\.\d+)?\b)"))) return found.str();
  int version = 0;
  check_cuda(cudaDriverGetVersion(&version), "cudaDriverGetVersion");
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Gpu no_gpu(const std::string& reason) {
  return {.why_not = "no GPU: " + reason + ". Install an NVIDIA driver, or look at CUDA_VISIBLE_DEVICES"};
}

}  // namespace

Gpu find_gpu() {
  // Before the first CUDA call: a kernel that is loaded late waits for a kernel that is resident.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) return no_gpu(cudaGetErrorString(status));
  if (count == 0) return no_gpu("CUDA lists no device");
  int device = 0;
  cudaDeviceProp properties{};
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return {.present = true, .name = properties.name, .driver = driver_version()};
}

std::vector<Measurement> limit_rows(const Effort& effort) {
  const auto take = [&](Samples (*measure)(int), int full) {
    return [measure, samples = effort.samples(full)] { return measure(samples); };
  };
  return {
      {.name = "limit.read_hbm", .unit = "GB/s", .round = take(read_hbm, 10)},
      {.name = "limit.copy_hbm", .unit = "GB/s", .round = take(copy_hbm, 10)},
      {.name = "limit.flag_round_trip", .unit = "us", .round = take(flag_round_trip, 2000)},
      {.name = "limit.hop", .unit = "us", .round = take(hop, 5)},
      {.name = "limit.atomic_rate", .unit = "M/s", .round = take(atomic_rate, 10)},
      {.name = "limit.one_counter_barrier",
       .unit = "us",
       .peer = "peer.grid_sync",
       .limit = "limit.hop",
       .round = take(one_counter_barrier, 20)},
      {.name = "peer.grid_sync", .unit = "us", .limit = "limit.hop", .round = take(grid_sync, 20)},
      {.name = "peer.launch_one_kernel",
       .unit = "us",
       .limit = "limit.flag_round_trip",
       .round = take(launch_one_kernel, 1000)},
      {.name = "peer.graph_one_node", .unit = "us", .limit = "limit.flag_round_trip", .round = take(graph_one_node, 1000)},
      {.name = "peer.graph_node_rate", .unit = "M/s", .round = take(graph_node_rate, 10)},
      {.name = "peer.stream_launch_rate", .unit = "M/s", .round = take(stream_launch_rate, 10)},
  };
}

}  // namespace measure
