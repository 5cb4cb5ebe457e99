// The fences of the emulated platforms, with the scope that the GPU's have (device/platform.cuh).
#pragma once

#include "runtime/base/platform.hpp"
#include "support/internals.hpp"

namespace flywheel::testing {

struct FencedPlatform : CpuPlatform {
  static constexpr Order kAfterRelease = Order::relaxed;
  static constexpr Order kBeforeAcquire = Order::relaxed;
  static constexpr Order kBetween = Order::relaxed;
  static void release_fence() { simulate::scoped_fence(Order::release, Scope::device); }
  static void acquire_fence() { simulate::scoped_fence(Order::acquire, Scope::device); }
  static void acquire_fence_of_system() { simulate::scoped_fence(Order::acquire, Scope::system); }
  static void release_fence_of_system() { simulate::scoped_fence(Order::release, Scope::system); }
  static void fence() { simulate::scoped_fence(Order::acq_rel, Scope::device); }
};

}  // namespace flywheel::testing
