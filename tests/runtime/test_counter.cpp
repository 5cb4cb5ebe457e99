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
        expect_one_more<P>(counter);
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

/// n threads meet at one counter again and again. The last one of a round adds up what all wrote, and opens
/// the next.
struct Rounds {
  std::uint32_t threads, rounds;
  std::uint64_t counter;
  std::vector<std::uint32_t> cells;
  std::uint32_t sum = 0;  // plain, of the last round's last arriver
  std::atomic<std::uint32_t> round{0}, lasts{0}, wrong{0};

  Rounds(std::uint32_t n, std::uint32_t count) : threads(n), rounds(count), counter(n), cells(n) {}

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

TEST_CASE("there is one last arriver a round, and it sees what all the others wrote") {
  Rounds rounds(4, 2000);
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
      if (spawns) expect_one_more<P>(counter);
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
