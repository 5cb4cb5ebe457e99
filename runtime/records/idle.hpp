// Idle workers: one bit and one mailbox for each, through which a ready task reaches an idle worker without a queue.
//
// An idle worker enrolls: it sets its bit. A producer claims workers: it clears bits with one fetch_and. Then it delivers
// an item into the mailbox of each claimed worker. So a mailbox has one producer at a time and needs no lap or ticket. An
// enrolled worker keeps polling the queues, so a task that was pushed just before it enrolled is not lost, without a
// sequentially consistent fence. The worker beside the inbox poller has a DirectSlot instead (README.md).
#pragma once

#include <cstdint>

#include "../base/bits.hpp"
#include "../base/platform.hpp"
#include "inbox.hpp"
#include "task.hpp"

namespace flywheel::detail {

inline constexpr std::uint32_t kMaxWorkers = 1024;
inline constexpr std::uint32_t kIdleWords = kMaxWorkers / 64;
inline constexpr std::uint64_t kEmptyMailbox = ~std::uint64_t{0};

/// One item, or kEmptyMailbox.
using Mailbox = Padded<std::uint64_t>;

/// The result of claim(): workers of one word of the idle set. It keeps the old value as the atomic returned it, so the
/// thread waits for that value only when it uses it.
struct Claim {
  std::uint64_t before;  // the word before the claim
  std::uint64_t wanted;  // bits of the workers that the claimer wanted
  std::uint32_t word;    // index of the word

  /// Bits of the workers that were claimed.
  FLYWHEEL_TASK std::uint64_t bits() const { return before & wanted; }
};

/// One worker that a producer claims, or plans to claim, before it has a task to deliver.
struct ClaimedWorker {
  std::uint64_t before;  // as in Claim
  std::uint64_t wanted;  // the worker's bit; 0: no worker
  std::uint32_t worker;

  /// Whether the claim succeeded.
  FLYWHEEL_TASK bool taken() const { return (before & wanted) != 0; }
};

/// Plain handle over the bits and mailboxes of all workers.
template <class P>
struct IdleSet {
  std::uint64_t* bits;  // ceil(workers / 64) words on one line
  Mailbox* mailboxes;   // one a worker, each on its own line
  std::uint32_t workers;

  /// Makes the worker available. Its mailbox must be empty. The worker calls it, or a claimer that does not need the worker.
  FLYWHEEL_TASK void enroll(std::uint32_t worker) const {
    // Release: pairs with the acquire fetch_and in claim() and take(). It orders the claimer's store to the mailbox after
    // the worker's store in empty().
    P::device(bits[worker / 64]).set(std::uint64_t{1} << worker % 64, Order::release);
  }

  /// Makes the worker unavailable. True if it was still in the set: no item will arrive. False if a producer has claimed
  /// it: an item will arrive, or the claimer enrolls the worker again.
  FLYWHEEL_TASK bool withdraw(std::uint32_t worker) const {
    const std::uint64_t bit = std::uint64_t{1} << worker % 64;
    // Relaxed: pairs with the fetch_and in claim() and take(); exactly one of the two clears the bit. On success
    // there is nothing to read; otherwise peek() acquires the item. As a read-modify-write it continues the releases
    // of other workers' enroll().
    return P::device(bits[worker / 64]).fetch_and(~bit, Order::relaxed) & bit;
  }

  FLYWHEEL_TASK std::uint32_t words() const { return (workers + 63) / 64; }
  /// Bits of the workers that are idle in a word. Relaxed: pairs with the updates in enroll(), claim(), take() and
  /// withdraw(). It is a hint: claim() decides which of these workers are still idle.
  FLYWHEEL_TASK std::uint64_t seen(std::uint32_t word) const { return P::device(bits[word]).load(Order::relaxed); }

