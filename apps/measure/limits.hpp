// What bounds this runtime on the card at hand, and what people use instead of it, each measured by itself.
//
// A function takes one round and returns its samples. All of them allocate what they need, give it back, and
// need the GPU to themselves. Errors: CudaError, or std::runtime_error if a wait inside a kernel was given
// up; both name the remedy. Plain C++ on purpose: the CUDA is behind it.
#pragma once

#include <string>
#include <vector>

#include "apps/measure/measurement.hpp"

namespace measure {

/// The GPU to measure: the current CUDA device.
struct Gpu {
  bool present = false;
  std::string name = {};     // "NVIDIA H200"
  std::string driver = {};   // "580.95.05"
  std::string why_not = {};  // if there is none: the reason and the remedy, one line
};

Gpu find_gpu();

/// The rows limit.* and peer.* of this build; none in a host-only build.
std::vector<Measurement> limit_rows(const Effort& effort);

/// Reading about 2.47 GB of device memory once, the weights of a 1B model in bf16, by the best of several
/// shapes of TMA bulk copies (compute capability 9.0 and up) and of 16-byte loads. GB/s, 1 GB = 1e9 bytes.
Samples read_hbm(int samples);

/// Copying 256 MiB of device memory, 64 Mi floats, by the best of cudaMemcpyAsync and of kernels with 16-byte loads in
/// several shapes. GB/s, read and written.
Samples copy_hbm(int samples);

/// Host writes a flag, the GPU sees it and writes one back, the host sees that; both flags in mapped host
/// memory. us.
Samples flag_round_trip(int samples);

/// One way from SM to SM through L2: st.release to ld.acquire, gpu scope. us. `samples` are taken from each
/// of eight pairs of SMs near and far, since distance on the chip matters.
Samples hop(int samples);

/// atomicAdd with its result used, every SM on one address, by the best of several numbers of warps. M/s in
/// total.
Samples atomic_rate(int samples);

/// cooperative_groups grid.sync, one block of 256 threads on every SM. us each.
Samples grid_sync(int samples);

/// A barrier of one counter that only grows, same shape as grid_sync. us each.
Samples one_counter_barrier(int samples);

/// Launch one empty kernel and synchronise the stream. us.
Samples launch_one_kernel(int samples);

/// Launch a CUDA graph of one empty kernel and synchronise the stream. us.
Samples graph_one_node(int samples);

/// CUDA graphs with one empty block of 256 threads a node, from launch to synchronised: the better of a flat
/// graph and of independent chains, one for each SM, 100 deep. M nodes/s.
Samples graph_node_rate(int samples);

/// Empty one-block kernels back to back in one stream, 1000 at a time. M kernels/s.
Samples stream_launch_rate(int samples);

}  // namespace measure
