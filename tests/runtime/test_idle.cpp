// Idle workers: who is claimed gets exactly one item; who withdraws gets none.
#include "runtime/records/idle.hpp"
#include "support/internals.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <vector>

#include "support/seed.hpp"
#include "support/threads.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using P = CpuPlatform;

struct IdleMemory {
  std::uint32_t workers;
  std::uint64_t bits[kIdleWords] = {};
  std::vector<Mailbox> mailboxes;

  explicit IdleMemory(std::uint32_t n) : workers(n), mailboxes(n, Mailbox{kEmptyMailbox}) {}
  IdleSet<P> idle() { return {bits, mailboxes.data(), workers}; }
};

/// Enroll, withdraw and claim of one thread in random order, against a std::set.
void behaves_like_a_set() {
  IdleMemory memory(*rc::gen::element(1u, 63u, 64u, 150u));
  std::set<std::uint32_t> model;
  for (const int step : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 3))) {
    const auto worker = *rc::gen::inRange(0u, memory.workers);
    if (step == 0) {
      if (model.insert(worker).second) memory.idle().enroll(worker);
    } else if (step == 1) {
      RC_ASSERT(memory.idle().withdraw(worker) == (model.erase(worker) == 1));
    } else {
      const auto n = *rc::gen::inRange(1u, 66u);
      const std::uint32_t word = worker / 64;
      const std::uint64_t seen = memory.idle().seen(word);
      const Claim claim = memory.idle().claim(word, seen, n, *rc::gen::inRange(0u, 2000u));
      RC_ASSERT(claim.word == word);
      RC_ASSERT(count_bits(claim.bits()) == std::min(n, count_bits(seen)));
      for (std::uint64_t got = claim.bits(); got; got &= got - 1) RC_ASSERT(model.erase(word * 64 + lowest_bit(got)) == 1);
    }
  }
}

/// Workers enroll as idle, withdraw and take items; other threads claim them and deliver items 0..total-1. All else that
/// passes between them is plain memory: an input for each item, and a worker's local word, which it writes before it
/// enrolls.
struct Exchange {
  IdleMemory memory;
  DirectSlot direct_slot{kEmptyMailbox, 0, 0, {}, {}, 0};
  std::uint32_t total;
  std::vector<std::uint32_t> inputs, taken;
  std::vector<std::uint64_t> local;
  std::atomic<std::uint32_t> next{0}, done{0}, wrong{0};
  Deadline deadline;

  Exchange(std::uint32_t workers, std::uint32_t items)
      : memory(workers),
        total(items),
        inputs(items),
        taken(items),
        local(workers) {}

  bool over() {
    return done.load(std::memory_order_relaxed) >= total || wrong.load(std::memory_order_relaxed) || deadline.passed();
  }

  void work(const IdleSlot<P>& idle_slot, std::uint64_t seed) {
    Random random(seed);
    while (!over()) {
      ++local[idle_slot.worker];
      idle_slot.enroll();
      const std::uint32_t limit = pick(random, 0, 200);
      for (std::uint32_t spins = 0; idle_slot.peek(1) == kEmptyMailbox; ++spins) {
        if ((spins >= limit || over()) && idle_slot.withdraw()) break;
        P::pause(spins);
      }
      if (idle_slot.peek(1) != kEmptyMailbox) take(idle_slot);
    }
  }

  void take(const IdleSlot<P>& idle_slot) {
    const std::uint64_t item = idle_slot.peek(1);
    idle_slot.empty();
    if (item >= total || inputs[item] != item + 1) return void(++wrong);
    ++taken[item];
    done.fetch_add(1, std::memory_order_relaxed);
  }

  void claim(std::uint64_t seed) {
    Random random(seed);
    for (std::uint32_t spins = 0; next.load(std::memory_order_relaxed) < total && !over(); ++spins) {
      std::uint64_t got = memory.idle().claim(0, memory.idle().seen(0), pick(random, 1, 3), pick(random, 0, 63)).bits();
      if (!got) P::pause(spins % 512);
      for (; got; got &= got - 1) hand_over(lowest_bit(got));
    }
  }

