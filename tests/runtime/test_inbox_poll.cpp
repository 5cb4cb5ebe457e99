// One poll of the inbox: how many messages it takes, and what it looks for next.
#include "runtime/poller/inbox_poller.hpp"
#include "support/internals.hpp"

#include <algorithm>
#include <vector>

#include "catch.hpp"
#include "support/device_state_fixture.hpp"
#include "support/seed.hpp"
#include "support/thread_warp.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using P = CpuPlatform;

/// An inbox with messages that each carry a task, and a warp of kLanes that polls it.
template <std::uint32_t kLanes>
struct Poll {
  using W = ThreadWarp<kLanes>;
  TestDeviceState device{{.run_slots = 256, .inbox_capacity = 256}};
  DirectSlot direct_slot{kEmptyMailbox, 0, 0, {}, {}, 0};
  PollerBuffer buffer{};
  std::vector<TaskRecord> records;

  /// `words`: how many words of the task's arguments are not 0.
  void send(std::uint32_t words, Priority priority = Priority::normal) {
    const auto number = static_cast<std::uint32_t>(records.size());
    TaskRecord record{};
    record.header.result_offset = kResultInCompletion;
    for (std::uint32_t i = 0; i < words; ++i) record.args[4 * i] = static_cast<unsigned char>(number + 1);
    RunConstants run{};
    run.op = static_cast<std::uint32_t>(InboxOp::submit);
    run.priority = static_cast<std::uint32_t>(priority);
    run.flags = kRootsUniform | kRootsDense | kInlineRoot;
    run.repeat = run.sinks = run.root_count = 1;
    run.slot = run.generation = number;
    Message message{run, {}};
    std::memcpy(message.carried, &record, sizeof record);
    Views<P>{device.dev}.inbox().write(number, message);
    records.push_back(record);
  }

  Arrived take(PollFor what, std::uint64_t next) {
    WarpOfThreads<kLanes> warp;
    std::vector<Arrived> all(kLanes);
    run_together(kLanes, [&](std::uint32_t lane) {
      W::join(warp, lane);
      const InboxPoll<W> poll(device.dev, direct_slot, buffer);
      all[lane] = what == PollFor::some ? poll.take_some(next) : poll.take_many(next, what);
    });
    bool alike = true;
    for (const Arrived& each : all)
      alike &= each.published == all[0].published && each.stored == all[0].stored && each.next == all[0].next;
    CHECK(alike);
    return all[0];
  }

  /// Whether message e of those that were stored is task `number`'s.
  bool has_stored(std::uint32_t e, std::uint32_t number) {
    WarpOfThreads<kLanes> warp;
    run_together(kLanes, [&](std::uint32_t lane) {
      W::join(warp, lane);
      InboxPoll<W>(device.dev, direct_slot, buffer).unpack(e);
    });
    return buffer.message.run.generation == number && buffer.message.run.slot == number &&
           std::memcmp(buffer.message.carried, &records[number], sizeof(TaskRecord)) == 0;
  }

  /// Whether tasks `from` to `to` are in the queue of their priority, in order, whole, and with their runs' lines.
  bool has_published(std::uint32_t from, std::uint32_t to) {
    bool right = true;
    for (std::uint32_t number = from; number < to; ++number) {
      const RunConstants& run = device.dev.runs[number].line.constants;
      const Views<P> views{device.dev};
      std::uint64_t packed = 0;
      right &= views.ready(run.priority).pop(1, &packed, views.wait(0)) == 1;
      const Item item = Item::unpack(packed);
      right &= item.run == number && item.record == device.dev.inline_base + number;
      right &= run.generation == number && device.dev.runs[number].outstanding == 1;
      right &= std::memcmp(&device.dev.records[item.record], &records[number], sizeof(TaskRecord)) == 0;
    }
    return right;
  }
};
}  // namespace

TEMPLATE_TEST_CASE_SIG("a poll for many takes as many messages of its length as are there", "",
                       ((std::uint32_t kLanes), kLanes), 8, 32) {
  const PollFor what = GENERATE(PollFor::many_short, PollFor::many_medium, PollFor::many_long);
  const std::uint32_t each = shape_of<ThreadWarp<kLanes>>(what).count;
  const std::uint32_t count = GENERATE_COPY(1u, 4u, 5u, each - 1, each, each + 4, 3 * each, 5 * each);
  Poll<kLanes> poll;
  const std::uint32_t words = what == PollFor::many_short ? 0 : what == PollFor::many_medium ? 9 : 24;
  for (std::uint32_t i = 0; i < count; ++i) poll.send(words + i % 3 - (words == 24 ? 2 : 0));
  const Arrived now = poll.take(what, 0);
  const std::uint32_t taken = std::min(count, 4 * each);
  CHECK(now.published == taken);
  CHECK(now.stored == 0);
  CHECK(now.next == (taken > 4 ? what : PollFor::some));
  CHECK(poll.has_published(0, taken));
}

