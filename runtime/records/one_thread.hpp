// The threads of a block that has one: what CpuBlock (runtime/cpu/block.hpp) has of them, and the stand-ins of any_block.hpp.
#pragma once

#include "../base/platform.hpp"

namespace flywheel::detail {

/// The one thread is the one lane of the only warp, so all that threads do together is done by it alone.
struct OneThread {
  static constexpr int kWarps = 1;
  static constexpr int kLanes = 1;
  FLYWHEEL_TASK static constexpr int rank() { return 0; }
  FLYWHEEL_TASK static constexpr int size() { return 1; }
  FLYWHEEL_TASK static constexpr bool leader() { return true; }
  FLYWHEEL_TASK static constexpr int lane() { return 0; }
  FLYWHEEL_TASK static constexpr int warp() { return 0; }
  FLYWHEEL_TASK static void sync() {}
  FLYWHEEL_TASK static void sync_warp() {}

  /// The value of the lane named, modulo kLanes: the thread's own.
  template <class T>
  FLYWHEEL_TASK static T shuffle(T value, int) {
    return value;
  }
  /// Calls f(i) for i = 0..n-1, shared out over the threads of the block, which all call it.
  template <class F>
  FLYWHEEL_TASK void for_each(int n, F&& f) const {
    for (int i = 0; i < n; ++i) f(i);
  }
  /// Combines one value of each thread with op; every thread gets the result.
  template <class T, class Op>
  FLYWHEEL_TASK T reduce(T value, Op&&) const {
    return value;
  }
  /// For bodies that use the memory of handoffs as scratch on a GPU. There is none here.
  FLYWHEEL_TASK static void borrow_handoffs() {}
};

}  // namespace flywheel::detail