  /// A claimed worker must get something; once all items are out it is enrolled again, as if never claimed.
  void hand_over(std::uint32_t worker) {
    const std::uint32_t item = next.fetch_add(1, std::memory_order_relaxed);
    if (item >= total) return memory.idle().enroll(worker);
    ++local[worker];  // the worker waits for the item and does not touch its local word
    inputs[item] = item + 1;
    memory.idle().deliver(worker, item);
  }

  void poll_and_deliver() {
    for (std::uint32_t item = 0, spins = 0; item < total && !over(); ++spins) {
      inputs[item] = item + 1;
      if (offer_directly<P>(direct_slot, item, {}, {})) ++item;
      else P::pause(spins % 512);
    }
  }

  void check() {
    CHECK(wrong == 0);
    CHECK(done == total);
    CHECK(std::count(taken.begin(), taken.end(), 1u) == std::ptrdiff_t{total});
  }
};
}  // namespace

TEST_CASE("the idle set of one thread behaves like a set") {
  CHECK(rc::check("idle set and std::set agree", behaves_like_a_set));
}

TEST_CASE("a claim takes idle workers of one word, from where the claimer likes") {
  IdleMemory memory(130);
  for (const std::uint32_t w : {3u, 5u, 9u, 64u, 129u}) memory.idle().enroll(w);
  const auto claim = [&](std::uint32_t word, std::uint32_t n, std::uint32_t start) {
    return memory.idle().claim(word, memory.idle().seen(word), n, start).bits();
  };
  CHECK(memory.idle().words() == 3);
  CHECK(claim(0, 2, 5) == (1u << 5 | 1u << 9));
  CHECK(claim(0, 2, 5) == 1u << 3);
  CHECK(claim(0, 2, 5) == 0);
  CHECK(claim(1, 64, 63) == 1);
  CHECK(claim(2, 64, 1) == 2);
  for (std::uint32_t word = 0; word < 3; ++word) CHECK(memory.idle().seen(word) == 0);
}

TEST_CASE("who was seen idle and is no longer is not claimed") {
  IdleMemory memory(4);
  memory.idle().enroll(1);
  CHECK(memory.idle().claim(0, 0b1111, 4, 0).bits() == 0b10);
  CHECK(memory.idle().claim(0, 0b1111, 4, 0).bits() == 0);
}

TEST_CASE("workers come and go while claimers hand out items: each item reaches one worker") {
  FLYWHEEL_TEST_SEED(seed);
  Exchange exchange(3, 8000);
  run_together(5, [&](std::uint32_t i) {
    if (i < 3) exchange.work({exchange.memory.idle(), i, nullptr}, seed + i);
    else exchange.claim(seed + i);
  });
  exchange.check();
}

TEST_CASE("the inbox poller hands items to the worker on its direct slot, which comes and goes") {
  FLYWHEEL_TEST_SEED(seed);
  Exchange exchange(1, 8000);
  run_together(2, [&](std::uint32_t i) {
    i ? exchange.poll_and_deliver() : exchange.work({exchange.memory.idle(), 0, &exchange.direct_slot}, seed);
  });
  exchange.check();
}

TEST_CASE("an empty direct slot takes nothing") {
  DirectSlot direct_slot{kEmptyMailbox, 0, 0, {}, {}, 0};
  CHECK_FALSE(offer_directly<P>(direct_slot, 5, {}, {}));
  CHECK(direct_slot.item == kEmptyMailbox);
  direct_slot.waiting = 1;
  CHECK(offer_directly<P>(direct_slot, 5, {}, {}));
  CHECK_FALSE(offer_directly<P>(direct_slot, 6, {}, {}));
  CHECK(direct_slot.item == 5);
}
