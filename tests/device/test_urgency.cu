// Busy workers on a GPU: passes with many roots fit the queue, and urgent runs do not wait for tasks in hand.
#include <algorithm>
#include <vector>

#include "catch.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
/// Holds its worker until the host says go; counts those that are held.
struct Hold {
  std::uint32_t *held, *go;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) {
      AtomicRef<std::uint32_t, Scope::device>(*held).add(1, Order::relaxed);
      while (!AtomicRef<std::uint32_t, Scope::device>(*go).load(Order::relaxed) && !block.cancelled()) {}
    }
    block.sync();
  }
};
struct Tick {
  std::uint32_t* count;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) AtomicRef<std::uint32_t, Scope::device>(*count).add(1, Order::relaxed);
  }
};
/// Counts itself as begun, and takes so many looks at a word.
struct Work {
  std::uint32_t *begun, looks;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const AtomicRef<std::uint32_t, Scope::device> word(*begun);
    if (block.leader()) {
      word.add(1, Order::relaxed);
      for (std::uint32_t i = 0; i < looks && word.load(Order::relaxed) != ~0u; ++i) {}
    }
    block.sync();
  }
};
}  // namespace

TEST_CASE("passes with many roots beside busy workers, on all workers but one") {
  Options options = on_gpu("error");
  options.stall_limit = std::chrono::minutes(4);  // one worker does five million tasks while the others are held
  Runtime rt = start<Hold, Tick>(options);
  const std::uint32_t workers = rt.workers(), busy = workers - 1, roots = 2 * workers + 1, passes = 20000;
  constexpr std::size_t kLine = 32;  // words: those that are held poll theirs, which must not hold up the others' adds
  auto words = rt.allocate<std::uint32_t>(3 * kLine);
  std::uint32_t *held = words.data(), *go = held + kLine, *count = go + kLine;
  Graph hold, many;
  for (std::uint32_t i = 0; i < busy; ++i) hold.add(Hold{held, go});
  for (std::uint32_t i = 0; i < roots; ++i) many.add(Tick{count});
  Run long_run = rt.submit(rt.load(hold));
  while (words.read()[0] < busy) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto begin = std::chrono::steady_clock::now();
  rt.submit(rt.load(many), repeat(passes)).wait();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  std::printf("a task takes %.0f ns on the one worker that is free\n", took.count() / passes / roots);
  std::vector<std::uint32_t> all = words.read();
  CHECK(all[2 * kLine] == passes * roots);
  all[kLine] = 1;
  words.write(all);
  long_run.wait();
  CHECK(rt.stats().queue_peak <= roots);
}

TEST_CASE("an urgent run beside long tasks begins within a task or two") {
  Runtime rt = start<Work, Tick>(on_gpu("error"));
  auto words = rt.allocate<std::uint32_t>(2);
  std::uint32_t *begun = words.data(), *count = begun + 1;
  constexpr std::uint32_t kLooks = 1500;  // some 0.7 us each
  Graph low, high;
  for (std::uint32_t i = 0; i < 32 * rt.workers(); ++i) low.add(Work{begun, kLooks});
  high.add(Tick{count});
  const Executable slow = rt.load(low), urgent = rt.load(high);
  using Clock = std::chrono::steady_clock;
  const auto ms_of = [](Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
  const auto whole = Clock::now();
  rt.submit(slow).wait();
  const double task_ms = ms_of(Clock::now() - whole) / 32;
  Run run = rt.submit(slow, Priority::low);
  std::vector<double> waits;
  for (int i = 0; i < 10; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(static_cast<int>(1700 * task_ms)));
    const auto begin = Clock::now();
    rt.submit(urgent, Priority::high).wait();
    waits.push_back(ms_of(Clock::now() - begin));
  }
  run.wait();
  std::sort(waits.begin(), waits.end());
  std::printf("a task takes %.2f ms; an urgent run waited %.2f ms in the median, %.2f at most\n", task_ms, waits[5], waits[9]);
  CHECK(waits[5] <= 2 * task_ms);
  CHECK(waits[9] <= 3 * task_ms);
}
