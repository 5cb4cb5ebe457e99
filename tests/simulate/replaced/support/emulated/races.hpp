// What the simulator is told of an emulated block: its threads are one thread of the simulated program, and race with no
// other of the same block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "simulate/blocks.hpp"

namespace flywheel::testing {

/// A run's memory is all given back, or lost.
inline constexpr bool kKeepsStacks = false;
inline constexpr std::uint32_t kLanesApart = 32;

/// A range of shared memory.
struct SharedRange {
  unsigned char* first = nullptr;
  std::size_t bytes = 0;

  bool holds(const void* at, std::size_t count) const {
    const auto* from = static_cast<const unsigned char*>(at);
    return from >= first && from + count <= first + bytes;
  }
};

/// While one lives, the calling thread is a block of `device`, whose shared memory is there.
class WatchedBlock {
 public:
  WatchedBlock(const void* device, std::initializer_list<SharedRange> shared) {
    for (const SharedRange& range : shared) simulate::block_owns(range.first, range.bytes);
    simulate::block_begins(device);
  }
  ~WatchedBlock() { simulate::block_ends(); }
};

/// While one lives, the calling thread copies to a GPU as cudaMemcpy does: no scope is meant.
class WatchedMemcpy {
 public:
  WatchedMemcpy() { simulate::copy_any_scope(true); }
  ~WatchedMemcpy() { simulate::copy_any_scope(false); }
  WatchedMemcpy(const WatchedMemcpy&) = delete;
  WatchedMemcpy& operator=(const WatchedMemcpy&) = delete;
};

/// While one lives, the calling thread's accesses are the emulator's own.
class Unwatched {
 public:
  Unwatched() { begin(); }
  ~Unwatched() { end(); }
  static void end() { simulate::ignore(-1); }
  static void begin() { simulate::ignore(1); }
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;
};

inline void release(const void*) {}
inline void acquire(const void*) {}

struct WatchedCopies {
  template <class Land>
  void land(Land&& land) {
    land();
  }
};

}  // namespace flywheel::testing
