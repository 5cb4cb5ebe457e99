// Dependency counters: one last arriver a round, who sees what all the others wrote, and re-arms.
#include "runtime/base/counter.hpp"
#include "support/internals.hpp"

#include <rapidcheck.h>

#include <atomic>
#include <vector>

#include "support/seed.hpp"
#include "support/threads.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using P = CpuPlatform;

/// One in n, whatever the size of the test case.
bool one_in(int n) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, n)) == 0; }

/// Arrivals (some failed) and spawns of one thread in random order, against counting.
void behaves_like_counting() {
  const auto predecessors = *rc::gen::inRange(1u, 20u);
  std::uint64_t counter = predecessors;
  for (int round = 0; round < 3; ++round) {
    std::uint32_t to_come = predecessors;
    bool failed = false;
    while (to_come) {
      if (one_in(4)) {
        expect_more<P>(counter, 1);
        ++to_come;
      }
      const bool fails = one_in(8);
      failed |= fails;
      --to_come;
      const Arrival arrival = arrive<P>(counter, fails, predecessors);
      RC_ASSERT(arrival.last == (to_come == 0));
      if (arrival.last) RC_ASSERT(arrival.failed == failed);
    }
    RC_ASSERT(counter == predecessors);  // armed again, and the failures forgotten
  }
}

/// The same with one predecessor that says that its worker awaits the task, and gives the wait up at some time or not.
void awaited_behaves_like_counting() {
  const auto predecessors = *rc::gen::inRange(2u, 12u), awaiting = *rc::gen::inRange(0u, predecessors);
  std::uint64_t counter = predecessors;
  for (int round = 0; round < 3; ++round) {
    bool failed = false, awaited = false, taken = false;
    for (std::uint32_t arrived = 0; arrived < predecessors; ++arrived) {
      const bool awaits = arrived == awaiting, fails = !awaits && one_in(8);
      failed |= fails;
      awaited |= awaits;
      const std::uint64_t step = fails ? kFailedArrival : kArrival;
      const std::uint64_t now = begin_arrival<P>(counter, awaits ? step + kIsAwaited : step);
      RC_ASSERT(now == counter);
      RC_ASSERT(is_complete(now) == (arrived + 1 == predecessors));
      RC_ASSERT(has_failed(now) == failed);
      RC_ASSERT(((now & kIsAwaited) != 0) == awaited);
      const Arrival arrival = end_arrival<P>(counter, now, predecessors);
      RC_ASSERT(arrival.last == (is_complete(now) && !awaited));
      if (arrival.last) RC_ASSERT(arrival.failed == failed);
      taken |= arrival.last;
      if (awaited && one_in(4)) {  // the wait is given up
        const std::uint64_t then = P::device(counter).fetch_and(~kIsAwaited, Order::acquire);
        awaited = false;
        if (!is_complete(then)) continue;
        RC_ASSERT(has_failed(then) == failed);
        arm_again<P>(counter, predecessors);
        taken = true;
      }
    }
    if (awaited) arm_again<P>(counter, predecessors);
    RC_ASSERT(taken != awaited);  // one of the two runs the task
    RC_ASSERT(counter == predecessors);
  }
}

/// n threads meet at one counter again and again. The last one of a round adds up what all wrote, and opens
/// the next.
struct CountedRounds {
  std::uint32_t threads, rounds;
  std::uint64_t counter;
  std::vector<std::uint32_t> cells;
  std::uint32_t sum = 0;  // plain, of the last round's last arriver
  std::atomic<std::uint32_t> round{0}, lasts{0}, wrong{0};

  CountedRounds(std::uint32_t n, std::uint32_t count) : threads(n), rounds(count), counter(n), cells(n) {}

  void take_part(std::uint32_t self) {
    for (std::uint32_t r = 0; r < rounds; ++r) {
      cells[self] = r + self;
      const Arrival arrival = arrive<P>(counter, false, threads);
      if (arrival.last) end_round(r);
      else if (!wait_for([&] { return round.load(std::memory_order_acquire) > r; })) ++wrong;
    }
  }

  void end_round(std::uint32_t r) {
    sum = 0;
    for (const std::uint32_t cell : cells) sum += cell;
    if (sum != threads * r + threads * (threads - 1) / 2) ++wrong;
    ++lasts;
    round.store(r + 1, std::memory_order_release);
  }
};
}  // namespace

TEST_CASE("a counter of one thread behaves like counting") {
  CHECK(rc::check("arrivals, failures and spawns", behaves_like_counting));
}

TEST_CASE("a counter whose task is awaited behaves like counting") {
  CHECK(rc::check("arrivals, failures and a wait", awaited_behaves_like_counting));
}

