// The wires that need a device state around them: the end of a run, its roots, the announcement, the spawn pool, and the
// reports that the host reads. See wires.hpp.
#pragma once

#include <algorithm>

#include "runtime/dynamic/awaited.hpp"
#include "runtime/dynamic/work_finder.hpp"
#include "runtime/poller/announcer.hpp"
#include "support/internals.hpp"
#include "support/launch.hpp"
#include "support/wires.hpp"

namespace flywheel::testing::views {

/// A phase task: its cell is plain memory, and so is the base of the run's barrier that the inbox poller writes.
struct Tick {
  std::uint64_t* cell;
  template <class Block>
  void operator()(Block&) const {
    ++*cell;
  }
};

/// Spawns leaves, each as soon as the pool has a record for it.
struct Spawner {
  std::uint64_t* cells;
  std::uint32_t leaves;
  template <class Block>
  void operator()(Block& block) const {
    for (std::uint32_t leaf = 0; leaf < leaves; ++leaf)
      if (!wait_for([&] { return block.spawn(Tick{cells + leaf}); })) return block.fail(1);
  }
};

using WireTasks = TaskList<Tick, Spawner>;

/// Three sinks write a result each; the host reads them all once the completion word says so.
inline bool completion() {
  constexpr std::uint32_t kSinks = 3;
  TestDeviceState device;
  RunConstants run{};
  run.sinks = kSinks;
  run.repeat = run.generation = 1;
  device.open(run);
  name_word("word", device.dev.completions[0].word);
  name_word("outstanding", device.dev.runs[0].outstanding);
  std::uint32_t results[kSinks] = {};
  std::atomic<std::uint32_t> round{0};
  Flaws flaws;
  const auto finish = [&](std::uint32_t sink, std::uint32_t r) {
    wait_for([&] { return round.load(std::memory_order_acquire) == r; });
    RunConstants mine = run;
    mine.generation = r + 1;
    results[sink] = r;
    arrive_sink<P>(device.dev, sink, mine, false, true);
  };
  const auto collect = [&](std::uint32_t r) {
    wait_for([&] { return P::system(device.dev.completions[0].word).load(Order::acquire) >> 32 == r + 1; });
    for (const std::uint32_t result : results) flaws.add(result != r);
    P::device(device.dev.runs[0].outstanding).store(kSinks, Order::relaxed);
    round.store(r + 1, std::memory_order_release);
  };
  run_together(kSinks + 1, [&](std::uint32_t self) {
    for (std::uint32_t r = 0; r < kCargo; ++r) self < kSinks ? finish(self, r) : collect(r);
  });
  return flaws.none();
}

/// The inbox poller opens one run after another in a slot; holders of stale tickets take roots of whatever run is
/// there.
inline bool roots() {
  constexpr std::uint32_t kRoots = 20;
  TestDeviceState device;
  RunState& state = device.dev.runs[0];
  name_word("roots", state.roots);
  RunConstants run{};
  run.flags = kRootsUniform | kRootsDense;
  run.root_count = kRoots;
  std::atomic<std::uint32_t> taken{0};
  Flaws flaws;
  const auto open = [&](std::uint32_t r) {
    wait_for([&] { return taken.load(std::memory_order_relaxed) == r * kRoots; });
    flaws.add(taken.load(std::memory_order_acquire) != r * kRoots);
    state.line.constants.first_record = r;
    publish_roots<P>(device.dev, 0, run);
  };
  const auto take = [&] {
    for (std::uint32_t spins = 0; taken.load(std::memory_order_relaxed) < kCargo / 10 * kRoots && spins < 100000; ++spins) {
      const RootShare share = take_roots<P>(state, 3);
      if (!share.count) {
        P::pause(spins % 512 + 64);
        continue;
      }
      flaws.add(state.line.constants.first_record >= kCargo);
      taken.fetch_add(share.count, std::memory_order_release);
    }
  };
  run_together(3, [&](std::uint32_t self) {
    for (std::uint32_t r = 0; self == 0 && r < kCargo / 10; ++r) open(r);
    if (self) take();
  });
  return flaws.none() && taken == kCargo / 10 * kRoots;
}

/// The inbox poller enlists a follower of one or two runs, which end meanwhile, before, or later. Whoever lets it in reads what
/// all three have written.
inline bool followers() {
  constexpr std::uint32_t kFollower = 2;
  TestDeviceState device;
  name_word("list", device.dev.runs[0].line.followers);
  name_word("waits", device.dev.runs[kFollower].follow.waits);
  RunConstants run{};
  run.slot = kFollower;
  run.root_count = 1;
  run.flags = kRootsUniform | kRootsDense;
  std::uint32_t cells[3] = {};
  std::atomic<std::uint32_t> round{0}, ended{0};
  Flaws flaws;
  const auto follows_both = [](std::uint32_t r) { return r % 2 == 0; };  // else the first alone
  const auto open = [&](std::uint32_t r) {
    flaws.add(cells[0] != r + 1 || cells[kFollower] != r + 1 || (follows_both(r) && cells[1] != r + 1));
    round.store(r + 1, std::memory_order_release);
  };
  const auto end = [&](std::uint32_t slot, std::uint32_t r) {
    cells[slot] = r + 1;
    FollowerList<P> list(device.dev, slot, kPriorities);
    list.add(close_followers<P>(device.dev, slot, r + 1, false, followers_in<P>(device.dev, slot)));
    ended.fetch_add(1, std::memory_order_relaxed);
    if (list([](const RunConstants&) { return Followers{}; }) != kEmptyMailbox) open(r);
  };
  const auto enlist = [&](std::uint32_t r) {
    // In turns the follower comes before the ends, behind both, or at any time. Relaxed: it orders nothing.
    if (r % 3 == 0) wait_for([&] { return ended.load(std::memory_order_relaxed) >= 2 * (r + 1); });
    cells[kFollower] = r + 1;
    device.dev.runs[kFollower].line.constants = run;
    if (!Enlistment<P>(device.dev, kFollower)({{r + 1, follows_both(r) ? r + 1 : 0}, {0, 1}, {}}, false)) open(r);
  };
  run_together(3, [&](std::uint32_t self) {
    for (std::uint32_t r = 0; r < kCargo; ++r) {
      wait_for([&] { return round.load(std::memory_order_acquire) >= r; });
      self < kFollower ? end(self, r) : enlist(r);
    }
  });
  return flaws.none();
}

/// An executor that starts no task of the direct slot.
struct NoStarter {
  static constexpr bool kStartsDirectly = false;
};

/// The inbox poller announces collective runs. Nobody wakes the workers, which would tell them the same: they look at the
/// broadcast words by themselves.
inline bool announcement() {
  DeviceStateShape shape;
  shape.workers = 2;
  TestDeviceState device(shape);
  name_word("announcement", device.dev.control->broadcast.announcement);
  RunState& run = device.open(RunConstants{});
  AnnouncerState state{};
  Announcer<P> announcer(device.dev, state);
  std::uint32_t cargo = 0;
  std::atomic<std::uint32_t> taken{0};
  Flaws flaws;
  const auto announce = [&](std::uint32_t r) {
    cargo = r;
    announcer.announce(run, 0);
    flaws.add(!wait_for([&] { return taken.load(std::memory_order_acquire) == (r + 1) * shape.workers; }));
  };
  run_together(shape.workers + 1, [&](std::uint32_t self) {
    LocalWork work;
    WorkFinder<P> finder(device.dev, self, nullptr, work);
    NoStarter executor;
    for (std::uint32_t r = 0; r < kCargo; ++r) {
      if (self == shape.workers) {
        announce(r);
        continue;
      }
      std::uint64_t item = kEmptyMailbox;
      flaws.add(finder.wait_for_work(item, executor) != Found::phased || cargo != r);
      taken.fetch_add(1, std::memory_order_release);
    }
  });
  return flaws.none();
}

/// Records of spawned tasks come back to the pool when they have been read, and are written again.
inline bool spawn() {
  constexpr std::uint32_t kLeaves = 40;
  DeviceStateShape shape;
  shape.spawn_capacity = 2;
  TestDeviceState device(shape);
  name_words("pool", device.dev.queue_slots + kPriorities * shape.queue_capacity, shape.spawn_capacity * 8);
  TestGraph<WireTasks> graph;
  std::uint64_t cells[kLeaves] = {};
  graph.add(Spawner{cells, kLeaves});
  const RunConstants run = device.load(graph);
  Launch<WireTasks, P> launch(device);
  for (std::uint32_t r = 0; r < 5; ++r)
    if (launch.run(run)) return false;
  launch.park();
  return std::count(cells, cells + kLeaves, 5u) == kLeaves;
}
/// The same of tasks that are spawned together, where no worker is idle: who takes them from the queue reads them, and gives
/// the records back.
inline bool spawn_many() {
  constexpr auto kLevel = static_cast<std::uint32_t>(Priority::normal);
  DeviceStateShape shape;
  shape.spawn_capacity = 2;
  TestDeviceState device(shape);
  const DeviceState& dev = device.dev;
  name_words("pool", dev.queue_slots + kPriorities * shape.queue_capacity, shape.spawn_capacity * 8);
  name_words("ready", dev.queue_slots + kLevel * shape.queue_capacity, shape.queue_capacity * 8);
  TestGraph<WireTasks> graph;
  graph.add(Tick{nullptr});
  const RunConstants run = device.load(graph);
  device.open(run);
  const TaskHeader parent = dev.records[run.first_record].header;
  std::vector<std::uint64_t> cells(kCargo);
  Flaws flaws;
  run_together(2, [&](std::uint32_t self) {
    const Views<P> views{dev};
    for (std::uint32_t done = 0; done < kCargo;) {
      std::uint64_t item = 0;
      const auto works = [&] {
        OneThread block;
        const flywheel::detail::Spawner from{dev, parent, 0, 0, 0, Priority::normal, 0};
        const auto make = [&](std::uint32_t i) { return Tick{cells.data() + done + i}; };
        if (self == 0) return GroupSpawner<P, OneThread>(block, from)(1, make) == 1;
        return views.ready(kLevel).size_hint() && views.ready(kLevel).pop(1, &item, views.wait(1));
      };
      if (!wait_for(works)) return flaws.add(true);
      if (self == 1) {
        const std::uint32_t record = Item::unpack(item).record;
        flaws.add(reinterpret_cast<const Tick*>(dev.records[record].args)->cell != cells.data() + done);
        recycle_spawned<P>(dev, record, views.wait(1));
      }
      ++done;
    }
  });
  return flaws.none();
}

/// A worker that gave up waiting says why; the watchdog reads the report.
inline bool report() {
  Limit limit;
  limit.budget_ns = 100'000;
  name_word("reason", limit.report.reason);
  std::uint64_t word = 3, saw = 0;
  run_together(2, [&](std::uint32_t self) {
    if (self == 0) {
      spin_until<P>(limit.wait(), WaitReason::role, &word, 7,
                    [&](std::uint64_t& seen) { return (seen = P::device(word).load(Order::relaxed)) == 7; });
    } else {
      wait_for([&] { return P::system(limit.report.reason).load(Order::acquire) != 0; });
      saw = limit.report.saw;
    }
  });
  return saw == 3;
}

/// A worker says what it is slow at; the watchdog reads the item.
inline bool heartbeat() {
  Heartbeat heart{};
  name_word("state", heart.state);
  std::uint64_t item = 0;
  run_together(2, [&](std::uint32_t self) {
    if (self == 0) return beat<P>(heart, WorkerState::slow, 42, 1);
    wait_for([&] { return P::system(heart.state).load(Order::acquire) != 0; });
    item = heart.item;
  });
  return item == 42;
}

/// The task slots of a worker that goes from the first task of a run to the one that it awaits. It runs no body.
struct AwaitingSlots {
  TaskSlot slots[2]{};
  std::uint32_t next = 1;

