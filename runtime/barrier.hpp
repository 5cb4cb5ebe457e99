// The grid barrier between phases: like grid.sync, but it can be aborted, has a time limit and carries a vote.
#pragma once

#include <cstdint>

#include "runtime/platform.hpp"
#include "runtime/wait.hpp"

namespace flywheel {

/// {stop votes:16 | arrivals:48}, both monotone; nobody resets them. A phased run starts from the value it finds, so
/// every worker can tell the k-th meeting of this run from all others without a division or a ticket.
inline constexpr std::uint64_t kStopVote = std::uint64_t{1} << 48;

enum class Meeting : std::uint32_t { go_on, stop, aborted };

template <class P>
struct GridBarrier {
  std::uint64_t* word;
  std::uint32_t workers;

  /// Called by one thread of each worker. A vote to stop reaches everybody at this meeting.
  FLYWHEEL_TASK void arrive(bool vote_stop) const {
    // Release: what this worker wrote before the boundary. Pairs with the acquire loads in wait() of all the others.
    P::device(*word).fetch_add(1 + (vote_stop ? kStopVote : 0), Order::release);
  }

  /// By the same thread: waits for meeting k = 1, 2, ... since `base`.
  FLYWHEEL_TASK Meeting wait(std::uint64_t base, std::uint64_t k, const WaitContext& wait) const {
    const std::uint64_t arrivals_mask = kStopVote - 1;
    const std::uint64_t goal = (base & arrivals_mask) + k * workers;
    std::uint64_t seen = 0;
    const bool all = spin_until<P>(wait, WaitReason::grid_barrier, word, goal, [&](std::uint64_t& saw) {
      saw = seen = P::device(*word).load(Order::acquire);
      return (seen & arrivals_mask) >= goal;
    });
    if (!all) return Meeting::aborted;
    return (seen >> 48) == (base >> 48) ? Meeting::go_on : Meeting::stop;
  }
};

}  // namespace flywheel
