// Idle workers: a bit each, and a mailbox each. The way a ready task reaches an idle worker without any queue.
//
// A worker with nothing to do sets its bit. A producer claims workers by clearing bits with one fetch_and, then puts
// an item in each claimed worker's mailbox. A mailbox therefore has one writer at a time and needs no lap or ticket.
// An enrolled worker goes on looking at the queues: a task pushed just before it enrolled costs one look, and is
// never lost; no sequentially consistent fence is needed for that.
#pragma once

#include <cstdint>

#include "../base/bits.hpp"
#include "../base/platform.hpp"
#include "run.hpp"

namespace flywheel {

inline constexpr std::uint32_t kMaxWorkers = 1024;
inline constexpr std::uint32_t kIdleWords = kMaxWorkers / 64;
inline constexpr std::uint64_t kEmptyMailbox = ~std::uint64_t{0};

using Mailbox = Padded<std::uint64_t>;

/// Claimed workers: bits of one word of the idle set. What the word was before is kept as it came, so that nobody waits
/// for it before it is used.
struct Claim {
  std::uint64_t before;
  std::uint64_t wanted;
  std::uint32_t word;

  FLYWHEEL_TASK std::uint64_t bits() const { return before & wanted; }
};

/// One worker claimed in advance, or to be claimed. What the delivery will need is worked out by then.
struct ClaimedWorker {
  std::uint64_t before;  // as in Claim
  std::uint64_t wanted;  // its bit; 0: nobody
  std::uint32_t worker;

  FLYWHEEL_TASK bool taken() const { return (before & wanted) != 0; }
};

/// Plain handle over the bits and mailboxes of all workers.
template <class P>
struct IdleSet {
  std::uint64_t* bits;  // ceil(workers / 64) words on one line
  Mailbox* mailboxes;   // one a worker, each on its own line
  std::uint32_t workers;

  /// Called with the worker's mailbox empty: by itself, or by a claimer that has no use for it after all.
  FLYWHEEL_TASK void enroll(std::uint32_t worker) const {
    // Release: pairs with the acquire fetch_and in claim(). The claimer's store to the mailbox comes after the
    // worker emptied it.
    P::device(bits[worker / 64]).set(std::uint64_t{1} << worker % 64, Order::release);
  }

  /// True if the worker is out of the set with nothing in its mailbox; false if an item is on its way.
  FLYWHEEL_TASK bool withdraw(std::uint32_t worker) const {
    const std::uint64_t bit = std::uint64_t{1} << worker % 64;
    return P::device(bits[worker / 64]).fetch_and(~bit, Order::relaxed) & bit;
  }

  FLYWHEEL_TASK std::uint32_t words() const { return (workers + 63) / 64; }
  /// A hint, relaxed: claim() tells which of them are still idle.
  FLYWHEEL_TASK std::uint64_t seen(std::uint32_t word) const { return P::device(bits[word]).load(Order::relaxed); }

  /// Claims up to n of the workers seen idle in `word`; `start` spreads claimers over the bits. The claim is acquired
  /// (pairs with enroll()) by the fence that comes before the deliveries.
  FLYWHEEL_TASK Claim claim(std::uint32_t word, std::uint64_t seen, std::uint32_t n, std::uint32_t start) const {
    const std::uint64_t wanted = pick_bits(seen, n, start % 64);
    if (!wanted) return {0, 0, word};
    return {P::device(bits[word]).fetch_and(~wanted, P::kBeforeAcquire), wanted, word};
  }

  /// The same for one worker, in two steps. Which: the next one after bit `after`, so that a chain goes round among the
  /// idle instead of coming back to a worker that has not sat down yet.
  FLYWHEEL_TASK static ClaimedWorker plan(std::uint32_t word, std::uint64_t seen, std::uint32_t after) {
    const std::uint64_t above = seen & (~std::uint64_t{1} << after % 64);
    const std::uint64_t from = above ? above : seen;
    return from ? ClaimedWorker{0, from & (0 - from), word * 64 + lowest_bit(from)} : ClaimedWorker{};
  }
  FLYWHEEL_TASK ClaimedWorker take(const ClaimedWorker& planned) const {
    const auto word = P::device(bits[planned.worker / 64]);  // acquired as in claim()
    return {word.fetch_and_if(planned.wanted != 0, ~planned.wanted, P::kBeforeAcquire), planned.wanted, planned.worker};
  }

