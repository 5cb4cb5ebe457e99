// A clock that counts a thread's own work, and a wait on it: for task bodies and kernels that stand for work of a known length.
// A header alone.
#pragma once

#include <flywheel/flywheel.hpp>

#include <cstdint>

#ifndef __CUDA_ARCH__
#include <time.h>
#endif

namespace measure {

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

/// A clock that all threads share, in ns. On a GPU it goes on in steps, which may be longer than a small task.
FLYWHEEL_TASK inline std::int64_t shared_clock_ns() {
#ifdef __CUDA_ARCH__
  std::int64_t ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns)::"memory");
  return ns;
#else
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
#endif
}

FLYWHEEL_TASK inline void spin_for(std::int64_t ticks) {
  const std::int64_t begin = work_clock();
  while (work_clock() - begin < ticks) {}
}

}  // namespace measure
