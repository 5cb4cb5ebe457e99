// What ThreadSanitizer is told of an emulated block, where it is compiled in: that its threads are threads, and what orders
// their accesses to memory. So it finds races between threads of a block as it does between blocks, and unlike a tool that
// only sees PTX it knows what mbarriers order.
//
// Order comes from mbarriers, __syncwarp(), named barriers and atomics. Votes, shuffles and products bring lanes together
// and order nothing, as CUDA has it. A bulk copy comes after what its thread has fenced for it, and after nothing else.
#pragma once

#include <cstddef>
#include <initializer_list>

#include "support/fiber_switch.hpp"

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace flywheel::testing {

/// Whether what a block's threads ran on is kept for another block. A simulator wants all memory back.
inline constexpr bool kKeepsStacks = true;

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
class Unwatched {
 public:
  Unwatched() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~Unwatched() { end(); }
  /// Of one whose thread does not come back.
  static void end() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;
};

/// All that happened before a release() happened before what comes after an acquire() with the same address.
inline void release(const void* at) { __tsan_release(const_cast<void*>(at)); }
inline void acquire(const void* at) { __tsan_acquire(const_cast<void*>(at)); }
#else
struct Unwatched {
  Unwatched() {}  // not trivial: nobody warns of a variable that is not used
  static void end() {}
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