  std::uint32_t running() const { return next ^ 1; }
  const TaskSlot& task() const { return slots[running()]; }
  static Outcome outcome() { return {}; }
  bool fetch(const DeviceState& dev, Item item) {
    slots[next].record = dev.records[item.record];
    slots[next].run.constants = task().run.constants;
    return true;
  }
  void start(const DeviceState&, Item) { next ^= 1; }
  static bool has_ended() { return false; }
  static void take_end() {}
};

/// In rounds of `kDuring` the worker that awaits stays at one of its polls until the other predecessor has arrived: at the
/// first, before it loads the counter, or at the last after it, and learns of the arrival as it gives up. In rounds of `kAfter`
/// the other arrives when the worker no longer awaits, and in the rest when it likes. All atomics are relaxed: they order
/// nothing.
struct LatePoll {
  enum Arrival : std::uint32_t { kAnyTime, kDuring, kAfter, kKinds };
  static constexpr std::uint32_t kFirst = 1, kLast = 64;
  const void* word;         // the counter
  std::uint32_t at;         // which poll
  std::uint32_t polls = 0;  // of this round
  std::uint32_t round = 0;
  // Rounds in which the worker has waited there; in which the other has arrived; in which the worker has left.
  std::atomic<std::uint32_t> waits{0}, arrivals{0}, leaves{0};

