// How the emulated platforms release or acquire many words at once: by fences, as a GPU does, but where ThreadSanitizer
// watches, which does not follow them.
#pragma once

#include <atomic>

#include "runtime/base/platform.hpp"
#include "support/internals.hpp"

namespace flywheel::testing {

#ifdef __SANITIZE_THREAD__
using FencedPlatform = CpuPlatform;
#else
struct FencedPlatform : CpuPlatform {
  static constexpr Order kAfterRelease = Order::relaxed;
  static constexpr Order kBeforeAcquire = Order::relaxed;
  static constexpr Order kBetween = Order::relaxed;
  static void release_fence() { std::atomic_thread_fence(std::memory_order_release); }
  static void acquire_fence() { std::atomic_thread_fence(std::memory_order_acquire); }
  static void acquire_fence_of_system() { acquire_fence(); }
  static void release_fence_of_system() { release_fence(); }
  static void fence() { std::atomic_thread_fence(std::memory_order_acq_rel); }
};
#endif

}  // namespace flywheel::testing