TEST_CASE("arrivals at several counters overlap, and each ends by itself") {
  std::uint64_t counters[3] = {1, 2, 3}, now[3] = {};
  for (std::uint32_t i = 0; i < 3; ++i) now[i] = begin_arrival<P>(counters[i], i == 1 ? kFailedArrival : kArrival);
  CHECK(end_arrival<P>(counters[0], now[0], 1).last);
  CHECK(counters[0] == 1);
  CHECK_FALSE(end_arrival<P>(counters[1], now[1], 2).last);
  CHECK(has_failed(counters[1]));
  CHECK_FALSE(end_arrival<P>(counters[2], now[2], 3).last);
  CHECK(counters[2] == 2);
}

TEST_CASE("a spawned task is one more to come, whether its parent's successor is awaited or not") {
  std::uint64_t counter = 2;
  begin_arrival<P>(counter, kArrival + kIsAwaited);
  expect_more<P>(counter, 1);
  CHECK_FALSE(is_complete(begin_arrival<P>(counter, kArrival)));
  const std::uint64_t now = begin_arrival<P>(counter, kFailedArrival);
  CHECK(is_complete(now));
  CHECK(has_failed(now));
  CHECK_FALSE(end_arrival<P>(counter, now, 2).last);
  arm_again<P>(counter, 2);
  CHECK(counter == 2);
}

TEST_CASE("either the thread that awaits or the last to arrive goes on, and it sees what all others wrote") {
  FLYWHEEL_TEST_SEED(seed);
  constexpr std::uint32_t kThreads = 3, kRounds = 1000;
  std::uint64_t counter = kThreads, cells[kThreads] = {};
  std::atomic<std::uint32_t> round{0}, wrong{0};
  run_together(kThreads, [&](std::uint32_t self) {
    Random random(seed + self);
    for (std::uint32_t r = 0; r < kRounds; ++r) {
      cells[self] = r;
      const bool awaits = self == 0;
      const std::uint64_t now = begin_arrival<P>(counter, awaits ? kArrival + kIsAwaited : kArrival);
      bool goes_on = end_arrival<P>(counter, now, kThreads).last;
      if (awaits) {
        const std::uint32_t polls = pick(random, 0, 20);
        for (std::uint32_t i = 0; i < polls && !goes_on; ++i) {
          goes_on = is_complete(P::device(counter).load(Order::acquire));
          std::this_thread::yield();
        }
        if (!goes_on) goes_on = is_complete(P::device(counter).fetch_and(~kIsAwaited, Order::acquire));
        if (goes_on) arm_again<P>(counter, kThreads);
      }
      if (goes_on) {
        for (const std::uint64_t cell : cells) wrong += cell != r;
        if (round.exchange(r + 1, std::memory_order_acq_rel) != r) ++wrong;
      } else if (!wait_for([&] { return round.load(std::memory_order_acquire) > r; })) {
        ++wrong;
      }
    }
  });
  CHECK(wrong == 0);
  CHECK(counter == kThreads);
}

TEST_CASE("there is one last arriver a round, and it sees what all the others wrote") {
  CountedRounds rounds(4, 2000);
  run_together(4, [&](std::uint32_t i) { rounds.take_part(i); });
  CHECK(rounds.wrong == 0);
  CHECK(rounds.lasts == 2000);
  CHECK(rounds.counter == 4);
}

TEST_CASE("the last arriver learns of a failure, whichever predecessor failed") {
  for (std::uint32_t failing = 0; failing < 3; ++failing) {
    std::uint64_t counter = 3;
    std::atomic<std::uint32_t> told{0};
    run_together(3, [&](std::uint32_t i) {
      const Arrival arrival = arrive<P>(counter, i == failing, 3);
      if (arrival.last && arrival.failed) ++told;
    });
    CHECK(told == 1);
    CHECK(counter == 3);
  }
}

TEST_CASE("predecessors that spawn more to come never let the count reach zero early") {
  FLYWHEEL_TEST_SEED(seed);
  constexpr std::uint32_t kThreads = 3, kSpawns = 500;
  std::uint64_t counter = kThreads;
  std::atomic<std::uint32_t> lasts{0}, arrived{0}, early{0};
  run_together(kThreads, [&](std::uint32_t i) {
    Random random(seed + i);
    for (std::uint32_t s = 0, open = 1; open; ++s) {
      const bool spawns = s < kSpawns && pick(random, 0, 1);
      if (spawns) expect_more<P>(counter, 1);
      open += spawns ? 1 : 0;
      --open;
      arrived.fetch_add(1, std::memory_order_relaxed);
      if (arrive<P>(counter, false, kThreads).last && (++lasts, open)) ++early;
    }
  });
  CHECK(lasts == 1);
  CHECK(early == 0);
  CHECK(arrived >= kThreads);
  CHECK(counter == kThreads);
}
