// The grid barrier: all meet, a vote to stop reaches all at the same meeting, and an abort ends the wait.
#include "runtime/base/barrier.hpp"
#include "support/internals.hpp"

#include <atomic>
#include <functional>
#include <vector>

#include "support/seed.hpp"
#include "support/threads.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// A CPU platform that calls `before_load` before every load from device memory, so that a test can choose
/// what other workers do between a worker's arrival and its look at the word.
struct StagedPlatform : CpuPlatform {
  static inline thread_local std::function<void()> before_load;

  template <class T>
  struct Ref : AtomicRef<T, Scope::device> {
    using AtomicRef<T, Scope::device>::AtomicRef;
    T load(Order o) const {
      if (before_load) std::exchange(before_load, nullptr)();
      return AtomicRef<T, Scope::device>::load(o);
    }
  };
  template <class T>
  static auto device(T& word) {
    return Ref<T>(word);
  }
};

/// The word of a barrier and what it was when a run began.
struct Ground {
  std::uint32_t workers;
  std::uint64_t word, base;
  Limit limit;

  explicit Ground(std::uint32_t n, std::uint64_t start = 0) : workers(n), word(start), base(start) {}

  void begin_run() { base = word; }
  /// Arrivals so far since the run began.
  std::uint32_t arrivals() { return static_cast<std::uint32_t>(CpuPlatform::device(word).load(Order::relaxed) - base); }
  template <class P = CpuPlatform>
  BarrierResult meet(std::uint64_t k, bool vote) {
    const GridBarrier<P> barrier{&word, workers};
    barrier.arrive(k, vote);
    return barrier.wait(base, k, limit.wait());
  }
};

/// Workers that meet k times; each phase every worker writes a cell and reads its neighbour's of the same
/// phase.
struct Phases : Ground {
  std::vector<std::uint64_t> cells[2];
  std::atomic<std::uint32_t> wrong{0};

  Phases(std::uint32_t n, std::uint64_t start) : Ground(n, start) {
    for (auto& side : cells) side.resize(n);
  }

  /// Returns the meeting at which this worker learned that it is to stop, or 0.
  std::uint64_t take_part(std::uint32_t self, std::uint64_t meetings, std::uint64_t vote_at) {
    for (std::uint64_t k = 1; k <= meetings; ++k) {
      cells[k & 1][self] = k * 100 + self;
      const BarrierResult meeting = meet(k, k == vote_at);
      if (meeting == BarrierResult::aborted) ++wrong;
      if (meeting != BarrierResult::go_on) return k;
      const std::uint32_t neighbour = (self + 1) % workers;
      if (cells[k & 1][neighbour] != k * 100 + neighbour) ++wrong;
    }
    return 0;
  }
};

void all_stop_together(std::uint32_t workers, std::uint64_t vote_at, std::uint32_t voters, std::uint64_t start) {
  Phases phases(workers, start);
  std::vector<std::uint64_t> stopped(workers);
  run_together(workers, [&](std::uint32_t i) { stopped[i] = phases.take_part(i, vote_at + 50, i < voters ? vote_at : 0); });
  CHECK(phases.wrong == 0);
  CHECK(stopped == std::vector<std::uint64_t>(workers, vote_at));
}

/// A platform that only notes how long it is to wait.
struct NotesTicks {
  static inline std::uint32_t ticks = 0;
  static void wait_ticks(std::uint32_t count) { ticks = count; }
};
/// Ticks before the first poll of the next barrier, after `times` of them that took so many polls.
std::uint32_t ticks_after(FirstPoll& first, std::uint32_t polls, std::uint32_t times) {
  for (std::uint32_t i = 0; i < times; ++i) {
    first.polls = polls;
    first.await<NotesTicks>();
  }
  return NotesTicks::ticks;
}

}  // namespace