  /// Claims up to n of the workers in `seen`, the idle workers of `word`. `start` distributes claimers over the bits.
  ///
  /// Acquire (by P::fence() before the deliveries): pairs with the release in enroll(). The worker has emptied its
  /// mailbox before the claimer fills it.
  FLYWHEEL_TASK Claim claim(std::uint32_t word, std::uint64_t seen, std::uint32_t n, std::uint32_t start) const {
    const std::uint64_t wanted = pick_bits(seen, n, start % 64);
    return {wanted ? claim_workers(word, wanted) : 0, wanted, word};
  }
  /// Claims those of the workers in `wanted` that are still idle; returns the word before the claim. Acquire: as in claim().
  FLYWHEEL_TASK std::uint64_t claim_workers(std::uint32_t word, std::uint64_t wanted) const {
    return P::device(bits[word]).fetch_and(~wanted, P::kBeforeAcquire);
  }

  /// Claims one worker in two steps: plan() selects it and take() claims it. plan() selects the first idle worker after bit
  /// `after`, so a chain of tasks goes round the idle workers and does not return to one that has not enrolled again yet.
  FLYWHEEL_TASK static ClaimedWorker plan(std::uint32_t word, std::uint64_t seen, std::uint32_t after) {
    const std::uint64_t above = seen & (~std::uint64_t{1} << after % 64);
    const std::uint64_t from = above ? above : seen;
    return from ? ClaimedWorker{0, from & (0 - from), word * 64 + lowest_bit(from)} : ClaimedWorker{};
  }
  FLYWHEEL_TASK ClaimedWorker take(const ClaimedWorker& planned) const {
    // Acquire, as in claim(): by P::fence() before the delivery; pairs with the release in enroll().
    const auto word = P::device(bits[planned.worker / 64]);
    return {word.fetch_and_if(planned.wanted != 0, ~planned.wanted, P::kBeforeAcquire), planned.wanted, planned.worker};
  }

  /// Puts an item into the mailbox of a claimed worker. The caller executes P::fence() between the claim and the
  /// delivery: it acquires the claim and releases the task's inputs.
  FLYWHEEL_TASK void deliver(std::uint32_t worker, std::uint64_t item) const {
    // Release (by that fence): pairs with the acquire load in IdleSlot::peek(). It publishes the task's inputs.
    P::device(mailboxes[worker].value).store(item, P::kAfterRelease);
  }

  /// Empties the worker's mailbox after it has taken the item.
  FLYWHEEL_TASK void empty(std::uint32_t worker) const {
    // Relaxed: pairs with the store in deliver(), which comes after a claim. enroll() releases this store to the claimer.
    P::device(mailboxes[worker].value).store(kEmptyMailbox, Order::relaxed);
  }
};

/// The idle slot of the worker that shares a block with the inbox poller. The protocol is that of the idle set with one
/// worker, in block scope: a submission reaches the compute warps of an idle GPU without a round trip to L2. The
/// constants of the item's run are delivered with the item for the same reason.
struct DirectSlot {
  std::uint64_t item;            // or kEmptyMailbox
  std::uint32_t waiting;         // 1: the worker is enrolled
  std::uint32_t ended;           // 1: the worker has ended a run since the item was offered
  alignas(16) RunConstants run;  // of the item, unless it is started
  TaskRecord record;             // likewise, if `run` has kInlineRoot
  std::uint32_t started;         // 1: the poller has started the item's task, see DirectStarter
};

/// The idle slot of one worker: its direct slot if it has one, otherwise its bit and mailbox in the idle set.
template <class P>
struct IdleSlot {
  IdleSet<P> idle;
  std::uint32_t worker;
  DirectSlot* direct_slot;

  FLYWHEEL_TASK void enroll() const {
    if (!direct_slot) return idle.enroll(worker);
    // Release: pairs with the acquire exchange in claim_direct_slot(). The poller overwrites the slot after the worker has
    // emptied `item` and read `run`.
    P::block(direct_slot->waiting).store(1, Order::release);
  }
  /// True if the worker was still enrolled: no item will arrive. False if a producer has claimed it.
  FLYWHEEL_TASK bool withdraw() const {
    // Relaxed: pairs with the exchange in claim_direct_slot(); exactly one of the two finds 1. On success there is nothing
    // to read; otherwise peek() acquires the item.
    return direct_slot ? P::block(direct_slot->waiting).exchange(0, Order::relaxed) == 1 : idle.withdraw(worker);
  }
  /// Polls up to `polls` times and returns the item that has arrived, or kEmptyMailbox. Acquire: pairs with the release in
  /// IdleSet::deliver() or deliver_directly().
  FLYWHEEL_TASK std::uint64_t peek(std::uint32_t polls) const {
    return direct_slot ? peek_direct_slot(polls) : peek_mailbox(polls);
  }
  /// When the host can see the end of a run, on the worker beside the poller: lets the poller go on, see
  /// MessageHandler::wait_for_direct_worker().
  FLYWHEEL_TASK void note_end() const {
    // Relaxed: pairs with the load there. Only the moment matters.
    if (direct_slot) P::block(direct_slot->ended).store(1, Order::relaxed);
  }
  FLYWHEEL_TASK void empty() const {
    if (!direct_slot) return idle.empty(worker);
    // Relaxed: pairs with the store of `item` in deliver_directly(); enroll() releases this store to it.
    P::block(direct_slot->item).store(kEmptyMailbox, Order::relaxed);
  }

