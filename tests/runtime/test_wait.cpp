// Bounded waiting: a hang becomes a report, and an abort ends every wait.
#include "runtime/base/wait.hpp"
#include "support/internals.hpp"

#include <set>
#include <string>

#include "catch.hpp"
#include "support/threads.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using P = CpuPlatform;

bool wait_until_equal(const WaitContext& wait, std::uint64_t& word, std::uint64_t goal) {
  return spin_until<P>(wait, WaitReason::grid_barrier, &word, goal, [&](std::uint64_t& saw) {
    saw = P::device(word).load(Order::relaxed);
    return saw == goal;
  });
}
}  // namespace

TEST_CASE("a wait for what is there already ends at once and leaves no trace") {
  Limit limit;
  limit.budget_ns = 0;
  std::uint64_t word = 7;
  CHECK(wait_until_equal(limit.wait(), word, 7));
  CHECK_FALSE(limit.gave_up());
  CHECK(limit.report.reason == 0);
}

TEST_CASE("a wait ends when another thread brings it about") {
  Limit limit;
  std::uint64_t word = 0;
  bool came = false;
  run_together(2, [&](std::uint32_t i) {
    if (i) P::device(word).store(7, Order::relaxed);
    else came = wait_until_equal(limit.wait(), word, 7);
  });
  CHECK(came);
}

TEST_CASE("a spent budget says who saw what, and aborts everybody") {
  Limit limit;
  limit.budget_ns = 2'000'000;
  std::uint64_t word = 3;
  CHECK_FALSE(wait_until_equal(limit.wait(), word, 7));
  CHECK(limit.gave_up());
  CHECK(limit.report.reason == static_cast<std::uint32_t>(WaitReason::grid_barrier));
  CHECK(limit.report.address == reinterpret_cast<std::uint64_t>(&word));
  CHECK(limit.report.saw == 3);
  CHECK(limit.report.expected == 7);
  CHECK(limit.report.waited_ns >= limit.budget_ns);
}

TEST_CASE("no report is written where there is no room for one") {
  std::uint64_t abort = 0;
  std::uint64_t word = 3;
  CHECK_FALSE(wait_until_equal({&abort, nullptr, 1000, true}, word, 7));
  CHECK(abort == 1);
}

TEST_CASE("a wait that is not fatal gives up by itself and disturbs no other thread") {
  Limit limit;
  limit.budget_ns = 1'000'000;
  WaitContext wait = limit.wait();
  wait.fatal = false;
  std::uint64_t word = 3;
  CHECK_FALSE(wait_until_equal(wait, word, 7));
  CHECK_FALSE(limit.gave_up());
  CHECK(limit.report.reason == 0);
}

TEST_CASE("an abort ends the waits of all threads without a report") {
  Limit limit;
  std::uint64_t word = 0;
  std::uint32_t ended[4] = {};
  run_together(5, [&](std::uint32_t i) {
    if (i == 4) limit.give_up();
    else ended[i] = !wait_until_equal(limit.wait(), word, 7);
  });
  CHECK(ended[0] + ended[1] + ended[2] + ended[3] == 4);
  CHECK(limit.report.reason == 0);
}

TEST_CASE("a reader who sees the reason sees the whole report") {
  Limit limit;
  limit.budget_ns = 1'000'000;
  std::uint64_t word = 3, saw = 0, expected = 0;
  run_together(2, [&](std::uint32_t i) {
    if (i) return void(wait_until_equal(limit.wait(), word, 7));
    wait_for([&] { return P::system(limit.report.reason).load(Order::acquire) != 0; });
    saw = limit.report.saw;  // plain loads: the acquire above is all that orders them
    expected = limit.report.expected;
  });
  CHECK(saw == 3);
  CHECK(expected == 7);
}

TEST_CASE("every reason to wait has words of its own") {
  std::set<std::string> texts;
  for (std::uint32_t reason = 1; reason <= static_cast<std::uint32_t>(WaitReason::role); ++reason)
    texts.insert(describe(static_cast<WaitReason>(reason)));
  CHECK(texts.size() == static_cast<std::size_t>(WaitReason::role));
  CHECK(texts.count(describe(WaitReason::none)) == 0);
}

namespace {
/// A clock that the test sets.
struct SetNow : CpuPlatform {
  static inline std::uint64_t now = 0;
  static std::uint64_t now_ns() { return now; }
  static void pause(std::uint32_t) {}
};
}  // namespace