TEST_CASE("a poll for some chooses the next one by the longest message that it has found") {
  for (const std::uint32_t words : {2u, 9u, 24u}) {
    Poll<32> poll;
    for (std::uint32_t i = 0; i < 40; ++i) poll.send(i == 2 ? words : 2);
    const PollFor next = words == 2 ? PollFor::many_short : words == 9 ? PollFor::many_medium : PollFor::many_long;
    CHECK(poll.take(PollFor::some, 0).next == next);
    CHECK(poll.take(next, 4).next == PollFor::many_short);  // all that it has found are short
  }
}

TEST_CASE("a poll for many stops before a message that is too long, and the next poll is for some") {
  Poll<32> poll;
  for (std::uint32_t i = 0; i < 3; ++i) poll.send(2);
  poll.send(20);
  poll.send(2);
  const Arrived now = poll.take(PollFor::many_short, 0);
  CHECK(now.published == 3);
  CHECK(now.next == PollFor::some);
  CHECK(poll.has_published(0, 3));
  CHECK(poll.take(PollFor::some, 3).published == 2);
  CHECK(poll.has_published(3, 5));
}

TEMPLATE_TEST_CASE_SIG("messages of different priorities are published together, each in the queue of its own", "",
                       ((std::uint32_t kLanes), kLanes), 8, 32) {
  FLYWHEEL_TEST_SEED(seed);
  Random random(seed);
  for (int round = 0; round < 20; ++round) {
    Poll<kLanes> poll;
    std::vector<std::uint32_t> of_level[kPriorities];
    const std::uint32_t count = pick(random, 2, kManyMessages);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t level = pick(random, 0, static_cast<int>(kPriorities) - 1);
      poll.send(1, static_cast<Priority>(level));
      of_level[level].push_back(i);
    }
    const bool many = count > 4 || pick(random, 0, 1);
    CHECK(poll.take(many ? PollFor::many_short : PollFor::some, 0).published == count);
    for (const std::vector<std::uint32_t>& numbers : of_level)
      for (const std::uint32_t number : numbers) CHECK(poll.has_published(number, number + 1));
  }
}

TEST_CASE("a poll that finds nothing takes nothing, and the next one is for one message") {
  Poll<32> poll;
  CHECK(poll.take(PollFor::many_short, 0).published == 0);
  const Arrived now = poll.take(PollFor::some, 0);
  CHECK((now.published | now.stored) == 0);
  CHECK(now.next == PollFor::one);
}

namespace {
/// Runs in slots 1, 2, ..., each the follower of the one in the slot before, in one poll.
template <std::uint32_t kLanes>
struct FollowersPoll : Poll<kLanes> {
  using Base = Poll<kLanes>;

  static RunConstants constants(std::uint32_t slot) {
    RunConstants run{};
    run.op = static_cast<std::uint32_t>(InboxOp::submit);
    run.slot = slot;
    run.generation = run.repeat = run.sinks = run.root_count = run.priority = 1;
    run.flags = kRootsUniform | kRootsDense | kFollows;
    // Of the two kinds: a record in the message, or a loaded graph and some parameters.
    if (slot % 2) run.flags |= kInlineRoot;
    else run.first_record = 10 * slot, run.param_bytes = 12;
    return run;
  }
  /// Few words: the poll takes no longer messages.
  static unsigned char carried(std::uint32_t slot, std::uint32_t i) {
    return i < 32 ? static_cast<unsigned char>(31 * slot + i) : std::uint8_t{0};
  }

