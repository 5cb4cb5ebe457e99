// What ThreadSanitizer is told of an emulated block, where it is compiled in: that its threads are threads, and what orders
// their accesses to memory. So it finds races between threads of a block as it does between blocks, and unlike a tool that
// only sees PTX it knows what mbarriers order.
//
// Order comes from mbarriers, __syncwarp(), named barriers and atomics. Votes, shuffles and products bring lanes together
// and order nothing, as CUDA has it. A bulk copy comes after what its thread has fenced for it, and after nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "support/fiber_switch.hpp"
#include "support/unwatched.hpp"

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
extern "C" {
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
}
#endif

namespace flywheel::testing {

/// Whether what a block's threads ran on is kept for another block. A simulator wants all memory back.
inline constexpr bool kKeepsStacks = true;

/// How many threads of ThreadSanitizer the lanes of a warp share but for the first, which does what one does for all, and has
/// its own. What orders threads costs ThreadSanitizer time for each thread that there is, and with one a lane that was most of
/// a test's. Which lanes share one is drawn for each launch: what two of them do without order is seen in three launches of
/// four. A report tells the right place, but mixes the calls that led there; FLYWHEEL_LANES_APART=32 gives each lane its own.
inline constexpr std::uint32_t kLanesApart = 4;

/// A range of shared memory.
struct SharedRange {
  unsigned char* first = nullptr;
  std::size_t bytes = 0;

  bool holds(const void* at, std::size_t count) const {
    const auto* from = static_cast<const unsigned char*>(at);
    return from >= first && from + count <= first + bytes;
  }
};

/// While one lives, the calling thread is a block of `device`, whose shared memory is there. A simulator wants to know.
struct WatchedBlock {
  WatchedBlock(const void* /*device*/, std::initializer_list<SharedRange>) {}
};

/// While one lives, the calling thread copies to a GPU as cudaMemcpy does: no scope is meant.
struct WatchedMemcpy {
  WatchedMemcpy() {}  // not trivial: nobody warns of a variable that is not used
};

#ifdef __SANITIZE_THREAD__
/// While one lives, the calling thread's accesses are the emulator's own, which runs one thread at a time.
///
/// AnnotateIgnoreReadsBegin() would keep the stack of calls, in case it is never ended, and that is 8% of what an emulated
/// kernel takes. A diverted mutex keeps none, and ignores what orders accesses as well: that is taken back at once. Reads and
/// writes have one count, so one end is enough. Threads may share one of ThreadSanitizer's (see kLanesApart), so one that lets
/// others run ends it, and begins again when it goes on.
class Unwatched {
 public:
  FLYWHEEL_UNWATCHED_INLINE Unwatched() { begin(); }
  FLYWHEEL_UNWATCHED_INLINE ~Unwatched() { end(); }
  /// Of one whose thread leaves its place to another, or does not come back.
  FLYWHEEL_UNWATCHED_INLINE static void end() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
  /// Of one whose thread has its place again.
  FLYWHEEL_UNWATCHED_INLINE static void begin() {
    __tsan_mutex_post_divert(nullptr, 0);
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  }
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;
};

/// All that happened before a release() happened before what comes after an acquire() with the same address.
FLYWHEEL_UNWATCHED_INLINE void release(const void* at) { __tsan_release(const_cast<void*>(at)); }
FLYWHEEL_UNWATCHED_INLINE void acquire(const void* at) { __tsan_acquire(const_cast<void*>(at)); }
#else
struct Unwatched {
  Unwatched() {}  // not trivial: nobody warns of a variable that is not used
  static void end() {}
  static void begin() {}
};
inline void release(const void*) {}
inline void acquire(const void*) {}
#endif

/// The copies that go on beside a block's threads.
class WatchedCopies {
 public:
  WatchedCopies() { copies_.start(); }
  template <class Land>
  void land(Land&& land) {
    void* const caller = WatchedThread::current();
    WatchedThread::become(copies_.get());
    land();
    WatchedThread::become(caller);
  }

 private:
  WatchedThread copies_;
};

}  // namespace flywheel::testing
