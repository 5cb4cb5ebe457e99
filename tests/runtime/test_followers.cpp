// Runs that follow runs, at the level of their words: lists, arrivals, failures and values, step by step on one thread.
#include "runtime/ready/completion.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "catch.hpp"
#include "support/device_state_fixture.hpp"

using namespace flywheel;
using namespace flywheel::detail;
using namespace flywheel::testing;

namespace {
using P = CpuPlatform;

/// Slots 0, 1, ... hold runs of one root each.
struct Slots {
  explicit Slots(std::uint32_t count) : device(shape_of(count)) {
    for (std::uint32_t slot = 0; slot < count; ++slot) open(slot, 1);
  }
  static DeviceStateShape shape_of(std::uint32_t count) {
    DeviceStateShape shape;
    shape.run_slots = count;
    return shape;
  }
  void open(std::uint32_t slot, std::uint32_t generation) {
    RunConstants run{};
    run.slot = slot;
    run.generation = generation;
    run.sinks = run.root_count = run.repeat = 1;
    run.first_record = 10 * slot;
    run.flags = kRootsUniform | kRootsDense;
    device.dev.runs[slot].line.constants = run;
  }
  bool follow(std::uint32_t slot, const std::vector<std::uint32_t>& before, std::uint32_t generation = 1) {
    FollowedRuns all{};
    for (std::uint32_t k = 0; k < before.size(); ++k)
      all.slots[k] = static_cast<std::uint16_t>(before[k]), all.generations[k] = generation;
    return Enlistment<P>(device.dev, slot)(all, false);
  }
  /// Ends a run. The root that the caller would keep, or kEmptyMailbox.
  std::uint64_t end(std::uint32_t slot, std::uint32_t code = 0, std::uint32_t generation = 1) {
    return let_followers_in<P>(device.dev, 0, end_run<P>(device.dev, slot, completion_word(generation, code), [] {}),
                               kPriorities);
  }
  std::uint64_t root(std::uint32_t slot) const { return only_root(device.dev, device.dev.runs[slot].line.constants); }
  std::uint64_t completion(std::uint32_t slot) const { return device.dev.completions[slot].word; }

  TestDeviceState device;
};
constexpr std::uint64_t kFailure = completion_word(1, static_cast<std::uint32_t>(Status::predecessor_failed));
}  // namespace

TEST_CASE("a follower goes when the last run before it has ended") {
  Slots slots(6);
  CHECK(slots.follow(5, {0, 1, 2, 3}));
  for (const std::uint32_t slot : {2, 0, 3}) CHECK(slots.end(slot) == kEmptyMailbox);
  CHECK(slots.end(1) == slots.root(5));
  CHECK(slots.end(5) == kEmptyMailbox);
}

TEST_CASE("who ends a run waits until the run before in its slot has closed its list") {
  Slots slots(3);
  slots.open(2, 1);
  std::atomic<bool> told{false}, closes{false}, closed{false};
  std::thread before([&] {  // the host may use the slot again as soon as it is told
    (void)end_run<P>(slots.device.dev, 0, completion_word(1, 0), [&] {
      told = true;
      while (!closes) std::this_thread::yield();
    });
  });
  while (!told) std::this_thread::yield();
  slots.open(0, 2);
  std::thread next([&] {
    slots.end(0, 0, 2);
    closed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(closed);
  closes = true;
  before.join();
  next.join();
  CHECK_FALSE(slots.follow(2, {0}, 2));  // that run has ended: nobody would let the follower in
}

TEST_CASE("runs that have ended are not waited for, and neither are those of the slot before them") {
  Slots slots(4);
  slots.end(0);
  CHECK_FALSE(slots.follow(3, {0}));
  CHECK(slots.follow(3, {0, 1}));
  CHECK(slots.end(1) == slots.root(3));
  slots.open(0, 2);
  CHECK(slots.follow(3, {0}, 2));
  CHECK(slots.end(0, 0, 2) == slots.root(3));
}

TEST_CASE("of several followers the caller keeps one, and publishes the others") {
  Slots slots(5);
  for (const std::uint32_t slot : {2, 3, 4}) CHECK(slots.follow(slot, {0}));
  CHECK(slots.end(0) == slots.root(4));  // the last one is the first in the list
  CHECK(slots.device.dev.control->broadcast.queued[0] == 2);
}

TEST_CASE("a failure ends a whole tree of followers, and no one of them goes") {
  Slots slots(8);
  CHECK(slots.follow(1, {0}));
  CHECK(slots.follow(2, {1}));
  CHECK(slots.follow(3, {1, 7}));
  CHECK(slots.follow(4, {2, 3}));
  CHECK(slots.follow(5, {7}));
  CHECK(slots.end(0, 70) == kEmptyMailbox);
  for (const std::uint32_t slot : {1, 2}) CHECK(slots.completion(slot) == kFailure);
  for (const std::uint32_t slot : {3, 4, 5}) CHECK(slots.completion(slot) == 0);
  CHECK(slots.end(7) == slots.root(5));
  for (const std::uint32_t slot : {3, 4}) CHECK(slots.completion(slot) == kFailure);
  CHECK(slots.device.dev.control->finished.value == 6);
}

TEST_CASE("a run that has failed before its follower comes fails it, too") {
  Slots slots(4);
  slots.end(0, 70);
  FollowedRuns followed{};
  Message message{};
  message.run = slots.device.dev.runs[2].line.constants;
  message.run.flags |= kFollows;
  put_followed_runs(message, {{1, 1}, {0, 1}, {}});
  CHECK(waits_or_fails<P>(slots.device.dev, message, followed));
  CHECK(slots.completion(2) == 0);  // slot 1 has not ended
  slots.end(1);
  CHECK(slots.completion(2) == kFailure);
  message.run.slot = 3;
  put_followed_runs(message, {{1}, {0}, {}});
  CHECK(waits_or_fails<P>(slots.device.dev, message, followed));
  CHECK(slots.completion(3) == kFailure);
}

TEST_CASE("a message carries predecessors beside parameters, or in fields that a record's run does not use") {
  const FollowedRuns all{{1, 2, 3, 4}, {5, 6, 7, 8}, {}};
  for (const std::uint32_t flags : {std::uint32_t{kFollows}, std::uint32_t{kFollows | kInlineRoot}}) {
    Message message{};
    message.run.flags = flags;
    message.carried[most_carried(flags) - 1] = 99;
    put_followed_runs(message, all);
    FollowedRuns taken{};
    take_followed_runs(taken, message);
    CHECK(std::memcmp(&taken, &all, sizeof all) == 0);
    CHECK(message.carried[most_carried(flags) - 1] == 99);
  }
}
