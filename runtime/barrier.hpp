// The grid barrier between phases: like grid.sync, but it can be aborted, has a time limit and carries a vote.
//
// Arrivals are spread over kBarrierWords counters: an L2 slice does one atomic in some 2 ns on one address (H200), so 132
// arrivals on one word take 0.27 us, and on eight, 0.03 us. A warp polls all eight with one load.
#pragma once

#include <cstdint>

#include "runtime/platform.hpp"
#include "runtime/wait.hpp"

namespace flywheel {

enum class Meeting : std::uint32_t { go_on, stop, aborted };

inline constexpr std::uint32_t kBarrierWords = 8;

/// Each word is {votes at even meetings:16 | votes at odd meetings:16 | arrivals:32}, monotone; nobody resets it. A
/// phased run reads it as a difference from what it found, so no wrap matters. A worker may still poll meeting k while
/// another votes at k + 1, hence the two fields; nobody gets to k + 2 before that worker has come to k + 1.
template <class P>
struct GridBarrier {
  /// What each lane remembers of the words it polls.
  static constexpr std::uint32_t kEach = (kBarrierWords + P::lanes() - 1) / P::lanes();
  struct Base {
    std::uint64_t words[kEach];
  };

  Padded<std::uint64_t>* words;
  std::uint32_t workers;

  FLYWHEEL_TASK static constexpr std::uint64_t vote(std::uint64_t k) {
    return std::uint64_t{1} << (k & 1 ? 32 : 48);
  }

  /// Called by one thread of each worker for meeting k = 1, 2, ... of a run. A vote to stop reaches everybody there.
  FLYWHEEL_TASK void arrive(std::uint32_t worker, std::uint64_t k, bool vote_stop) const {
    // Release: what this worker wrote before the boundary. Pairs with the acquire loads in wait() of all the others.
    P::device(words[worker % kBarrierWords].value).fetch_add(1 + (vote_stop ? vote(k) : 0), Order::release);
  }

  /// By all lanes, after arrive(). `base` holds the words as they were when the run began.
  FLYWHEEL_TASK Meeting wait(const Base& base, std::uint64_t k, const WaitContext& wait) const {
    bool stop = false;
    const bool all = spin_until<P>(wait, WaitReason::grid_barrier, words, k * workers, [&](std::uint64_t& saw) {
      bool missing = false;
      stop = false;
      for (std::uint32_t i = P::lane(), n = 0; i < kBarrierWords; i += P::lanes(), ++n) {
        const std::uint64_t since = (saw = P::device(words[i].value).load(Order::acquire)) - base.words[n];
        missing |= static_cast<std::int32_t>(static_cast<std::uint32_t>(since) - goal(i, k)) < 0;
        stop |= votes(since, k) != 0;
      }
      return !P::any(missing);
    });
    if (!all) return Meeting::aborted;
    return P::any(stop) ? Meeting::stop : Meeting::go_on;
  }

 private:
  /// Arrivals at word i by meeting k: a worker's word is its number modulo the words.
  FLYWHEEL_TASK std::uint32_t goal(std::uint32_t i, std::uint64_t k) const {
    return static_cast<std::uint32_t>(k) * ((workers + kBarrierWords - 1 - i) / kBarrierWords);
  }
  FLYWHEEL_TASK static std::uint32_t votes(std::uint64_t since, std::uint64_t k) {
    return static_cast<std::uint32_t>(k & 1 ? since >> 32 : since >> 48) & 0xffff;
  }
};

}  // namespace flywheel
