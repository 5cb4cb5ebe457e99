// Ranges for a profiler (NVTX), in the domain "flywheel": load(), submissions, and the life of each run. The runtime's
// functions and RunRecord include this header, which needs no header of NVTX: gpu_profiler.cpp does, in a library with CUDA.
//
// Without a profiler a range costs one load and one test. Single tasks have none.
#pragma once

#include <atomic>
#include <cstdint>

namespace flywheel::detail {

#if FLYWHEEL_WITH_CUDA
inline constexpr bool kHasProfiler = true;
#else
inline constexpr bool kHasProfiler = false;
#endif

/// The domain, if a profiler collects ranges; else null.
inline std::atomic<void*> profiler_domain{nullptr};

/// Opens the domain, once for a process; asks whether there is a profiler.
void open_profiler_domain();
/// Begins a range. `domain` is not null. Returns its number, which is not 0.
std::uint64_t begin_range(void* domain, const char* name);
void end_range(void* domain, std::uint64_t range);

/// Begins a range that may end on another thread. 0: there is no profiler.
inline std::uint64_t start_range([[maybe_unused]] const char* name) {
  if constexpr (kHasProfiler) {
    // Acquire: pairs with the release in open_profiler_domain(); the profiler's domain is made before it.
    if (void* const domain = profiler_domain.load(std::memory_order_acquire)) [[unlikely]]
      return begin_range(domain, name);
  }
  return 0;
}
inline void stop_range([[maybe_unused]] std::uint64_t range) {
  if constexpr (kHasProfiler) {
    // Acquire: as in start_range(), on whichever thread ends the range.
    if (range) [[unlikely]]
      end_range(profiler_domain.load(std::memory_order_acquire), range);
  }
}

/// A range from here to the end of the scope.
class ProfiledScope {
 public:
  explicit ProfiledScope(const char* name) : range_(start_range(name)) {}
  ~ProfiledScope() { stop_range(range_); }
  ProfiledScope(const ProfiledScope&) = delete;
  ProfiledScope& operator=(const ProfiledScope&) = delete;

 private:
  const std::uint64_t range_;
};

}  // namespace flywheel::detail