TEST_CASE("a worker's first poll moves behind one that came a trip too early, and back by and by") {
  FirstPoll first{FirstPoll::kBegin, 0};
  CHECK(ticks_after(first, 0, 1) == 260);
  CHECK(ticks_after(first, 2, 1) == 276);
  CHECK(ticks_after(first, 3, 1000) == 276);  // others came much later: that says nothing
  CHECK(ticks_after(first, 1, FirstPoll::kOne * 10) == 266);
  CHECK(ticks_after(first, 2, 100) < 400);
  CHECK(ticks_after(first, 1, FirstPoll::kOne * 1000) == 240);
}

TEST_CASE("all workers meet many times and see what the others wrote before the meeting") {
  for (const std::uint32_t workers : {1u, 2u, 4u, 11u}) {
    Phases phases(workers, 0);
    run_together(workers, [&](std::uint32_t i) { phases.take_part(i, workers > 4 ? 100 : 1500, 0); });
    CHECK(phases.wrong == 0);
  }
}

TEST_CASE("a vote to stop reaches all workers at the same meeting") {
  FLYWHEEL_TEST_SEED(seed);
  Random random(seed);
  for (int round = 0; round < 60; ++round)
    all_stop_together(pick(random, 1, 4), pick(random, 1, 20), 1, round % 2 ? 0 : random());
  all_stop_together(4, 3, 4, 0);
  all_stop_together(10, 2, 10, ~0ull);
}

TEST_CASE("runs one after another start from the word they find, across its wrap") {
  Phases phases(3, 0xfffffffffffffff0ull);
  for (std::uint64_t run = 0; run < 40; ++run) {
    phases.begin_run();
    std::vector<std::uint64_t> stopped(3);
    const std::uint64_t vote_at = run % 3 ? 1 + run % 4 : 0;
    run_together(3, [&](std::uint32_t i) { stopped[i] = phases.take_part(i, 6, i == run % 3 ? vote_at : 0); });
    CHECK(stopped == std::vector<std::uint64_t>(3, vote_at));
  }
  CHECK(phases.wrong == 0);
}

// A worker may be so fast that it votes at the next meeting before a slow one has looked at the word of this
// one.
TEST_CASE("a vote of the next meeting is not taken for one of this meeting") {
  for (std::uint64_t first = 1; first <= 2; ++first) {
    Ground ground(2);
    BarrierResult fast = BarrierResult::aborted, slow[2] = {BarrierResult::aborted, BarrierResult::aborted};
    run_together(2, [&](std::uint32_t i) {
      for (std::uint64_t k = 1; k < first; ++k) ground.meet(k, false);
      if (i == 0) {
        ground.meet(first, false);
        fast = ground.meet(first + 1, true);
        return;
      }
      StagedPlatform::before_load = [&] {  // after this worker's arrival: wait for both of the other's
        wait_for([&] { return ground.arrivals() >= 2 * first + 1; });
      };
      slow[0] = ground.meet<StagedPlatform>(first, false);
      slow[1] = ground.meet(first + 1, false);
    });
    INFO("meeting " << first);
    CHECK(slow[0] == BarrierResult::go_on);
    CHECK(slow[1] == BarrierResult::stop);
    CHECK(fast == BarrierResult::stop);
  }
}

TEST_CASE("an abort ends a meeting that somebody misses") {
  Ground ground(4);
  BarrierResult met[2] = {BarrierResult::go_on, BarrierResult::go_on};
  run_together(3, [&](std::uint32_t i) {
    if (i == 2) return ground.limit.give_up();
    met[i] = ground.meet(1, false);
  });
  CHECK(met[0] == BarrierResult::aborted);
  CHECK(met[1] == BarrierResult::aborted);
}

TEST_CASE("a worker that waits too long for the others reports it") {
  Ground ground(2);
  ground.limit.budget_ns = 1'000'000;
  CHECK(ground.meet(1, false) == BarrierResult::aborted);
  CHECK(ground.limit.report.reason == static_cast<std::uint32_t>(WaitReason::grid_barrier));
  CHECK(ground.limit.report.address == reinterpret_cast<std::uint64_t>(&ground.word));
}
