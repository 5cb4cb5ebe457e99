// The inbox poller: lets runs in whole, in order, and tells the host what it has read. Its poll is the work of a
// whole warp.
#include "runtime/poller/inbox_poller.hpp"
#include "support/internals.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "support/device_state_fixture.hpp"
#include "support/thread_warp.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using P = CpuPlatform;

std::uint64_t param_of(std::uint64_t number, std::uint32_t i) { return number * 1000 + i; }

/// A host that submits runs of one task, some of which travel in the message, an inbox poller of `kLanes` lanes, and a worker
/// that takes the tasks from the queue, and two times in three waits at the direct slot as well. Parameters, records, the lines
/// of the runs and the message's local work are plain memory.
template <std::uint32_t kLanes>
struct Entrance {
  using W = ThreadWarp<kLanes>;
  static constexpr std::uint32_t kParams = 5;
  TestDeviceState device;
  DirectSlot direct_slot{kEmptyMailbox, 0, 0, {}, {}, 0};
  PollerBuffer work{};
  std::uint32_t runs;
  std::uint32_t wrong = 0, direct = 0;
  std::vector<std::atomic<bool>> answered;

  explicit Entrance(std::uint32_t count) : runs(count), answered(count) {}

  static bool is_inline(std::uint64_t number) { return number % 5 < 2; }

  void send(std::uint64_t number, const RunConstants& run) {
    Message message{run, {}};
    const std::uint32_t values = run.flags & kInlineRoot ? kInlineBytes / 8 : run.param_bytes / 8;
    for (std::uint32_t i = 0; i < values; ++i) {
      const std::uint64_t value = param_of(number, i);
      std::memcpy(message.carried + i * 8, &value, 8);
    }
    const Inbox<P> inbox = Views<P>{device.dev}.inbox();
    wait_for([&] { return number - P::system(*inbox.consumed).load(Order::acquire) < inbox.capacity; });
    inbox.write(number, message);
  }

  void submit_all() {
    RunConstants run{};
    run.op = static_cast<std::uint32_t>(InboxOp::submit);
    run.priority = 1;
    run.sinks = run.root_count = 1;
    const std::uint32_t slots = device.dev.run_slots;
    for (std::uint32_t number = 0; number < runs; ++number) {
      run.slot = number % slots;
      run.flags = kRootsUniform | kRootsDense | (is_inline(number) ? kInlineRoot : 0u);
      run.param_bytes = is_inline(number) ? 0 : kParams * 8;
      run.generation = run.first_record = number;
      // The slot's last run has ended.
      wait_for([&] { return number < slots || answered[number - slots].load(std::memory_order_acquire); });
      send(number, run);
      if (number % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));  // the next message comes alone
    }
    run.op = static_cast<std::uint32_t>(InboxOp::park);
    run.flags = run.param_bytes = 0;
    send(runs, run);
  }

  /// The next item, from wherever it comes first. True if it came over the direct slot.
  bool take(std::uint64_t& packed, bool waits) {
    const Views<P> views{device.dev};
    const IdleSlot<P> idle{views.idle(), 0, &direct_slot};
    if (waits) idle.enroll();
    bool directly = false;
    wait_for([&] {
      if (waits && (packed = idle.peek(1)) != kEmptyMailbox) return directly = true;
      if (!views.ready(1).size_hint() || (waits && !idle.withdraw())) return false;
      waits = false;
      return views.ready(1).pop(1, &packed, views.wait(0)) != 0;
    });
    if (directly) idle.empty();
    return directly;
  }

  void take_all() {
    for (std::uint32_t nth = 0; nth < runs; ++nth) {
      std::uint64_t packed = 0;
      const bool directly = take(packed, nth % 3 != 0);
      const Item item = Item::unpack(packed);
      RunState& run = device.dev.runs[item.run];
      const std::uint32_t number = run.line.constants.generation;
      const bool carries_record = is_inline(number);
      direct += directly;
      wrong += item.record != (carries_record ? device.dev.inline_base + item.run : number);
      wrong += number >= runs || item.run != number % device.dev.run_slots || run.outstanding != 1 || run.line.cancelled;
      if (directly) wrong += direct_slot.run.generation != number || direct_slot.ended;
      const void* values = run.params;
      if (carries_record) values = directly ? &direct_slot.record : &device.dev.records[item.record];
      for (std::uint32_t i = 0; i < (carries_record ? kInlineBytes / 8 : kParams); ++i)
        wrong += static_cast<const std::uint64_t*>(values)[i] != param_of(number, i);
      IdleSlot<P>{Views<P>{device.dev}.idle(), 0, &direct_slot}.note_end();
      P::device(device.dev.control->finished.value).fetch_add(1, Order::relaxed);
      if (number < runs) answered[number].store(true, std::memory_order_release);
    }
  }

  void run() {
    WarpOfThreads<kLanes> warp;
    run_together(kLanes + 2, [&](std::uint32_t i) {
      if (i == kLanes) return submit_all();
      if (i == kLanes + 1) return take_all();
      W::join(warp, i);
      InboxPoller<W>(device.dev, direct_slot, work)();
    });
    CHECK(wrong == 0);
    CHECK(direct > 0);
    CHECK(direct < runs);
    CHECK(device.dev.control->poller.admitted == runs);
    CHECK(device.dev.control->poller.next_entry == runs + 1);
    CHECK(*device.dev.inbox_consumed == runs + 1);
    CHECK(announcement_stop(device.dev.control->broadcast.announcement) == device.dev.launch);
  }
};

