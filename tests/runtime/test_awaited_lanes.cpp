// Awaited successors with all lanes of a warp: what each reads for itself leads them all the same way, and what other workers
// wrote is there for the lane that goes on.
#include <atomic>
#include <functional>

#include "catch.hpp"
#include "support/awaiting.hpp"
#include "support/thread_warp.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using Hooked = HookedPlatform;
}

namespace {

/// The task slots of a worker all of whose lanes go through the loop. Lane 0 runs the bodies.
struct LaneSlots {
  static constexpr std::uint32_t kLanes = 8;
  using Lanes = ThreadWarp<kLanes>;
  struct Shared {
    TaskSlot slots[2]{};
    std::function<void(std::uint32_t)> body;  // of a task of the run
    std::uint32_t cancelled_for = 0;          // a bit for each lane that reads the run as cancelled
  };
  Shared& shared;
  std::uint32_t next = 1;

  std::uint32_t running() const { return next ^ 1; }
  const TaskSlot& task() const { return shared.slots[running()]; }
  static Outcome outcome() { return {}; }
  bool fetch(const DeviceState& dev, Item item) const {
    if (Lanes::lane() == 0) {
      shared.slots[next].record = dev.records[item.record];
      shared.slots[next].run.constants = task().run.constants;
    }
    return !(shared.cancelled_for >> Lanes::lane() & 1);
  }
  void start(const DeviceState&, Item item) {
    Lanes::converge();
    next ^= 1;
    if (Lanes::lane() == 0) shared.body(item.record - task().run.constants.first_record);
  }
  static bool has_ended() {
    Lanes::converge();
    return true;
  }
  static void take_end() {}
};

struct LanePlatform : LaneSlots::Lanes {
  using Leader = Hooked;
  template <class T>
  static HookedRef<T> device(T& word) {
    return Hooked::device(word);
  }
};

/// A worker of several lanes, from the end of task 0 on. What it brings back, of each lane.
struct LaneWorker {
  LaneSlots::Shared shared;
  PrefetchedTask ahead{};
  std::vector<AwaitedTurn> turns{LaneSlots::kLanes};
  WarpOfThreads<LaneSlots::kLanes> warp;

  /// Beside it runs `other`.
  template <class Other>
  void operator()(Scene& scene, Other&& other) {
    shared.slots[0].record = scene.device.dev.records[scene.run.first_record];
    shared.slots[0].run.constants = scene.run;
    run_together(LaneSlots::kLanes + 1, [&](std::uint32_t lane) {
      if (lane == LaneSlots::kLanes) return other();
      LanePlatform::join(warp, lane);
      LaneSlots slots{shared};
      turns[lane] = AwaitedLoop<LanePlatform, LaneSlots>(scene.device.dev, 0, 0, ahead, slots)();
    });
    CHECK_FALSE(warp.split);
    for (const AwaitedTurn& turn : turns) {
      CHECK(turn.item == turns[0].item);
      CHECK(turn.ended == turns[0].ended);
      CHECK(turn.has_next == turns[0].has_next);
    }
  }
  void operator()(Scene& scene) {
    operator()(scene, [] {});
  }
};

}  // namespace

TEST_CASE("lanes: what the other predecessor wrote is there when the successor begins") {
  for (std::uint32_t round = 0; round < 50; ++round) {
    Join join(2);
    LaneWorker worker;
    std::uint64_t cargo = 0, seen = 0;
    bool was_last = false, is_late = false;
    std::atomic<bool> was_awaited{false};
    worker.shared.body = [&](std::uint32_t) { seen = cargo; };
    // In every other round the arrival comes once the task is awaited, and the wait is not given up before that was seen.
    on_fetch_and.set(&join.counter(2),
                     [&](std::uint32_t) { is_late |= round % 2 && !wait_for([&] { return was_awaited.load(); }); });
    worker(join, [&] {
      const auto is_awaited = [&] { return Hooked::device(join.counter(2)).fetch_add(0, Order::relaxed) & kIsAwaited; };
      if (round % 2) was_awaited = wait_for(is_awaited);
      cargo = 5;
      Hooked::release_fence();
      was_last = arrive<Hooked>(join.counter(2), false, 2).last;
    });
    CHECK_FALSE(is_late);
    if (was_last) continue;  // the wait was given up before
    CHECK(worker.turns[0].ended == 1);
    CHECK(worker.turns[0].has_next);
    CHECK(seen == 5);
    CHECK(join.counter(2) == 2);
  }
}

TEST_CASE("lanes: each publishes a successor of its own, and none is too many") {
  for (const std::uint32_t count : {1u, LaneSlots::kLanes, LaneSlots::kLanes + 1}) {
    Scene scene;
    scene.add();
    for (std::uint32_t i = 0; i < count; ++i) scene.add({0});
    scene.open();
    LaneWorker worker;
    Ids ran;
    worker.shared.body = [&](std::uint32_t task) { ran.push_back(task); };
    worker(scene);
    const bool fits = count <= LaneSlots::kLanes;
    CHECK(worker.turns[0].ended == (fits ? 1 : 0));
    CHECK(ran == (fits ? Ids{1} : Ids{}));
    CHECK(Views<Hooked>{scene.device.dev}.ready(1).size_hint() == (fits ? count - 1 : 0));
  }
}

TEST_CASE("lanes that read a cancellation at different times decide alike") {
  for (const std::uint32_t lanes : {0x01u, 0x10u, 0xfeu}) {
    ChainOf chain(4);
    chain.open();
    LaneWorker worker;
    worker.shared.body = [](std::uint32_t) {};
    worker.shared.cancelled_for = lanes;
    worker(chain);
    CHECK(worker.turns[0].item == chain.item(1));
    CHECK_FALSE(worker.turns[0].has_next);
  }
}

TEST_CASE("lanes that read different numbers of roots decide alike") {
  constexpr std::uint32_t kWorkers = 16;  // two queued tasks are few
  for (const std::uint32_t taken_before : {2u, 5u}) {
    Scene scene(kWorkers);
    for (std::uint32_t i = 0; i < 3; ++i) scene.add();
    scene.add({scene.add({0})});
    scene.open();
    LaneWorker worker;
    worker.shared.body = [](std::uint32_t) {};
    DeviceState& dev = scene.device.dev;
    dev.control->broadcast.queued[1] = kRootedRun;
    dev.runs[0].roots = std::uint64_t{3} << 32 | 2;
    on_load.set(&dev.runs[0].roots, [&](std::uint32_t looks) {
      if (looks == taken_before) take_roots<CpuPlatform>(dev.runs[0], 1);
    });
    worker(scene);
    CHECK(on_load.accesses >= LaneSlots::kLanes);
  }
}
