// A worker that awaits a successor runs it when the last predecessor arrives, and gives the wait up for other work; and what
// may come in between: failures, cancellations, more urgent work, bodies that spawn or stop.
#include "runtime/dynamic/awaited.hpp"
#include "support/internals.hpp"

#include <algorithm>
#include <atomic>

#include "catch.hpp"
#include "support/awaiting.hpp"
#include "support/threads.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using Hooked = HookedPlatform;
}

TEST_CASE("a worker goes through a chain in the loop: no queue, no mailbox") {
  constexpr std::uint32_t kLast = 200;
  ChainOf chain(kLast);
  chain.open();
  chain.work_from({0});
  CHECK(chain.log == from_to(0, kLast));
  CHECK(chain.turns == 1);
  CHECK(chain.ended == kLast);  // the loop leaves the last one to others: it has no successor
  CHECK(chain.stats().queued == 1);
  CHECK(chain.stats().handed == 0);
  CHECK(chain.stats().kept == kLast);
  CHECK(chain.stats().tasks == kLast + 1);
  CHECK(chain.code() == 0);
  chain.check_counters();
}

TEST_CASE("pass after pass") {
  ChainOf chain(5);
  chain.during.clear();
  std::uint32_t passes = 0;
  chain.during[5] = [&] {
    if (++passes == 4) chain.leave();
  };
  chain.open(4);
  chain.work_from({0});
  CHECK(chain.log.size() == 4 * 6);
  CHECK(chain.ended == 4 * 5);
  CHECK(chain.code() == 0);
  chain.check_counters();
}

TEST_CASE("the worker that awaits a task runs it when the last predecessor arrives on another") {
  Join join(2);
  std::atomic<bool> began{false};
  std::atomic<std::uint32_t> late{0};
  std::uint64_t cargo = 0;  // plain: the arrival orders it
  join.during[0] = [&] { late += !wait_for([&] { return began.load(); }); };
  join.during[1] = [&] {
    began = true;
    const auto is_awaited = [&] { return Hooked::device(join.counter(2)).fetch_add(0, Order::relaxed) & kIsAwaited; };
    late += !wait_for(is_awaited);
    cargo = 7;
  };
  join.during[2] = [&] {
    late += cargo != 7;
    join.leave();
  };
  // The worker that awaits polls no more until the other has arrived.
  on_load.set(&join.counter(2), [&](std::uint32_t) {
    late += !wait_for([&] { return is_complete(Hooked::device(join.counter(2)).fetch_add(0, Order::relaxed)); });
  });
  join.push(1);
  join.push(0);
  run_together(2, [&](std::uint32_t worker) { join.work(worker); });
  REQUIRE(join.log.size() == 3);
  CHECK(join.log.back() == 2);
  const std::size_t first = join.log[0] == 0 ? 0 : 1;  // where task 0 is in the log
  CHECK(join.workers[2] == join.workers[first]);
  CHECK(join.workers[2] != join.workers[1 - first]);
  CHECK(late == 0);
  CHECK(on_load.accesses == 1);
  CHECK(join.stats(0).queued + join.stats(1).queued == 2);
  CHECK(join.stats(0).handed + join.stats(1).handed == 0);
  CHECK(join.counter(2) == 2);
}

TEST_CASE("a worker that arrives last goes on at once, whoever awaits") {
  Join join;
  REQUIRE_FALSE(join.arrive_at(2));
  on_load.set(&join.counter(2), [](std::uint32_t) {});
  join.work_from({0});
  CHECK(join.log == Ids{0, 2});
  CHECK(on_load.accesses == 0);
  CHECK(join.stats().queued == 1);
  CHECK(join.counter(2) == 2);
}

TEST_CASE("a wait is given up for work that stays queued, and then the last predecessor publishes the task") {
  Join join;
  on_load.set(&join.counter(2), [&](std::uint32_t polls) {
    if (polls == 1) join.push(Join::kOther);
  });
  join.during[Join::kOther] = [&] {
    CHECK(join.counter(2) == 1);
    CHECK(join.arrive_at(2));
  };
  join.work_from({0});
  CHECK(join.log == Ids{0, Join::kOther, 2});
  CHECK(on_load.accesses == 17);  // it was there at 16 polls in a row
  CHECK(join.stats().queued == 3);
  CHECK(join.counter(2) == 2);
}

TEST_CASE("work that others take at once does not end a wait") {
  Join join;
  std::int64_t& queued = join.device.dev.control->broadcast.queued[1];
  on_load.set(&join.counter(2), [&](std::uint32_t polls) {
    queued = polls % 8 != 0;
    if (polls == 40) CHECK_FALSE(join.arrive_at(2));
  });
  join.during[2] = [&] {
    queued = 0;
    join.leave();
  };
  join.work_from({0});
  CHECK(join.log == Ids{0, 2});
  CHECK(on_load.accesses == 40);
  join.check_counters();
}