/// What a lone thread does with one message.
struct Reception {
  TestDeviceState device;
  DirectSlot direct_slot{kEmptyMailbox, 0, 0, {}, {}, 0};
  Message sent{};
  RunConstants& message = sent.run;
  std::uint32_t flags = kRootsUniform | kRootsDense, roots = 1;
  PollerBuffer buffer{};
  MessageHandler<P> handler{device.dev, direct_slot, buffer};

  void handle(InboxOp op, std::uint32_t slot, std::uint32_t generation) {
    message.op = static_cast<std::uint32_t>(op);
    message.slot = slot;
    message.generation = generation;
    message.priority = 1;
    message.sinks = message.root_count = roots;
    message.flags = flags;
    const auto* words = reinterpret_cast<const std::uint32_t*>(&sent);
    const auto word = [&](std::uint32_t i, std::uint32_t) { return words[i]; };
    if (op == InboxOp::submit) open_line<P>(device.dev.runs[slot].line, word);
    if (op == InboxOp::submit && flags & kInlineRoot) store_record<P>(device.dev.records[device.dev.inline_base + slot], word);
    handler.handle(sent, true);
  }
  /// It first calls all workers together.
  bool leaves_once_assembled() {
    if (handler.may_leave() || handler.may_leave()) return false;
    device.dev.control->assembled.value += device.dev.workers;
    return handler.may_leave();
  }
  std::uint32_t cancelled(std::uint32_t slot) const { return device.dev.runs[slot].line.cancelled; }
};
}  // namespace

TEST_CASE("an inbox poller of one thread lets runs in whole and in order") { Entrance<1>(500).run(); }

TEST_CASE("an inbox poller of a warp lets runs in whole and in order") { Entrance<8>(200).run(); }

TEST_CASE("an inbox poller with as many lanes as on a GPU") { Entrance<32>(40).run(); }

TEST_CASE("a cancel reaches the run it means and no later one in its slot") {
  Reception reception;
  reception.handle(InboxOp::submit, 2, 5);
  reception.handle(InboxOp::cancel, 2, 4);
  CHECK(reception.cancelled(2) == 0);
  reception.handle(InboxOp::cancel, 2, 5);
  CHECK(reception.cancelled(2) == 1);
  reception.handle(InboxOp::submit, 2, 6);
  CHECK(reception.cancelled(2) == 0);
}

TEST_CASE("a single root goes to the worker on the direct slot if it waits there, else to the queue") {
  Reception reception;
  const Queue<P> queue = Views<P>{reception.device.dev}.ready(1);
  reception.handle(InboxOp::submit, 0, 1);
  CHECK(queue.size_hint() == 1);
  reception.direct_slot.waiting = 1;
  reception.handle(InboxOp::submit, 1, 9);
  CHECK(queue.size_hint() == 1);
  CHECK(Item::unpack(reception.direct_slot.item).run == 1);
  CHECK(reception.direct_slot.run.generation == 9);
}