namespace {
/// Counts what reads the progress of one worker.
struct CountedProgress : SetNow {
  static inline const void* watched = nullptr;
  static inline int reads = 0;
  template <class T>
  static auto device(T& word) {
    reads += &word == watched;
    return CpuPlatform::device(word);
  }
};
}  // namespace

TEST_CASE("what others did is not looked at before a wait has lasted the 16th part of its budget") {
  Limit limit;
  limit.budget_ns = 16'000'000'000;
  Padded<std::uint64_t> progress[3] = {};
  WaitContext context = limit.wait();
  context.progress = progress;
  context.workers = 3;
  CountedProgress::watched = &progress[1].value;
  const auto reads_after = [&](std::uint64_t ns, std::uint64_t moved_at = 0) {
    std::uint64_t word = 3, looks = 0;
    SetNow::now = 1;
    CountedProgress::reads = 0;
    const bool came = spin_until<CountedProgress>(context, WaitReason::grid_barrier, &word, 7, [&](std::uint64_t&) {
      if (++looks % 256 == 0) SetNow::now += 1'000'000;
      if (moved_at && SetNow::now > moved_at) progress[1].value = 1;
      return SetNow::now > ns;
    });
    return came ? CountedProgress::reads : -1;
  };
  CHECK(reads_after(900'000'000) == 0);
  CHECK(reads_after(1'100'000'000) == 1);
  CHECK(reads_after(16'900'000'000) == 1);
  CHECK(reads_after(30'000'000'000, 9'000'000'000) == 2);  // another budget, for a worker got on
  CHECK_FALSE(limit.gave_up());
  CHECK(reads_after(60'000'000'000, 9'000'000'000) == -1);
  CHECK(limit.gave_up());
}

TEST_CASE("time in which a waiting thread did not run counts for next to nothing") {
  Limit limit;
  limit.budget_ns = 1'000'000'000;
  std::uint64_t word = 3, looks = 0;
  const auto wait = [&](std::uint64_t most) {
    SetNow::now = 1;
    return spin_until<SetNow>(limit.wait(), WaitReason::grid_barrier, &word, 7, [&](std::uint64_t&) {
      if (++looks % 256 == 0) SetNow::now += looks == 1024 ? 60'000'000'000 : 1'000'000;
      return looks == most;
    });
  };
  CHECK(wait(256 * 900));
  CHECK_FALSE(limit.gave_up());
  looks = 0;
  CHECK_FALSE(wait(256 * 1200));
  CHECK(limit.gave_up());
  CHECK(limit.report.waited_ns < 1'100'000'000);
}

TEST_CASE("a budget does not end while the host's process is stopped, and ends when it has been at work again for a while") {
  for (const bool fatal : {true, false}) {
    Limit limit;
    limit.budget_ns = 1'000'000'000;
    std::uint64_t word = 3, looks = 0, host = 1;
    WaitContext context = limit.wait(&host);
    context.fatal = fatal;
    SetNow::now = 1;
    const std::uint64_t goes_on_at = 5'300'000'000;  // stopped until then
    const bool came = spin_until<SetNow>(context, WaitReason::grid_barrier, &word, 7, [&](std::uint64_t&) {
      if (++looks % 256 == 0) SetNow::now += 1'000'000;
      if (SetNow::now > goes_on_at) host = 1 + SetNow::now - goes_on_at;
      return false;
    });
    CHECK_FALSE(came);
    CHECK(SetNow::now > goes_on_at + 200'000'000);
    CHECK(SetNow::now < goes_on_at + 2'000'000'000);
    CHECK(limit.gave_up() == fatal);
  }
}

TEST_CASE("a host that is at work all the time changes nothing about a budget") {
  Limit limit;
  limit.budget_ns = 1'000'000'000;
  std::uint64_t word = 3, looks = 0, host = 1;
  SetNow::now = 1;
  CHECK_FALSE(spin_until<SetNow>(limit.wait(&host), WaitReason::grid_barrier, &word, 7, [&](std::uint64_t&) {
    if (++looks % 256 == 0) host = SetNow::now += 1'000'000;
    return false;
  }));
  CHECK(SetNow::now > 1'000'000'000);
  CHECK(SetNow::now < 1'100'000'000);
}