  static Arrival of(std::uint32_t round) { return static_cast<Arrival>(round % kKinds); }
  void begin(std::uint32_t r) { round = r, polls = 0; }
  void wait() {
    if (of(round) != kDuring) return;
    waits.store(round + 1, std::memory_order_relaxed);
    wait_for([&] { return arrivals.load(std::memory_order_relaxed) > round; });
  }
};
inline LatePoll* late_poll = nullptr;

struct LatePlatform : P {
  using Leader = P;

  template <class T>
  struct Ref : WeakRef<T, Scope::device> {
    using Base = WeakRef<T, Scope::device>;
    const void* at;
    explicit Ref(T& word) : Base(word), at(&word) {}
    [[gnu::always_inline]] T load(Order o) const {
      const bool late = at == late_poll->word && ++late_poll->polls == late_poll->at;
      if (late && late_poll->at == LatePoll::kFirst) late_poll->wait();
      const T value = Base::load(o);
      if (late && late_poll->at == LatePoll::kLast) late_poll->wait();
      return value;
    }
  };
  template <class T>
  static Ref<T> device(T& word) {
    return Ref<T>(word);
  }
};

/// Two predecessors of a task write a cell each; the worker of the first awaits the task. Whoever goes on reads both cells, and
/// the counter, which is armed again and whose next life is the run's.
inline bool await_with(std::uint32_t late_at) {
  TestDeviceState device;
  TestGraph<WireTasks> graph;
  graph.add(Tick{nullptr}), graph.add(Tick{nullptr});
  graph.add(Tick{nullptr}, {0, 1});
  const RunConstants run = device.load(graph);
  std::uint64_t& counter = run.bank()[2];
  name_word("counter", counter);
  LatePoll late{&counter, late_at};
  late_poll = &late;
  std::uint32_t cells[2] = {};
  PrefetchedTask ahead{};
  std::atomic<std::uint32_t> round{0};
  Flaws flaws;
  const auto await = [&](std::uint32_t r) {
    late.begin(r);
    AwaitingSlots slots;
    slots.slots[0].record = device.dev.records[run.first_record];
    slots.slots[0].run.constants = run;
    const bool goes_on = AwaitedLoop<LatePlatform, AwaitingSlots>(device.dev, 0, 0, ahead, slots)().has_next;
    late.leaves.store(r + 1, std::memory_order_relaxed);
    return goes_on;
  };
  const auto arrive_beside = [&](std::uint32_t r) {
    const LatePoll::Arrival kind = LatePoll::of(r);
    if (kind == LatePoll::kDuring) wait_for([&] { return late.waits.load(std::memory_order_relaxed) > r; });
    if (kind == LatePoll::kAfter) wait_for([&] { return late.leaves.load(std::memory_order_relaxed) > r; });
    const bool last = arrive<P>(counter, false, 2).last;
    late.arrivals.store(r + 1, std::memory_order_relaxed);
    return last;
  };
  run_together(2, [&](std::uint32_t self) {
    for (std::uint32_t r = 0; r < kCargo; ++r) {
      cells[self] = r;
      if (self == 0 ? await(r) : arrive_beside(r)) {
        for (const std::uint32_t cell : cells) flaws.add(cell != r);
        flaws.add(counter != 2);
        round.store(r + 1, std::memory_order_release);
      } else {
        flaws.add(!wait_for([&] { return round.load(std::memory_order_acquire) > r; }));
      }
    }
  });
  return flaws.none() && counter == 2;
}
inline bool awaited() { return await_with(LatePoll::kFirst); }
inline bool given_up() { return await_with(LatePoll::kLast); }

}  // namespace flywheel::testing::views