TEST_CASE("of several roots the worker on the direct slot gets the first, if it waits there, and others the rest") {
  for (const std::uint32_t roots : {2u, 4u, 5u, 40u})
    for (const bool waits : {true, false}) {
      INFO(roots << " roots, the worker waits " << waits);
      Reception reception;
      DeviceState& dev = reception.device.dev;
      reception.roots = roots;
      reception.direct_slot.waiting = waits;
      reception.handle(InboxOp::submit, 0, 3);
      if (waits) {
        CHECK(Item::unpack(reception.direct_slot.item).record == 0);
        CHECK(reception.direct_slot.run.root_count == roots);
        CHECK(reception.direct_slot.run.generation == 3);
        CHECK(reception.direct_slot.waiting == 0);
      } else {
        CHECK(reception.direct_slot.item == kEmptyMailbox);
      }
      const std::int64_t queued = dev.control->broadcast.queued[1];
      std::uint32_t others = 0;
      if (queued < kRootedRun) others = static_cast<std::uint32_t>(queued);
      else others = take_roots<P>(dev.runs[0], 64).count;
      CHECK(others == roots - waits);
    }
}

TEST_CASE("roots of other priorities than their run's do not go to the direct slot") {
  Reception reception;
  reception.flags = kRootsDense;
  reception.roots = 2;
  reception.direct_slot.waiting = 1;
  for (std::uint32_t i = 0; i < 2; ++i) reception.device.dev.edges[i] = {i, 0, static_cast<std::uint32_t>(Priority::high), 0};
  reception.handle(InboxOp::submit, 0, 1);
  CHECK(reception.direct_slot.item == kEmptyMailbox);
  CHECK(Views<P>{reception.device.dev}.ready(0).size_hint() == 2);
}

TEST_CASE("the inbox poller may leave when it is told to and all runs have finished") {
  Reception reception;
  CHECK_FALSE(reception.handler.may_leave());
  reception.handle(InboxOp::submit, 0, 1);
  reception.handle(InboxOp::park, 0, 0);
  CHECK_FALSE(reception.handler.may_leave());
  reception.device.dev.control->finished.value = 1;
  CHECK(reception.handler.may_leave());
}

TEST_CASE("a phased run is announced with a new epoch, its slot and the barrier as it is") {
  Reception reception;
  reception.device.dev.control->barrier.value = 42;
  reception.flags = kPhased;
  for (std::uint32_t epoch = 1; epoch <= 3; ++epoch) {
    reception.handle(InboxOp::submit, epoch, 1);
    const std::uint64_t announcement = reception.device.dev.control->broadcast.announcement;
    CHECK(announcement_epoch(announcement) == epoch);
    CHECK(announcement_run(announcement) == epoch);
    CHECK(announcement_stop(announcement) == 0);
    CHECK(reception.device.dev.runs[epoch].line.barrier_base == 42);
  }
}

TEST_CASE("a record that the message carries goes with it: to the direct slot, else to the record of the run's slot") {
  Reception reception;
  TaskRecord record{};
  record.header.local = 77;
  record.args[95] = 5;
  std::memcpy(reception.sent.carried, &record, sizeof(record));
  reception.flags |= kInlineRoot;
  const auto is_record = [&](const TaskRecord& at) { return std::memcmp(&at, &record, sizeof(record)) == 0; };
  const std::uint32_t place = reception.device.dev.inline_base + 3;

  reception.handle(InboxOp::submit, 3, 1);
  const Queue<P> queue = Views<P>{reception.device.dev}.ready(1);
  std::uint64_t item = 0;
  REQUIRE(queue.pop(1, &item, Views<P>{reception.device.dev}.wait(0)));
  CHECK(Item::unpack(item).record == place);
  CHECK(is_record(reception.device.dev.records[place]));

  reception.direct_slot.waiting = 1;
  record.args[0] = 9;
  std::memcpy(reception.sent.carried, &record, sizeof(record));
  reception.handle(InboxOp::submit, 3, 2);
  CHECK(Item::unpack(reception.direct_slot.item).record == place);
  CHECK(is_record(reception.direct_slot.record));
  CHECK(is_record(reception.device.dev.records[place]));
  CHECK(queue.size_hint() == 0);
}