  /// `second`: the slot of one more predecessor of the run in `slot`, if not 0.
  void send_follower(std::uint32_t slot, std::uint32_t second = 0) {
    Message message{constants(slot), {}};
    const std::uint32_t bytes = slot % 2 ? kInlineBytes : 12;
    for (std::uint32_t i = 0; i < bytes; ++i) message.carried[i] = carried(slot, i);
    put_followed_runs(message,
                      {{1, second != 0}, {static_cast<std::uint16_t>(slot - 1), static_cast<std::uint16_t>(second)}, {}});
    Views<P>{this->device.dev}.inbox().write(slot - 1, message);
  }
  /// How many of the first `count` messages are enlisted.
  std::uint32_t enlist(std::uint32_t count) {
    WarpOfThreads<kLanes> warp;
    std::vector<std::uint32_t> all(kLanes);
    run_together(kLanes, [&](std::uint32_t lane) {
      Base::W::join(warp, lane);
      all[lane] = InboxPoll<typename Base::W>(this->device.dev, this->direct_slot, this->buffer).enlist_followers(count);
    });
    CHECK(std::count(all.begin(), all.end(), all[0]) == kLanes);
    return all[0];
  }
  bool is_enlisted(std::uint32_t e) const { return this->buffer.roots[e]; }
  /// The run in `slot` ends; what it lets in.
  std::uint64_t end(std::uint32_t slot) {
    return let_followers_in<P>(this->device.dev, 0, end_run<P>(this->device.dev, slot, completion_word(1, 0), [] {}),
                               kPriorities);
  }
  bool is_open(std::uint32_t slot) const {
    const RunState& run = this->device.dev.runs[slot];
    const RunConstants wanted = constants(slot);
    bool right = run.outstanding == 1 && run.line.cancelled == 0 && run.line.fault == 0;
    right &= run.line.constants.slot == slot && run.line.constants.generation == 1;
    right &= run.line.constants.first_record == wanted.first_record && run.line.constants.param_bytes == wanted.param_bytes;
    const auto* record = reinterpret_cast<const unsigned char*>(&this->device.dev.records[this->device.dev.inline_base + slot]);
    for (std::uint32_t i = 0; i < (slot % 2 ? kInlineBytes : 12); ++i)
      right &= (slot % 2 ? record : run.params)[i] == carried(slot, i);
    return right;
  }
};
}  // namespace

TEMPLATE_TEST_CASE_SIG("followers of one run each are enlisted together", "", ((std::uint32_t kLanes), kLanes), 8, 32) {
  for (const bool first_ended : {false, true}) {
    FollowersPoll<kLanes> poll;
    for (std::uint32_t slot = 1; slot <= 4; ++slot) {
      poll.device.dev.runs[slot].line.cancelled = 1;  // of the run before in the slot
      poll.send_follower(slot);
    }
    if (first_ended) CHECK(poll.end(0) == kEmptyMailbox);
    CHECK(poll.take(PollFor::some, 0).stored == 4);
    CHECK(poll.enlist(4) == 4);
    for (std::uint32_t e = 0; e < 4; ++e) CHECK(poll.is_enlisted(e) == (e > 0 || !first_ended));
    for (std::uint32_t slot = first_ended ? 1 : 0; slot < 4; ++slot) {
      CHECK(poll.is_open(slot + 1));
      CHECK(poll.end(slot) == only_root(poll.device.dev, FollowersPoll<kLanes>::constants(slot + 1)));
    }
  }
}

TEST_CASE("a follower of several runs is left to be handled alone, and so is what comes behind it") {
  FollowersPoll<32> poll;
  for (std::uint32_t slot = 1; slot <= 4; ++slot) poll.send_follower(slot, slot == 3 ? 1 : 0);
  CHECK(poll.take(PollFor::some, 0).stored == 4);
  CHECK(poll.enlist(4) == 2);
}

TEST_CASE("a run that has failed takes a whole poll of followers with it") {
  FollowersPoll<32> poll;
  for (std::uint32_t slot = 1; slot <= 4; ++slot) poll.send_follower(slot);
  (void)end_run<P>(poll.device.dev, 0, completion_word(1, 70), [] {});
  CHECK(poll.take(PollFor::some, 0).stored == 4);
  CHECK(poll.enlist(4) == 4);
  CHECK_FALSE(poll.is_enlisted(0));
  for (std::uint32_t e = 1; e < 4; ++e) CHECK(poll.is_enlisted(e));
  MessageHandler<P> handler(poll.device.dev, poll.direct_slot, poll.buffer);
  handler.begin_follower({FollowersPoll<32>::constants(1), {}});
  constexpr std::uint64_t kFailure = completion_word(1, static_cast<std::uint32_t>(Status::predecessor_failed));
  for (std::uint32_t slot = 1; slot <= 4; ++slot) CHECK(poll.device.dev.completions[slot].word == kFailure);
}