TEST_CASE("a wait is given up after its polls") {
  Join join;
  on_load.set(&join.counter(2), [](std::uint32_t) {});
  std::atomic<bool> was_last{false};
  std::jthread other([&] {
    const auto is_free = [&] { return Hooked::device(join.counter(2)).fetch_add(0, Order::relaxed) == 1; };
    if (wait_for(is_free)) was_last = join.arrive_at(2);
    else join.leave();
  });
  join.work_from({0});
  other.join();
  CHECK(join.log == Ids{0, 2});
  CHECK(on_load.accesses == 64);
  CHECK(was_last);
  CHECK(join.stats().queued == 2);
  CHECK(join.counter(2) == 2);
}

TEST_CASE("a wait is given up for an announcement and for an abort") {
  for (const bool aborts : {false, true}) {
    Join join;
    on_load.set(&join.counter(2), [&](std::uint32_t polls) {
      BroadcastWords& words = join.device.dev.control->broadcast;
      if (polls != 3) return;
      if (aborts) Hooked::device(words.abort).store(1, Order::relaxed);
      else Hooked::device(words.announcement).store(announcement_word(1, 0, join.device.dev.launch), Order::release);
    });
    join.work_from({0});
    CHECK(join.log == Ids{0});
    CHECK(on_load.accesses == 4);
    CHECK(join.arrive_at(2));
    CHECK(join.counter(2) == 2);
  }
}

TEST_CASE("a predecessor that arrives while the wait is given up leaves the task to the worker") {
  for (const bool fails : {false, true}) {
    Join join;
    bool was_last = false;
    on_fetch_and.set(&join.counter(2), [&](std::uint32_t) { was_last = join.arrive_at(2, fails); });
    const std::jthread ender([&] {
      const auto has_arrived = [&] { return Hooked::device(join.device.dev.runs[0].outstanding).load(Order::relaxed) == 1; };
      wait_for(has_arrived);
      join.leave();
    });
    join.work_from({0});
    CHECK_FALSE(was_last);
    CHECK(on_fetch_and.accesses == 1);
    CHECK(join.log == (fails ? Ids{0} : Ids{0, 2}));
    CHECK(join.stats().skipped == (fails ? 1 : 0));
    CHECK(join.stats().queued == 1);
    CHECK(join.counter(2) == 2);
  }
}

TEST_CASE("a task that is awaited is skipped if a predecessor failed, and so is what follows") {
  for (const bool at_once : {false, true}) {
    Scene scene;
    scene.add(), scene.add();
    scene.add({scene.add({0, 1})});
    scene.open();
    if (at_once) CHECK_FALSE(scene.arrive_at(2, true));
    on_load.set(&scene.counter(2), [&](std::uint32_t polls) {
      if (polls == 2) CHECK_FALSE(scene.arrive_at(2, true));
    });
    const std::jthread ender([&] {
      wait_for([&] { return Hooked::system(scene.device.dev.completions[0].word).load(Order::acquire) != 0; });
      scene.leave();
    });
    scene.work_from({0});
    CHECK(scene.log == Ids{0});
    CHECK(scene.stats().skipped == 2);
    CHECK(scene.stats().queued == 1);
    scene.check_counters();
  }
}

TEST_CASE("a run that is cancelled meanwhile begins no further task") {
  for (const std::uint32_t at : {0u, 4u}) {
    ChainOf chain(8);
    chain.open();
    chain.during[at] = [&] { Hooked::device(chain.device.dev.runs[0].line.cancelled).store(1, Order::relaxed); };
    const std::jthread ender([&] {
      wait_for([&] { return Hooked::system(chain.device.dev.completions[0].word).load(Order::acquire) != 0; });
      chain.leave();
    });
    chain.work_from({0});
    CHECK(chain.log == from_to(0, at + (at ? 1 : 0)));  // in the loop the next record was fetched before the body began
    CHECK(chain.stats().skipped == 8 - at - (at ? 1 : 0));
    CHECK(chain.code() == static_cast<std::uint32_t>(Status::cancelled));
    chain.check_counters();
  }
}

TEST_CASE("more urgent work goes first") {
  constexpr std::uint32_t kUrgent = 9;
  ChainOf chain(8);
  chain.add();
  chain.open();
  chain.during[3] = [&] { chain.push(kUrgent, 0); };
  chain.work_from({0});
  CHECK(chain.log == Ids{0, 1, 2, 3, 4, kUrgent, 5, 6, 7, 8});  // task 4 was fetched before
  CHECK(chain.stats().queued == 1 + 1 + 1);                     // the root, the urgent one, task 5
}

