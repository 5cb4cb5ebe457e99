// Marks the threads that must not destroy a runtime's core themselves. Included by core.cpp, which asks here(), and by
// the sources that run such threads: the dispatcher and the callbacks of CUDA streams.
#pragma once

namespace flywheel::detail {

/// While an object of this class is alive on a thread, that thread leaves the destruction of a core to a new thread.
/// Two kinds of threads need this: the dispatcher's thread, which cannot join itself, and a CUDA stream's callback,
/// which may not call CUDA.
class DeferredRelease {
 public:
  DeferredRelease() { ++depth_; }
  ~DeferredRelease() { --depth_; }
  DeferredRelease(const DeferredRelease&) = delete;
  DeferredRelease& operator=(const DeferredRelease&) = delete;
  /// True if the calling thread has such an object.
  static bool here() { return depth_ > 0; }

 private:
  static inline thread_local int depth_ = 0;
};

}  // namespace flywheel::detail
