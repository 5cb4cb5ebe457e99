// The work of a task, the same in bodies of the runtime and in kernels of the peers: one thread spins on a clock that counts
// its own work, the others of the block wait for it.
#pragma once

#include "apps/serve_bench/service.hpp"

#ifndef __CUDA_ARCH__
#include <time.h>
#endif

namespace serve {

/// On a GPU cycles of the SM; on a CPU ns of the thread's own time, so that a worker that shares its core works as long as one
/// that does not.
FLYWHEEL_TASK inline std::int64_t work_clock() {
#ifdef __CUDA_ARCH__
  return clock64();
#else
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
#endif
}

FLYWHEEL_TASK inline void spin_for(std::int64_t ticks) {
  const std::int64_t begin = work_clock();
  while (work_clock() - begin < ticks) {}
}

/// How many ticks of that clock a task of so many us spins for. On a GPU: at its boost clock.
std::int64_t work_ticks(double task_us, bool on_gpu);

}  // namespace serve