TEST_CASE("while more urgent work waits, a task is not awaited") {
  Join join;
  on_load.set(&join.counter(2), [](std::uint32_t) {});
  join.during[0] = [&] { join.push(Join::kOther, 0); };
  join.during[Join::kOther] = [&] { join.arrive_at(2); };
  join.work_from({0});
  CHECK(join.log == Ids{0, Join::kOther, 2});
  CHECK(on_load.accesses == 0);
  CHECK(join.turns == 1);  // it was asked, and looked
  CHECK(join.ended == 0);
}

TEST_CASE("a task with more successors than fit goes the long way") {
  constexpr std::uint32_t kFit = 8;
  for (const std::uint32_t count : {kFit, kFit + 1}) {
    Scene scene;
    Ids middle;
    scene.add();
    for (std::uint32_t i = 0; i < count; ++i) middle.push_back(scene.add({0}));
    scene.end_after(scene.add(middle));
    scene.open();
    scene.work_from({0});
    CHECK(scene.log.size() == count + 2);
    CHECK(scene.log.back() == count + 1);
    CHECK((scene.ended > 0) == (count == kFit));
    CHECK(scene.code() == 0);
    scene.check_counters();
  }
}

TEST_CASE("a body that fails, spawns or asks to stop is finished the long way") {
  ChainOf fails(6, {{3, kFail}});
  fails.during.clear();
  fails.during[3] = [&] { fails.leave(); };
  fails.open();
  fails.work_from({0});
  CHECK(fails.log == from_to(0, 3));
  CHECK(fails.ended == 3);
  CHECK(fails.device.dev.runs[0].line.fault >> 32 == kUserStatus + 1);

  ChainOf spawns(6, {{3, kSpawn}});
  spawns.open();
  spawns.work_from({0});
  CHECK(spawns.log == Ids{0, 1, 2, 3, 3 + kSpawned, 4, 5, 6});
  CHECK(spawns.code() == 0);
  spawns.check_counters();
  CHECK(spawns.device.dev.control->pooled.value == spawns.device.dev.spawn_capacity);

  ChainOf stops(6, {{3, kStop}});
  std::uint32_t passes = 0;
  stops.during[6] = [&] {
    if (++passes == 3) stops.leave();
  };
  stops.open(10);
  stops.work_from({0});
  CHECK(stops.log.size() == 3 * 7);
  CHECK(stops.code() == 0);
  stops.check_counters();
}

TEST_CASE("of several successors that are ready one is kept, and the others are published") {
  // Tasks 1 to 3 wait for task 0 alone, task 4 for another as well, which has arrived, task 5 for one that has not.
  Scene scene;
  scene.add();
  for (int i = 0; i < 3; ++i) scene.add({0});
  const std::uint32_t other = 6;
  scene.add({0, other}), scene.add({0, other});
  REQUIRE(scene.add() == other);
  scene.open();
  REQUIRE_FALSE(scene.arrive_at(4));
  std::uint32_t left = 4;
  for (std::uint32_t task = 1; task <= 4; ++task)
    scene.during[task] = [&] {
      if (--left == 0) scene.leave();
    };
  scene.work_from({0});
  Ids log = scene.log;
  REQUIRE(log.size() == 5);
  CHECK(log[0] == 0);
  CHECK(log[1] == 1);  // the awaited one
  std::ranges::sort(log);
  CHECK(log == from_to(0, 4));
  CHECK(scene.stats().queued == 1 + 3);
  CHECK(scene.counter(4) == 2);
  CHECK(scene.counter(5) == 1);
  CHECK(scene.arrive_at(5));
}

TEST_CASE("another's failure reaches a successor that this worker publishes") {
  Scene scene;
  scene.add();
  scene.add({0});
  scene.add({0, 3});
  scene.add();
  scene.open();
  REQUIRE_FALSE(scene.arrive_at(2, true));
  scene.end_after(1);
  scene.work_from({0});
  CHECK(scene.log == Ids{0, 1});
  CHECK(Views<Hooked>{scene.device.dev}.ready(1).size_hint() == 1);
  CHECK(scene.counter(2) == 2);
  std::uint64_t item = 0;
  REQUIRE(Views<Hooked>{scene.device.dev}.ready(1).pop(1, &item, Views<Hooked>{scene.device.dev}.wait(0)));
  CHECK(Item::unpack(item).skip);
}
