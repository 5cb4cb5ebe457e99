// The grid barrier: like cooperative groups' grid.sync(), but it can be aborted, has a time limit and carries a vote to stop.
//
// Phased runs use it between two phases of the graph and for grid_sync() inside a task (runtime/compiled/phases.hpp).
// Compiled runs use it as the gate between two passes, where their sinks arrive (runtime/compiled/compiled.hpp).
#pragma once

#include <cstdint>
#include <type_traits>

#include "platform.hpp"
#include "wait.hpp"

namespace flywheel::detail {

/// How one phase of the barrier ended: normally, with at least one vote to stop, or because the runtime was aborted.
enum class BarrierResult : std::uint32_t { go_on, stop, aborted };

/// When a worker polls a grid barrier for the first time after its own arrival. Arrivals of 132 SMs at one word take L2 some
/// 200 cycles. A poll before the last of them costs a round trip to L2, 0.08 us, so the first one comes as late as it just has
/// to: how late differs from card to card, and with the code around (device/tuning.md). Each worker finds it for itself.
struct FirstPoll {
  static constexpr std::uint32_t kOne = 256, kBegin = 260 * kOne, kLeast = 240 * kOne, kMost = 380 * kOne, kLater = 16 * kOne;
  std::uint32_t wait;   // ticks of the worker's clock, in units of 1 / kOne
  std::uint32_t polls;  // that the last wait took

  /// After the worker's arrival. A first poll that came too early by less than one trip moves the next ones, any other success
  /// brings them nearer by little: with 132 workers one in 30 barriers has an early poll.
  template <class P>
  FLYWHEEL_TASK void await() {
    if (polls == 2 && wait < kMost) wait += kLater;
    if (polls == 1 && wait > kLeast) --wait;
    P::wait_ticks(wait / kOne);
  }
};

/// Plain handle to the barrier's one word: {votes in even phases:16 | votes in odd phases:16 | arrivals:32}.
///
/// The word only grows and is never reset. Each run subtracts the value that the word had when the run began, so wrap-around is
/// harmless. Even and odd phases have separate vote fields, because one worker may still poll phase k while another votes in
/// phase k + 1. Two fields suffice: no vote of phase k + 2 comes before every worker has left phase k.
///
/// One phase takes 0.92 us on an H200, of which the release fence before arrive() takes 0.28 us. Slower variants: tuning.md.
template <class P>
struct GridBarrier {
  std::uint64_t* word;
  std::uint32_t workers;  // arrivals that complete a phase: all workers, or the sinks of a compiled run

  /// One vote in phase k, as an addend of the word.
  FLYWHEEL_TASK static constexpr std::uint64_t vote(std::uint64_t k) { return std::uint64_t{1} << (k & 1 ? 32 : 48); }

  /// Arrives at phase k = 1, 2, ... of a run: one thread of each worker, or in compiled runs of each sink. A vote to stop
  /// reaches all workers that wait for this phase. The caller executes P::release_fence() first.
  ///
  /// Release (by that fence on a GPU, by the order of the access on a CPU): pairs with the acquire load in wait(). It
  /// publishes what this worker wrote before the barrier.
  FLYWHEEL_TASK void arrive(std::uint64_t k, bool vote_stop) const {
    P::device(*word).add(1 + (vote_stop ? vote(k) : 0), P::kAfterRelease);
  }

  /// How many have arrived at phase k, which none of them has left. Acquire: pairs with arrive(), as in wait().
  FLYWHEEL_TASK std::uint32_t arrived(std::uint64_t base, std::uint64_t k) const {
    return static_cast<std::uint32_t>(P::device(*word).load(Order::acquire) - base - (k - 1) * workers);
  }

  /// Waits until phase k is complete: one thread of each worker. `base` is the value of the word when the run began.
  /// `idle()` is called before each poll and returns true if the worker has other work meanwhile. Then polls are relaxed
  /// until one succeeds, because on a GPU an acquire empties the L1 cache that the SM's other warps use.
  template <class Limit, class Idle = NothingToDo>
  FLYWHEEL_TASK BarrierResult wait(std::uint64_t base, std::uint64_t k, const Limit& limit, Idle&& idle = {}) const {
    const auto goal = static_cast<std::uint32_t>(k * workers);
    std::uint64_t since = 0;
    const bool all = spin_until<P>(limit, WaitReason::grid_barrier, word, base + goal, [&](std::uint64_t& saw) {
      const auto there = [&](Order order) {
        // The acquire load pairs with arrive() of all workers: arrivals are read-modify-writes of this one word, so the load
        // that sees the last of them synchronizes with all. A relaxed load is only a hint: an acquire load follows it.
        saw = P::device(*word).load(order);
        since = saw - base;
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(since) - goal) >= 0;
      };
      return (!idle() || there(Order::relaxed)) && there(Order::acquire);
    });
    if (!all) return BarrierResult::aborted;
    if (!(since >> 32)) return BarrierResult::go_on;  // no votes, and the arrivals' field has not wrapped
    // In a long run the arrivals' field overflows into the votes. Subtracting all arrivals so far removes the overflow.
    const std::uint64_t arrivals = k * workers + (static_cast<std::uint32_t>(since) - goal);
    return votes(since - arrivals, k) ? BarrierResult::stop : BarrierResult::go_on;
  }

  /// The same for a worker that has nothing to do meanwhile, after arrive().
  template <class Limit>
  FLYWHEEL_TASK BarrierResult wait(std::uint64_t base, std::uint64_t k, const Limit& limit, FirstPoll& first) const {
    first.await<P>();
    std::uint32_t polls = 0;
    const BarrierResult result = wait(base, k, limit, [&] {
      ++polls;
      return false;
    });
    first.polls = polls;
    return result;
  }

 private:
  FLYWHEEL_TASK static std::uint32_t votes(std::uint64_t fields, std::uint64_t k) {
    return static_cast<std::uint32_t>(k & 1 ? fields >> 32 : fields >> 48) & 0xffff;
  }
};

}  // namespace flywheel::detail
