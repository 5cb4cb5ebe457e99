// mbarriers as the PTX ISA has them (9.7.13.15): a phase ends when all expected arrivals and bytes have come. What would
// be undefined on a GPU, or can only be a mistake in this kernel, is an error with a name.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "support/unwatched.hpp"

namespace flywheel::testing {

inline constexpr std::uint32_t kEmulatedWarps = 12;
inline constexpr std::uint32_t kEmulatedThreads = kEmulatedWarps * 32;

/// A bit for each thread.
struct WarpMasks {
  std::uint32_t of_warp[kEmulatedWarps];

  FLYWHEEL_UNWATCHED_INLINE std::uint32_t& operator[](std::uint32_t warp) { return of_warp[warp]; }
  FLYWHEEL_UNWATCHED_INLINE std::uint32_t operator[](std::uint32_t warp) const { return of_warp[warp]; }
};

struct Mbarrier {
  std::uint32_t expected = 0;  // arrivals in each phase
  std::uint32_t pending = 0;   // of them, still to come
  std::int64_t bytes = 0;      // expected and not come
  std::uint32_t phase = 0;     // phases that are complete
  WarpMasks arrived{};         // threads, in this phase
  WarpMasks watchers{};        // threads to wake at its end
  std::uint64_t ended = 0;     // the last phase, as so many-th of all barriers'
  bool valid = false;

  FLYWHEEL_UNWATCHED_INLINE bool is_complete(std::uint32_t parity) const { return (phase & 1) != parity; }
};

/// All of a block. The word in shared memory tells which.
class Mbarriers {
 public:
  using Fail = std::function<void(const std::string&)>;      // does not return
  using PhaseEnded = std::function<void(const WarpMasks&)>;  // whom to wake

  Mbarriers(std::uint32_t mark, Fail fail, PhaseEnded ended)
      : mark_(std::uint64_t{mark} << 32),
        fail_(std::move(fail)),
        ended_(std::move(ended)) {}

  /// For messages: what the kernel calls the barrier at this address.
  std::function<std::string(const void*)> name_of;

  void init(std::uint64_t& word, std::uint32_t arrivals) {
    if (is_marked(word) && barriers_[word & kIndex].valid) fail("is initialised again without being invalidated", word);
    if (!arrivals || arrivals >= 1u << 20) fail("is initialised for " + std::to_string(arrivals) + " arrivals", word);
    if (reinterpret_cast<std::uintptr_t>(&word) % 8) fail("is not aligned to 8 bytes", word);
    if (!is_marked(word)) {
      if (count_ == kMost) fail("is one more than the " + std::to_string(kMost) + " that a block may have", word);
      word = mark_ | count_++;
    }
    barriers_[word & kIndex] = {};
    Mbarrier& barrier = barriers_[word & kIndex];
    barrier.expected = barrier.pending = arrivals;
    barrier.valid = true;
  }

  void invalidate(std::uint64_t& word) {
    Mbarrier& barrier = at(word);
    if (barrier.bytes) fail("is invalidated while " + std::to_string(barrier.bytes) + " bytes are on their way", word);
    barrier.valid = false;
  }

  FLYWHEEL_UNWATCHED Mbarrier& at(const std::uint64_t& word) {
    if (!is_marked(word)) fail("is used before it was initialised", word);
    Mbarrier& barrier = barriers_[word & kIndex];
    if (!barrier.valid) fail("is used after it was invalidated", word);
    return barrier;
  }

  /// By `thread`, who first expects so many bytes more. One that comes twice in a phase has lost count of the phases.
  FLYWHEEL_UNWATCHED void arrive(const std::uint64_t& word, std::uint32_t thread, std::uint32_t bytes = 0) {
    Mbarrier& barrier = at(word);
    if (!barrier.pending) fail("has more arrivals than the " + std::to_string(barrier.expected) + " it expects", word);
    if (barrier.arrived[thread / 32] >> thread % 32 & 1)
      fail("has two arrivals of thread " + std::to_string(thread) + " in one phase", word);
    barrier.arrived[thread / 32] |= 1u << thread % 32;
    barrier.bytes += bytes;
    --barrier.pending;
    end_phase(barrier);
  }

  void come(const std::uint64_t& word, std::uint32_t bytes) {
    Mbarrier& barrier = at(word);
    barrier.bytes -= bytes;
    if (barrier.bytes < 0) fail("got more bytes than it expects", word);
    end_phase(barrier);
  }

  /// Phases of all barriers.
  FLYWHEEL_UNWATCHED_INLINE std::uint64_t ended() const { return ended_count_; }

  std::string name(const std::uint64_t& word) const {
    return "mbarrier " + (name_of ? name_of(&word) : std::to_string(reinterpret_cast<std::uintptr_t>(&word)));
  }

 private:
  static constexpr std::uint64_t kIndex = 0xffffffffu;

  static constexpr std::uint32_t kMost = 1024;

  FLYWHEEL_UNWATCHED_INLINE bool is_marked(const std::uint64_t& word) const {
    return (word & ~kIndex) == mark_ && (word & kIndex) < count_;
  }
  void fail(const std::string& what, const std::uint64_t& word) const { fail_(name(word) + " " + what); }

  FLYWHEEL_UNWATCHED_INLINE void end_phase(Mbarrier& barrier) {
    if (barrier.pending || barrier.bytes) return;
    ++barrier.phase;
    barrier.ended = ++ended_count_;
    barrier.pending = barrier.expected;
    barrier.arrived = {};
    ended_(barrier.watchers);
    barrier.watchers = {};
  }

  const std::uint64_t mark_;
  Fail fail_;
  PhaseEnded ended_;
  const std::unique_ptr<Mbarrier[]> all_ = std::make_unique<Mbarrier[]>(kMost);
  Mbarrier* const barriers_ = all_.get();
  std::uint32_t count_ = 0;
  std::uint64_t ended_count_ = 0;
};

}  // namespace flywheel::testing
