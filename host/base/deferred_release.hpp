// Which threads do not take a runtime apart. Included by core.cpp, which asks, and by those who run such threads.
#pragma once

namespace flywheel {

/// While one of these lives on a thread, a core that is let go of there is taken apart by another: the dispatcher's own cannot wait
/// for itself to end, and a CUDA stream's callback may not call CUDA.
class DeferredRelease {
 public:
  DeferredRelease() { ++depth_; }
  ~DeferredRelease() { --depth_; }
  DeferredRelease(const DeferredRelease&) = delete;
  DeferredRelease& operator=(const DeferredRelease&) = delete;
  static bool here() { return depth_ > 0; }

 private:
  static inline thread_local int depth_ = 0;
};

}  // namespace flywheel
