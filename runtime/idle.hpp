// Idle workers: a bit each, and a mailbox each. The way a ready task reaches an idle worker without any queue.
//
// A worker with nothing to do sets its bit. A producer claims workers by clearing bits with one fetch_and, then puts
// an item in each claimed worker's mailbox. A mailbox therefore has one writer at a time and needs no lap or ticket.
// An enrolled worker goes on looking at the queues: a task pushed just before it enrolled costs one look, and is
// never lost; no sequentially consistent fence is needed for that.
#pragma once

#include <cstdint>

#include "runtime/bits.hpp"
#include "runtime/platform.hpp"

namespace flywheel {

inline constexpr std::uint32_t kMaxWorkers = 1024;
inline constexpr std::uint32_t kIdleWords = kMaxWorkers / 32;
inline constexpr std::uint64_t kEmptyMailbox = ~std::uint64_t{0};

using Mailbox = Padded<std::uint64_t>;

/// Plain handle over the bits and mailboxes of all workers.
template <class P>
struct IdleSet {
  std::uint32_t* bits;  // ceil(workers / 32) words on one line
  Mailbox* mailboxes;   // one a worker, each on its own line
  std::uint32_t workers;

  /// Called by the worker's leading lane, with its mailbox empty.
  FLYWHEEL_TASK void enroll(std::uint32_t worker) const {
    // Release: pairs with the acquire fetch_and in claim(). The claimer's store to the mailbox comes after the
    // worker emptied it.
    P::device(bits[worker / 32]).fetch_or(1u << worker % 32, Order::release);
  }

  /// True if the worker is out of the set with nothing in its mailbox; false if an item is on its way.
  FLYWHEEL_TASK bool withdraw(std::uint32_t worker) const {
    const std::uint32_t bit = 1u << worker % 32;
    return P::device(bits[worker / 32]).fetch_and(~bit, Order::relaxed) & bit;
  }

  FLYWHEEL_TASK std::uint32_t words() const { return (workers + 31) / 32; }

  /// Collective. Claims up to n workers of one word; returns their bits and the word's index. 0 if none is idle.
  /// `hint`, if not 0, is what lane i saw in word i a moment ago: it saves the first look.
  FLYWHEEL_TASK std::uint32_t claim(std::uint32_t n, std::uint32_t& word, std::uint32_t hint = 0) const {
    for (std::uint32_t base = 0; base < words(); base += P::lanes()) {
      const std::uint32_t mine = base + P::lane();
      const bool hinted = base == 0 && P::ballot(hint != 0);
      std::uint32_t seen = hint;
      if (!hinted) seen = mine < words() ? P::device(bits[mine]).load(Order::relaxed) : 0;
      const std::uint32_t found = P::ballot(seen != 0);
      if (!found) continue;
      const std::uint32_t source = nth_bit(found, 0);
      std::uint32_t got = 0;
      if (P::lane() == source) {
        const std::uint32_t wanted = lowest_bits(seen, n);
        got = P::device(bits[mine]).fetch_and(~wanted, Order::acquire) & wanted;  // pairs with enroll()
      }
      got = P::broadcast(got, source);
      word = base + source;
      if (got) return got;
    }
    return 0;
  }

  /// After P::release_fence().
  FLYWHEEL_TASK void deliver(std::uint32_t worker, std::uint64_t item) const {
    // Release: pairs with the acquire load in Lookout::look(). The task's inputs go with it.
    P::publish(mailboxes[worker].value, item);
  }

  FLYWHEEL_TASK void empty(std::uint32_t worker) const {
    P::device(mailboxes[worker].value).store(kEmptyMailbox, Order::relaxed);
  }
};

/// The seat of the worker that shares its block with the door: the same protocol with one seat, in block scope, so
/// that a submission reaches the compute warps of an idle GPU without a trip through L2.
struct Porch {
  std::uint64_t item;
  std::uint32_t waiting;
};

/// A worker's one seat: the porch if it has one, else its place in the idle set.
template <class P>
struct Seat {
  IdleSet<P> idle;
  std::uint32_t worker;
  Porch* porch;

  FLYWHEEL_TASK void enroll() const {
    if (!porch) return idle.enroll(worker);
    P::block(porch->waiting).store(1, Order::release);  // pairs with offer_porch()'s exchange
  }
  /// True if nobody sits there any more; false if an item is on its way.
  FLYWHEEL_TASK bool withdraw() const {
    return porch ? P::block(porch->waiting).exchange(0, Order::relaxed) == 1 : idle.withdraw(worker);
  }
  /// The word an item arrives in. To be read with acquire, device scope: pairs with deliver() or offer_porch().
  FLYWHEEL_TASK std::uint64_t& inbox() const { return porch ? porch->item : idle.mailboxes[worker].value; }
  FLYWHEEL_TASK void empty() const {
    if (!porch) return idle.empty(worker);
    P::block(porch->item).store(kEmptyMailbox, Order::relaxed);
  }
};

/// Called by the door: hands `item` over if the porch's worker waits.
template <class P>
FLYWHEEL_TASK bool offer_porch(Porch& porch, std::uint64_t item) {
  if (P::block(porch.waiting).exchange(0, Order::acquire) != 1) return false;  // pairs with enroll()
  P::block(porch.item).store(item, Order::release);                            // pairs with the load in look()
  return true;
}

}  // namespace flywheel