  /// After P::fence(): it releases what this thread knows of the task, and acquires the claim.
  FLYWHEEL_TASK void deliver(std::uint32_t worker, std::uint64_t item) const {
    // Release: pairs with the acquire load in IdleSlot::peek(). The task's inputs go with it.
    P::device(mailboxes[worker].value).store(item, P::kAfterRelease);
  }

  FLYWHEEL_TASK void empty(std::uint32_t worker) const {
    // Relaxed: nobody delivers before enroll(), which releases this.
    P::device(mailboxes[worker].value).store(kEmptyMailbox, Order::relaxed);
  }
};

/// The idle slot of the worker that shares its block with the inbox poller: the same protocol with one idle slot, in block scope, so
/// that a submission reaches the compute warps of an idle GPU without a trip through L2. The constants of the item's run
/// come with it for the same reason.
struct DirectSlot {
  std::uint64_t item;
  std::uint32_t waiting;
  alignas(16) RunConstants run;
};

/// A worker's one idle slot: the direct slot if it has one, else its place in the idle set.
template <class P>
struct IdleSlot {
  IdleSet<P> idle;
  std::uint32_t worker;
  DirectSlot* direct_slot;

  FLYWHEEL_TASK void enroll() const {
    if (!direct_slot) return idle.enroll(worker);
    P::block(direct_slot->waiting).store(1, Order::release);  // pairs with offer_directly()'s exchange
  }
  /// True if nobody sits there any more; false if an item is on its way.
  FLYWHEEL_TASK bool withdraw() const {
    return direct_slot ? P::block(direct_slot->waiting).exchange(0, Order::relaxed) == 1 : idle.withdraw(worker);
  }
  /// The item that has arrived, or kEmptyMailbox. Acquire: pairs with deliver() or offer_directly().
  /// Looks up to `looks` times.
  FLYWHEEL_TASK std::uint64_t peek(std::uint32_t polls) const {
    return direct_slot ? peek_direct_slot(polls) : peek_mailbox(polls);
  }
  FLYWHEEL_TASK void empty() const {
    if (!direct_slot) return idle.empty(worker);
    // Relaxed: as in IdleSet::empty().
    P::block(direct_slot->item).store(kEmptyMailbox, Order::relaxed);
  }

 private:
  /// Acquire: pairs with the release in offer_directly().
  FLYWHEEL_TASK std::uint64_t peek_direct_slot(std::uint32_t polls) const {
    std::uint64_t item = kEmptyMailbox;
    for (std::uint32_t i = 0; i < polls && item == kEmptyMailbox; ++i) item = P::block(direct_slot->item).load(Order::acquire);
    return item;
  }

  /// Acquire: pairs with the release in IdleSet::deliver().
  FLYWHEEL_TASK std::uint64_t peek_mailbox(std::uint32_t polls) const {
    std::uint64_t item = kEmptyMailbox;
    for (std::uint32_t i = 0; i < polls && item == kEmptyMailbox; ++i)
      item = P::device(idle.mailboxes[worker].value).load(Order::acquire);
    return item;
  }
};

/// Called by the inbox poller: hands `item` over if the direct slot's worker waits.
template <class P>
FLYWHEEL_TASK bool offer_directly(DirectSlot& direct_slot, std::uint64_t item, const RunConstants& run) {
  if (P::block(direct_slot.waiting).exchange(0, Order::acquire) != 1) return false;  // pairs with enroll()
  direct_slot.run = run;
  P::block(direct_slot.item).store(item, Order::release);                            // pairs with peek()
  return true;
}

}  // namespace flywheel