 private:
  /// Acquire: pairs with the release in deliver_directly(). The task's inputs and `run` come with the item.
  FLYWHEEL_TASK std::uint64_t peek_direct_slot(std::uint32_t polls) const {
    std::uint64_t item = kEmptyMailbox;
    FLYWHEEL_ROLLED
    for (std::uint32_t i = 0; i < polls && item == kEmptyMailbox; ++i) item = P::block(direct_slot->item).load(Order::acquire);
    return item;
  }

  /// Acquire (by the fence behind the loop, so that a poll in vain does not empty L1): pairs with the release in
  /// IdleSet::deliver(). The task's inputs come with the item.
  FLYWHEEL_TASK std::uint64_t peek_mailbox(std::uint32_t polls) const {
    std::uint64_t item = kEmptyMailbox;
    FLYWHEEL_ROLLED
    for (std::uint32_t i = 0; i < polls && item == kEmptyMailbox; ++i)
      item = P::device(idle.mailboxes[worker].value).load(P::kBeforeAcquire);
    P::acquire_fence();
    return item;
  }
};

/// Claims the direct slot. False if its worker is not enrolled. One thread of the inbox poller calls it, before it delivers.
template <class P>
FLYWHEEL_TASK bool claim_direct_slot(DirectSlot& direct_slot) {
  // Acquire: pairs with the release in IdleSlot::enroll(). The worker no longer uses the slot that is overwritten next.
  return P::block(direct_slot.waiting).exchange(0, Order::acquire) == 1;
}

/// Delivers `item` to the claimed direct slot. Either its other members are written or the task is started.
template <class P>
FLYWHEEL_TASK void deliver_directly(DirectSlot& direct_slot, std::uint64_t item, bool started) {
  direct_slot.started = started;
  // Relaxed: pairs with IdleSlot::note_end(); the release below orders it before what the worker does with the item.
  P::block(direct_slot.ended).store(0, Order::relaxed);
  // Release: pairs with the acquire load in IdleSlot::peek(). It publishes the slot's other members, the run's state and
  // the task's inputs.
  P::block(direct_slot.item).store(item, Order::release);
}

/// Claims the direct slot for a root of `run`, which deliver_directly() is to follow with. False if its worker is not enrolled.
/// The inbox poller calls it. `run`: a copy of the message's, in registers on a GPU.
template <class P>
FLYWHEEL_TASK bool claim_directly(DirectSlot& direct_slot, const RunConstants& run) {
  if (!claim_direct_slot<P>(direct_slot)) return false;
  direct_slot.run = run;
  return true;
}
/// Delivers `item` to the direct slot and returns true if its worker is enrolled. `run`: as in claim_directly().
template <class P>
FLYWHEEL_TASK bool offer_directly(DirectSlot& direct_slot, std::uint64_t item, const RunConstants& run,
                                  const Message& message) {
  if (!claim_directly<P>(direct_slot, run)) return false;
  // As what it is aligned to: a message carries it at a multiple of 16 bytes only.
  if (run.flags & kInlineRoot)
    reinterpret_cast<CarriedRecord&>(direct_slot.record) = reinterpret_cast<const CarriedRecord&>(message.carried);
  deliver_directly<P>(direct_slot, item, false);
  return true;
}

}  // namespace flywheel::detail
