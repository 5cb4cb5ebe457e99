// The roots of a run, spread by all lanes of a warp: each goes to one worker; what no idle worker takes is left.
#include "runtime/ready/spread_roots.hpp"
#include "support/internals.hpp"

#include <algorithm>
#include <numeric>

#include "catch.hpp"
#include "support/launch.hpp"
#include "support/seed.hpp"
#include "support/thread_warp.hpp"
#include "support/threads.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using P = CpuPlatform;

struct Nothing {
  template <class Block>
  void operator()(Block&) const {}
};
using SpreadTasks = TaskList<Nothing>;

struct SpreadCase {
  TestDeviceState device;
  RunConstants run;
  RunState* state;
  std::uint32_t first;
  std::vector<std::uint32_t> gone;  // workers that were idle when the lanes looked, but not when they claimed

  SpreadCase(Random& random, const DeviceStateShape& shape) : device(shape), run(loaded(random)), state(&device.open(run)) {
    if (random() % 3 == 0) run.flags &= ~static_cast<std::uint32_t>(kRootsDense);
    first = static_cast<std::uint32_t>(random() % 2);
    const std::uint32_t one_in = 1 + random() % 20;
    for (std::uint32_t worker = 0; worker < shape.workers; ++worker)
      if (random() % one_in == 0) idle().enroll(worker);
  }
  IdleSet<P> idle() const { return Views<P>{device.dev}.idle(); }

  /// All roots but those that somebody had, and the tickets that were delivered.
  std::pair<std::vector<std::uint32_t>, std::uint32_t> found() const {
    std::vector<std::uint32_t> roots;
    std::uint32_t tickets = 0;
    for (std::uint32_t worker = 0; worker < device.dev.workers; ++worker) {
      if (device.dev.mailboxes[worker].value == kEmptyMailbox) continue;
      const Item item = Item::unpack(device.dev.mailboxes[worker].value);
      if (item.record == Item::kRootTicket) ++tickets;
      else roots.push_back(item.record - run.first_record);
      CHECK((idle().seen(worker / 64) >> worker % 64 & 1) == 0);
      CHECK(std::count(gone.begin(), gone.end(), worker) == 0);
    }
    for (RootShare share = take_roots<P>(*state, 3); share.count; share = take_roots<P>(*state, 3))
      for (std::uint32_t i = 0; i < share.count; ++i) roots.push_back(share.first + i);
    std::ranges::sort(roots);
    return {roots, tickets};
  }

 private:
  RunConstants loaded(Random& random) {
    TestGraph<SpreadTasks> graph;
    const std::uint32_t count = kFewRoots + 1 + static_cast<std::uint32_t>(random() % (3 * device.dev.workers));
    for (std::uint32_t i = 0; i < count; ++i) graph.add(Nothing{});
    return device.load(graph);
  }
};
}  // namespace

TEMPLATE_TEST_CASE_SIG("the lanes of a warp spread roots: to each idle worker one at most, and the rest is left", "",
                       ((std::uint32_t kLanes), kLanes), 8, 32) {
  using W = ThreadWarp<kLanes>;
  FLYWHEEL_TEST_SEED(seed);
  Random random(seed);
  for (int round = 0; round < 40; ++round) {
    DeviceStateShape shape;
    shape.workers = 1 + static_cast<std::uint32_t>(random() % 150);
    SpreadCase one(random, shape);
    const std::uint32_t late_one_in = 1 + random() % 4, n = one.run.root_count - one.first;
    const bool gives = gives_roots(one.device.dev, one.run);
    REQUIRE(has_spread_roots(one.run));
    WarpOfThreads<kLanes> warp;
    std::uint32_t sent = 0;
    run_together(kLanes, [&](std::uint32_t lane) {
      W::join(warp, lane);
      if (round % 2) return spread_roots<W>(one.device.dev, one.run, one.first);
      // Some of those that a lane plans to claim are gone by then.
      LaneSpread<W> spread(one.device.dev);
      W::converge();
      for (std::uint32_t worker = 0; lane == 0 && worker < shape.workers; worker += late_one_in)
        if (one.idle().withdraw(worker)) one.gone.push_back(worker);
      W::converge();
      spread.claim(n);
      const std::uint32_t all =
          spread.deliver([&](std::uint32_t i) { return RootList::of(one.run).item(one.device.dev, one.first + i); });
      if (lane == 0) sent = all;
    });
    if (round % 2 == 0) open_roots<P>(one.device.dev, one.run, one.first + sent);
    const auto [roots, tickets] = one.found();
    std::vector<std::uint32_t> all(n);
    std::iota(all.begin(), all.end(), one.first);
    CHECK(roots == all);
    std::uint32_t left = 0;
    for (std::uint32_t word = 0; word < one.idle().words(); ++word) left += count_bits(one.idle().seen(word));
    if (gives && round % 2) CHECK(tickets == 0);
    if (left && round % 2 && !gives) CHECK(tickets == n);  // an idle worker stays so only if there is nothing for it
  }
}

TEST_CASE("few roots, and roots of several priorities, are not for all lanes") {
  RunConstants run{};
  run.flags = kRootsUniform;
  run.root_count = kFewRoots;
  CHECK_FALSE(has_spread_roots(run));
  ++run.root_count;
  CHECK(has_spread_roots(run));
  run.flags = 0;
  CHECK_FALSE(has_spread_roots(run));
}

TEST_CASE("a wake-up reaches each idle worker once, by one thread and by the lanes of a warp") {
  FLYWHEEL_TEST_SEED(seed);
  Random random(seed);
  for (int round = 0; round < 20; ++round) {
    DeviceStateShape shape;
    shape.workers = 1 + static_cast<std::uint32_t>(random() % 150);
    SpreadCase one(random, shape);
    std::vector<bool> was_idle(shape.workers);
    for (std::uint32_t worker = 0; worker < shape.workers; ++worker)
      was_idle[worker] = one.idle().seen(worker / 64) >> worker % 64 & 1;
    if (round % 2) {
      wake_idle<P>(one.device.dev, shape.workers);
    } else {
      WarpOfThreads<32> warp;
      run_together(32, [&](std::uint32_t lane) {
        ThreadWarp<32>::join(warp, lane);
        wake_idle_by_lanes<ThreadWarp<32>>(one.device.dev);
      });
    }
    for (std::uint32_t worker = 0; worker < shape.workers; ++worker) {
      CHECK(one.device.dev.mailboxes[worker].value == (was_idle[worker] ? kWakeUpItem : kEmptyMailbox));
      CHECK((one.idle().seen(worker / 64) >> worker % 64 & 1) == 0);
    }
  }
}
