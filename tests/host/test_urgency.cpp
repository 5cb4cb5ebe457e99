// CPU workers with long tasks in hand: a more urgent run does not wait for those that have not begun.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <atomic>
#include <thread>

#include "catch.hpp"
#include "support/threads.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
/// Counts those that began, and takes a while.
struct UrgencyNap {
  std::atomic<std::uint32_t>* begun;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {
    ++*begun;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};
/// Tells how many naps had begun when it ran.
struct Look {
  std::atomic<std::uint32_t>* begun;
  template <class Block>
  FLYWHEEL_TASK std::uint32_t operator()(Block&) const {
    return begun->load();
  }
};

Options of_workers(std::uint32_t workers) {
  Options options;
  options.target = Target::cpu;
  options.workers = workers;
  return options;
}

/// Naps that begin, in the worst of some tries, between the submission of an urgent run and its task.
std::uint32_t begun_before_urgent(std::uint32_t workers, std::uint32_t naps) {
  Runtime rt = start<UrgencyNap, Look>(of_workers(workers));
  std::atomic<std::uint32_t> begun{0};
  Graph low, high;
  for (std::uint32_t i = 0; i < naps; ++i) low.add(UrgencyNap{&begun});
  const TaskRef<std::uint32_t> look = high.add(Look{&begun});
  const Executable slow = rt.load(low), urgent = rt.load(high);
  Run run = rt.submit(slow, Priority::low);
  std::uint32_t worst = 0;
  for (std::uint32_t i = 1; i <= 10; ++i) {
    REQUIRE(wait_for([&] { return begun.load() >= i * naps / 20; }));
    const std::uint32_t before = begun.load();
    worst = std::max(worst, rt.submit(urgent, Priority::high).get(look) - before);
  }
  run.cancel();
  run.status();
  return worst;
}
}  // namespace

TEST_CASE("an urgent run waits for tasks that have begun, not for shares of roots or batches in hand") {
  // A share of roots is up to 64 tasks a worker. Some slack: the host's threads may be late themselves.
  CHECK(begun_before_urgent(1, 400) <= 6);
  CHECK(begun_before_urgent(2, 600) <= 12);
}

TEST_CASE("a collective run does not wait for shares of roots in hand") {
  Runtime rt = start<UrgencyNap, Look>(of_workers(2));
  std::atomic<std::uint32_t> begun{0};
  Graph low, phased;
  for (std::uint32_t i = 0; i < 600; ++i) low.add(UrgencyNap{&begun});
  phased.phase();
  phased.add(Look{&begun});
  const Executable slow = rt.load(low), brief = rt.load(phased);
  Run run = rt.submit(slow);
  REQUIRE(wait_for([&] { return begun.load() >= 40; }));
  const std::uint32_t before = begun.load();
  rt.submit(brief).wait();
  CHECK(begun.load() - before <= 12);
  run.cancel();
  run.status();
}
