// Each wire of the runtime with plain memory on it: only the wire's own orders keep the two ends from racing.
// A wire's function runs it from end to end on threads and says whether what came out was right.
#pragma once

#include <atomic>
#include <vector>

#include "runtime/base/barrier.hpp"
#include "runtime/base/counter.hpp"
#include "runtime/records/heartbeat.hpp"
#include "runtime/records/idle.hpp"
#include "runtime/records/inbox.hpp"
#include "runtime/records/stream.hpp"
#include "support/internals.hpp"
#include "support/queue_memory.hpp"
#include "support/threads.hpp"
#include "support/weak_platform.hpp"

namespace flywheel::testing {

inline constexpr std::uint32_t kCargo = 200;  // what each wire carries

namespace views {
using P = WeakPlatform;

/// Counts what came out wrong. Relaxed, and touched only then: a test's own atomics must order nothing.
struct Flaws {
  std::atomic<std::uint32_t> count{0};
  void add(bool wrong) {
    if (wrong) count.fetch_add(1, std::memory_order_relaxed);
  }
  bool none() const { return count.load(std::memory_order_relaxed) == 0; }
};

/// Two producers, two consumers; the cargo of an item is written before it is pushed.
inline bool queue() {
  QueueMemory<P> memory(4);
  name_words("slots", memory.slots.data(), memory.slots.size() * 8);
  std::vector<std::uint64_t> cargo(kCargo);
  std::atomic<std::uint32_t> next{0}, done{0};
  Flaws flaws;
  Limit limit;
  const Deadline deadline;
  const auto relaxed = std::memory_order_relaxed;
  run_together(4, [&](std::uint32_t self) {
    for (std::uint32_t i = 0; self < 2 && (i = next.fetch_add(1, relaxed)) < kCargo;) {
      cargo[i] = i + 1;
      memory.queue().push(
          1, [&](std::uint32_t) { return i; }, limit.wait());
    }
    for (std::uint32_t spins = 0; self >= 2 && done.load(relaxed) < kCargo && !deadline.passed(); ++spins) {
      std::uint64_t item = 0;
      if (!memory.queue().size_hint() || !memory.queue().pop(1, &item, limit.wait())) {
        P::pause(spins % 512);
        continue;
      }
      flaws.add(cargo[item] != item + 1);
      done.fetch_add(1, relaxed);
    }
  });
  return flaws.none() && done == kCargo;
}

/// Three predecessors write a cell each; the last one reads them all. The next round starts when it has.
inline bool counter() {
  constexpr std::uint32_t kThreads = 3;
  std::uint64_t word = kThreads;
  name_word("counter", word);
  std::uint32_t cells[kThreads] = {};
  std::atomic<std::uint32_t> round{0};
  Flaws flaws;
  run_together(kThreads, [&](std::uint32_t self) {
    for (std::uint32_t r = 0; r < kCargo; ++r) {
      cells[self] = r;
      if (arrive<P>(word, false, kThreads).last) {
        for (const std::uint32_t cell : cells) flaws.add(cell != r);
        round.store(r + 1, std::memory_order_release);
      } else {
        flaws.add(!wait_for([&] { return round.load(std::memory_order_acquire) > r; }));
      }
    }
  });
  return flaws.none();
}

/// The host writes a message's cargo before the message; the inbox poller reads it before it releases the entry.
inline bool inbox() {
  constexpr std::uint32_t kCapacity = 4;
  std::vector<InboxEntry> entries(kCapacity);
  std::uint64_t consumed = 0, cargo[kCapacity] = {};
  Flaws flaws;
  name_words("entries", entries.data(), kCapacity * sizeof(InboxEntry));
  name_word("consumed", consumed);
  const Inbox<P> inbox{entries.data(), kCapacity, &consumed};
  run_together(2, [&](std::uint32_t self) {
    for (std::uint64_t n = 0; n < kCargo; ++n) {
      if (self == 0) {
        wait_for([&] { return n - P::system(consumed).load(Order::acquire) < kCapacity; });
        cargo[n % kCapacity] = n;
        inbox.write(n, Message{});
      } else {
        std::uint32_t words[kMessageWords], size = 0;
        wait_for([&] {
          Polled<P, kFirstWords> polled;
          inbox.load(n, polled, 0, kFirstWords);
          return inbox.take(n, polled, kFirstWords, words, size);
        });
        flaws.add(cargo[n % kCapacity] != n);
        inbox.release(n + 1);
      }
    }
  });
  return flaws.none();
}

/// A worker clears its local word and becomes idle; the thread that claims it leaves cargo there and delivers.
inline bool mailbox() {
  constexpr std::uint32_t kWorkers = 2;
  std::uint64_t bits[1] = {}, local[kWorkers] = {};
  Flaws flaws;
  std::vector<Mailbox> mailboxes(kWorkers, Mailbox{kEmptyMailbox});
  name_word("bits", bits);
  name_words("mailboxes", mailboxes.data(), kWorkers * sizeof(Mailbox));
  const IdleSet<P> idle{bits, mailboxes.data(), kWorkers};
  const auto sit = [&](std::uint32_t self) {
    const IdleSlot<P> idle_slot{idle, self, nullptr};
    local[self] = 0;
    idle_slot.enroll();
    wait_for([&] { return idle_slot.peek(1) != kEmptyMailbox; });
    flaws.add(local[self] != idle_slot.peek(1) + 1);
    idle_slot.empty();
  };
  const auto give = [&](std::uint64_t item) {
    std::uint64_t claimed = 0;
    wait_for([&] { return (claimed = idle.claim(0, idle.seen(0), 1, 0).bits()) != 0; });
    const std::uint32_t worker = lowest_bit(claimed);
    flaws.add(local[worker] != 0);
    local[worker] = item + 1;
    P::release_fence();
    idle.deliver(worker, item);
  };
  run_together(kWorkers + 1, [&](std::uint32_t self) {
    for (std::uint64_t n = 0; self < kWorkers && n < kCargo; ++n) sit(self);
    for (std::uint64_t n = 0; self == kWorkers && n < kCargo * kWorkers; ++n) give(n);
  });
  return flaws.none();
}

/// The same with the inbox poller and the one idle slot on its direct slot: the run's constants one way, a note the other.
inline bool direct_slot() {
  DirectSlot direct_slot{kEmptyMailbox, 0, 0, {}, {}, 0};
  name_word("waiting", direct_slot.waiting);
  name_word("item", direct_slot.item);
  std::vector<std::uint64_t> notes(kCargo);
  Flaws flaws;
  const IdleSlot<P> idle_slot{{}, 0, &direct_slot};
  const auto sit = [&](std::uint32_t n) {
    notes[n] = n + 7;
    idle_slot.enroll();
    wait_for([&] { return idle_slot.peek(1) != kEmptyMailbox; });
    flaws.add(idle_slot.peek(1) != n || direct_slot.run.generation != n);
    idle_slot.empty();
  };
  const auto give = [&](std::uint32_t n) {
    Message message{};
    message.run.generation = n;
    wait_for([&] { return offer_directly<P>(direct_slot, n, message.run, message); });
    flaws.add(notes[n] != n + 7);
  };
  run_together(2, [&](std::uint32_t self) {
    for (std::uint32_t n = 0; n < kCargo; ++n) self == 0 ? sit(n) : give(n);
  });
  return flaws.none();
}

/// Two writers in turn, a stream of two cells. The reader has caught up when the first one writes, so that
/// one learns of the space from the reader and the other from the cached limit. Each looks at what the reader
/// noted there.
inline bool stream() {
  constexpr std::uint64_t kCapacity = 2;
  std::vector<StreamCell> cells(kCapacity);
  std::uint64_t consumed = 0;
  RunState run{};
  name_words("cells", cells.data(), kCapacity * sizeof(StreamCell));
  name_word("consumed", consumed);
  name_word("limit", run.emit_limit);
  std::vector<std::uint64_t> cargo(kCargo), notes(kCargo);
  std::atomic<std::uint64_t> turn{0}, caught_up{0};
  Flaws flaws;
  Limit limit;
  const Stream<P> stream{cells.data(), &consumed, kCapacity};
  const auto write = [&](std::uint64_t t) {
    wait_for([&] { return turn.load(std::memory_order_relaxed) == t; });
    if (t % 2 == 0) wait_for([&] { return caught_up.load(std::memory_order_relaxed) == t; });
    cargo[t] = t + 1;
    flaws.add(!stream.write(run, t, limit.wait()));
    if (t >= kCapacity) flaws.add(notes[t - kCapacity] != t - kCapacity + 1);
    turn.store(t + 1, std::memory_order_relaxed);
  };
  const auto read = [&](std::uint64_t t) {
    std::uint64_t value = 0;
    notes[t] = t + 1;
    wait_for([&] { return stream.read(t, value); });
    flaws.add(value != t || cargo[t] != t + 1);
    caught_up.store(t + 1, std::memory_order_relaxed);
  };
  run_together(3, [&](std::uint32_t self) {
    for (std::uint64_t t = 0; t < kCargo; ++t) {
      if (self == 2) read(t);
      else if (t % 2 == self) write(t);
    }
  });
  return flaws.none();
}

/// Each worker writes a cell before a meeting and reads its neighbour's after it.
inline bool barrier() {
  constexpr std::uint32_t kWorkers = 3;
  std::uint64_t word = 0, cells[2][kWorkers] = {};
  name_word("barrier", word);
  Flaws flaws;
  Limit limit;
  const GridBarrier<P> barrier{&word, kWorkers};
  run_together(kWorkers, [&](std::uint32_t self) {
    for (std::uint64_t k = 1; k <= kCargo; ++k) {
      cells[k & 1][self] = k;
      barrier.arrive(k, false);
      flaws.add(barrier.wait(0, k, limit.wait()) != BarrierResult::go_on);
      flaws.add(cells[k & 1][(self + 1) % kWorkers] != k);
    }
  });
  return flaws.none();
}

}  // namespace views
}  // namespace flywheel::testing
