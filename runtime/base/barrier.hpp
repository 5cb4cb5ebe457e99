// The grid barrier between phases: like grid.sync, but it can be aborted, has a time limit and carries a vote.
#pragma once

#include <cstdint>
#include <type_traits>

#include "platform.hpp"
#include "wait.hpp"

namespace flywheel {

enum class Meeting : std::uint32_t { go_on, stop, aborted };

/// One word, {votes at even meetings:16 | votes at odd meetings:16 | arrivals:32}, monotone; nobody resets it. A phased
/// run reads it as a difference from what it found, so no wrap matters. A worker may still poll meeting k while
/// another votes at k + 1, hence the two fields; nobody gets to k + 2 before that worker has come to k + 1.
///
/// Of a meeting's 0.92 us on an H200 the release fence takes 0.28. Tried and slower: eight words on lines of their own, polled
/// by eight lanes (1.13 us where one word took 1.03); two polls of the word under way at once (1.20 for 1.05); the vote told
/// to the block by barrier.red instead of shared memory (1.16 for 1.03).
template <class P>
struct GridBarrier {
  std::uint64_t* word;
  std::uint32_t workers;

  FLYWHEEL_TASK static constexpr std::uint64_t vote(std::uint64_t k) {
    return std::uint64_t{1} << (k & 1 ? 32 : 48);
  }

  /// Called by one thread of each worker for meeting k = 1, 2, ... of a run. A vote to stop reaches everybody there.
  /// After P::release_fence(), which covers what this worker wrote before the boundary: pairs with the acquire loads in
  /// wait() of all the others.
  FLYWHEEL_TASK void arrive(std::uint64_t k, bool vote_stop) const {
    P::device(*word).add(1 + (vote_stop ? vote(k) : 0), P::kAfterRelease);
  }

  /// By the same thread, after arrive(). `base` is the word when the run began; `idle()`: see wait_before().
  template <class Limit, class Idle = NothingToDo>
  FLYWHEEL_TASK Meeting wait(std::uint64_t base, std::uint64_t k, const Limit& limit, Idle&& idle = {}) const {
    const auto goal = static_cast<std::uint32_t>(k * workers);
    std::uint64_t since = 0;
    if constexpr (std::is_same_v<Idle, NothingToDo>) P::let_others_arrive();
    const bool all = spin_until<P>(limit, WaitReason::grid_barrier, word, base + goal, [&](std::uint64_t& saw) {
      const auto there = [&](Order order) {
        saw = P::device(*word).load(order);
        since = saw - base;
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(since) - goal) >= 0;
      };
      return (!idle() || there(Order::relaxed)) && there(Order::acquire);
    });
    if (!all) return Meeting::aborted;
    if (!(since >> 32)) return Meeting::go_on;  // no votes, and the arrivals' field has not wrapped
    // A long run wraps the arrivals' field more than once: what it carried over is no vote.
    const std::uint64_t arrivals = k * workers + (static_cast<std::uint32_t>(since) - goal);
    return votes(since - arrivals, k) ? Meeting::stop : Meeting::go_on;
  }

 private:
  FLYWHEEL_TASK static std::uint32_t votes(std::uint64_t fields, std::uint64_t k) {
    return static_cast<std::uint32_t>(k & 1 ? fields >> 32 : fields >> 48) & 0xffff;
  }
};

}  // namespace flywheel
