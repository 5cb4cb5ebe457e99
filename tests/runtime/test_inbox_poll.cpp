// One poll of the inbox: how many messages it takes, and what it looks for next.
#include "runtime/dynamic/inbox_poll.hpp"
#include "support/internals.hpp"

#include <algorithm>
#include <vector>

#include "catch.hpp"
#include "support/device_state_fixture.hpp"
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
      all[lane] = what == PollFor::many ? poll.take_many(next) : poll.take_some(next);
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

TEMPLATE_TEST_CASE_SIG("a poll for many takes as many short messages as are there", "", ((std::uint32_t kLanes), kLanes), 8,
                       32) {
  const std::uint32_t count = GENERATE(1u, 4u, 5u, 15u, kManyMessages, kManyMessages + 4, 3 * kManyMessages, 5 * kManyMessages);
  Poll<kLanes> poll;
  for (std::uint32_t i = 0; i < count; ++i) poll.send(i % 3);
  const Arrived now = poll.take(PollFor::many, 0);
  const std::uint32_t taken = std::min(count, 4 * kManyMessages);
  CHECK(now.published == taken);
  CHECK(now.stored == 0);
  CHECK((now.next == PollFor::many) == (taken > 4));
  CHECK(poll.has_published(0, taken));
}

TEST_CASE("a poll for many stops before a message that is too long or of another priority, and the next poll is for some") {
  for (const bool is_long : {false, true}) {
    Poll<32> poll;
    for (std::uint32_t i = 0; i < 3; ++i) poll.send(2);
    poll.send(is_long ? 20 : 2, is_long ? Priority::normal : Priority::high);
    poll.send(2);
    const Arrived now = poll.take(PollFor::many, 0);
    CHECK(now.published == 3);
    CHECK(now.next == PollFor::some);
    CHECK(poll.has_published(0, 3));
    // What the poll for some cannot publish together it lays out, in order.
    const Arrived rest = poll.take(PollFor::some, 3);
    CHECK(rest.published + rest.stored == (is_long ? rest.published : 2u));
    if (is_long) CHECK(poll.has_published(3, 5));
    else CHECK(poll.has_stored(0, 3));
  }
}

TEST_CASE("a poll that finds nothing takes nothing, and the next one is for one message") {
  Poll<32> poll;
  CHECK(poll.take(PollFor::many, 0).published == 0);
  const Arrived now = poll.take(PollFor::some, 0);
  CHECK((now.published | now.stored) == 0);
  CHECK(now.next == PollFor::one);
}
