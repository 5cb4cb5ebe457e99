// The rows of the runtime itself, beside its limits and peers. Other files beside this
// one have those of single fields; gpu_rows_none.cpp takes the place of those that need a GPU in a host-only build.
#pragma once

#include <cstdint>
#include <vector>

#include "apps/measure/measurement.hpp"

namespace bench {

/// Each round starts a runtime and shuts it down, so that the next row finds the GPU empty. `soak_tasks`: how many
/// tasks the soak row submits.
std::vector<measure::Measurement> runtime_rows(const measure::Effort& effort, bool on_gpu, std::uint64_t soak_tasks);

/// New work each time: single tasks, parameters, batches. Every result is checked.
std::vector<measure::Measurement> submit_rows(const measure::Effort& effort, bool on_gpu);
/// Small nodes by the million: independent ones, trees, searches. M nodes a second, submission included; every sum is checked.
std::vector<measure::Measurement> grain_rows(const measure::Effort& effort, bool on_gpu);
/// 20,000 independent tasks of 5 us on average, log-normal: the time of a list schedule of the same durations over theirs.
std::vector<measure::Measurement> uneven_rows(const measure::Effort& effort, bool on_gpu);
/// Passes over arrays as tasks of a loaded graph, submission included, beside plain kernels that are launched and waited for.
/// GB/s, read and written. Every result is checked on fresh random data before it is timed.
std::vector<measure::Measurement> stream_rows(const measure::Effort& effort);
/// Matrix products, and cuBLAS beside them where it is found. On a GPU alone.
std::vector<measure::Measurement> gemm_rows(const measure::Effort& effort);
/// 1,000 tasks of 100 us and of 5 us, beside the textbook queue, a CUDA graph and streams (ms), and small block tasks,
/// independent and spawned (M/s). Every task is checked.
std::vector<measure::Measurement> queue_rows(const measure::Effort& effort);
/// Computations that take turns over one array with all workers meeting in between, beside launches and a CUDA graph (ms), and
/// a softmax in two stages (GB/s).
std::vector<measure::Measurement> phase_rows(const measure::Effort& effort);
/// Systems of equations by conjugate gradient, until they are solved, and cuSPARSE and cuBLAS in a CUDA graph beside them where
/// both are found (ms). The residual of each answer is computed anew. On a GPU alone.
std::vector<measure::Measurement> cg_rows(const measure::Effort& effort);
/// How long a neighbour on the GPU waits for the runtime to yield, and what yielding costs.
std::vector<measure::Measurement> yield_rows(const measure::Effort& effort);

}  // namespace bench