TEST_CASE("the inbox poller may leave when it is told to suspend, whatever is in flight but a collective run") {
  Reception reception;
  reception.handle(InboxOp::submit, 0, 1);
  reception.handle(InboxOp::suspend, 0, 0);
  CHECK(reception.leaves_once_assembled());
}

TEST_CASE("if not all workers come to leave, the suspension is called off, and a suspended run announced again") {
  for (const bool collective : {false, true}) {
    Reception reception;
    DeviceState& dev = reception.device.dev;
    dev.assembly_ns = 0;
    reception.flags = kPhased;
    if (collective) reception.handle(InboxOp::submit, 2, 1);
    reception.handle(InboxOp::suspend, 0, 0);
    if (collective) suspend_run<P>(dev, dev.runs[2].line, {1, 1});
    CHECK_FALSE(reception.handler.may_leave());
    CHECK(announcement_assembles(dev.control->broadcast.announcement));
    CHECK_FALSE(reception.handler.may_leave());
    CHECK(*dev.calls_off == 1);
    CHECK(dev.control->broadcast.announcement == announcement_word(collective ? 3 : 2, collective ? 2 : kAssemble, 0));
    CHECK(dev.runs[2].line.resume.phase == (collective ? 1u : 0u));
    CHECK_FALSE(reception.handler.may_leave());
    CHECK(*dev.calls_off == 1);
  }
}

TEST_CASE("a collective run is asked to suspend itself, also one that comes late, and the inbox poller waits for it") {
  for (const bool late : {false, true}) {
    Reception reception;
    RunLine& line = reception.device.dev.runs[2].line;
    reception.flags = kPhased;
    if (late) reception.handle(InboxOp::suspend, 0, 0);
    reception.handle(InboxOp::submit, 2, 1);
    CHECK(line.stop == (late ? kSuspendAsked : 0u));
    if (!late) reception.handle(InboxOp::suspend, 0, 0);
    CHECK(line.stop == kSuspendAsked);
    CHECK_FALSE(reception.handler.may_leave());
    leave_collective<P>(reception.device.dev);
    CHECK(reception.leaves_once_assembled());
  }
}

TEST_CASE("a traced run is not asked to suspend itself") {
  Reception reception;
  reception.flags = kCompiled | kTraced;
  reception.handle(InboxOp::submit, 2, 1);
  reception.handle(InboxOp::suspend, 0, 0);
  CHECK(reception.device.dev.runs[2].line.stop == 0);
  CHECK_FALSE(reception.handler.may_leave());
}

TEST_CASE("a suspended compiled run is announced again, as if the sinks of its passes had just arrived") {
  Reception reception;
  DeviceState& dev = reception.device.dev;
  RunLine& line = dev.runs[3].line;
  Schedule schedule{};
  schedule.sinks = 5;
  dev.execs[0].schedule = &schedule;
  reception.flags = kCompiled;
  reception.handle(InboxOp::submit, 3, 1);
  reception.handle(InboxOp::suspend, 0, 0);
  suspend_run<P>(dev, line, {7, 0});
  REQUIRE(reception.leaves_once_assembled());
  reception.handler.close(2);
  CHECK(announcement_stop(dev.control->broadcast.announcement) == dev.launch);
  CHECK(dev.control->first_epoch[(dev.launch + 1) % 2] == 3);

  dev.control->barrier.value = 100;
  ++dev.launch;
  PollerBuffer buffer{};
  MessageHandler<P> next(dev, reception.direct_slot, buffer);
  next.open();
  CHECK(line.barrier_base == 100 - 7 * 5);
  CHECK(line.suspended == 0);
  CHECK(line.stop == 0);
  CHECK(dev.control->broadcast.announcement == announcement_word(4, 3, 0));
}

TEST_CASE("a run was only suspended unless something ended it") {
  RunLine line{};
  CHECK_FALSE(is_suspension<P>(line, true));
  line.stop = kSuspendAsked | kStopVoted;
  CHECK(is_suspension<P>(line, true));
  line.stop |= kStopCalled;
  CHECK_FALSE(is_suspension<P>(line, true));
  CHECK(is_suspension<P>(line, false));  // it stops after the pass
  line.cancelled = 1;
  CHECK_FALSE(is_suspension<P>(line, false));
  line.cancelled = 0;
  line.fault = 1;
  CHECK_FALSE(is_suspension<P>(line, false));
}
