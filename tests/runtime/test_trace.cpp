// The trace writer: what one role of one worker writes its events with.
#include "runtime/records/trace.hpp"
#include "support/internals.hpp"

#include <vector>

#include "catch.hpp"

using namespace flywheel;

namespace {

// Clocks that a test sets.
struct SetClock {
  static inline std::uint64_t tick = 0, ns = 0;
  static std::uint64_t ticks() { return tick; }
  static std::uint64_t now_ns() { return ns; }
  static constexpr bool kOneClock = false;
};
using Writer = TraceWriter<SetClock>;

constexpr std::uint64_t kUntouched = 0xabababababababab;

// Tracks and events of two workers, with one track's room of canaries before and after.
struct WrittenTrace {
  explicit WrittenTrace(std::uint32_t capacity)
      : tracks(2 * kTraceRoles),
        events((tracks.size() + 2) * capacity, blank()),
        buffers{tracks.data(), events.data() + capacity, capacity, 0} {}

  static TraceEvent blank() { return {kUntouched, 0xabababab, 0xabababab, 0xabababab, 0xab, 0xab, 0xabab}; }
  static bool is_blank(const TraceEvent& e) {
    return e.begin == kUntouched && e.ticks == 0xabababab && e.task == 0xabababab && e.pass == 0xabababab && e.kind == 0xab &&
           e.role == 0xab && e.bytes_kib == 0xabab;
  }
  std::uint32_t index(std::uint32_t worker, TraceRole role) const {
    return worker * kTraceRoles + static_cast<std::uint32_t>(role);
  }
  TraceTrack& track(std::uint32_t worker, TraceRole role) { return tracks[index(worker, role)]; }
  const TraceEvent* event(std::uint32_t worker, TraceRole role) {
    return buffers.events + std::size_t{index(worker, role)} * buffers.capacity;
  }
  std::size_t written() const {
    std::size_t count = 0;
    for (const TraceEvent& event : events) count += !is_blank(event);
    return count;
  }

  std::vector<TraceTrack> tracks;
  std::vector<TraceEvent> events;
  TraceBuffers buffers;
};

std::uint16_t kib_of(std::uint32_t bytes) {
  WrittenTrace work(1);
  Writer writer(work.buffers, 0, TraceRole::compute);
  writer.write(TraceKind::body, 0, 0, 0, bytes);
  return work.event(0, TraceRole::compute)->bytes_kib;
}

}  // namespace

TEST_CASE("a writer without tracks writes nothing and does not look at the clock") {
  SetClock::tick = 77;
  std::vector<TraceEvent> events(4, WrittenTrace::blank());
  Writer writer(TraceBuffers{nullptr, events.data(), 1, 0}, 0, TraceRole::control);
  CHECK_FALSE(writer.on());
  CHECK(writer.now() == 0);
  writer.write(TraceKind::wait, 1, 2, 3, 4);
  writer.close();
  for (const TraceEvent& event : events) CHECK(WrittenTrace::is_blank(event));
  CHECK_FALSE(Writer().on());
  CHECK(Writer().now() == 0);
}

TEST_CASE("an event says what, of which task, when, how long and how much") {
  WrittenTrace work(3);
  Writer writer(work.buffers, 1, TraceRole::compute);
  CHECK(writer.on());
  SetClock::tick = 1'000'000'000'000;
  const std::uint64_t begin = writer.now();
  CHECK(begin == 1'000'000'000'000);
  SetClock::tick += 250;
  writer.write(TraceKind::body, begin, 12, 34, 4096);
  const TraceEvent& event = *work.event(1, TraceRole::compute);
  CHECK((event.begin == begin && event.ticks == 250));
  CHECK((event.task == 12 && event.pass == 34 && event.bytes_kib == 4));
  CHECK(event.kind == static_cast<std::uint8_t>(TraceKind::body));
  CHECK(event.role == static_cast<std::uint8_t>(TraceRole::compute));
  CHECK(work.written() == 1);
}

TEST_CASE("a track has its first and last moment on both clocks, and its count once it is closed") {
  WrittenTrace work(3);
  SetClock::tick = 10, SetClock::ns = 1000;
  Writer writer(work.buffers, 0, TraceRole::load);
  SetClock::tick = 30, SetClock::ns = 2000;
  writer.write(TraceKind::page, 20, 0, 0);
  writer.write(TraceKind::landing, 20, 0, 0);
  writer.close();
  const TraceTrack& track = work.track(0, TraceRole::load);
  CHECK((track.begin.ticks == 10 && track.begin.ns == 1000));
  CHECK((track.end.ticks == 30 && track.end.ns == 2000));
  CHECK((track.count == 2 && track.dropped == 0));
}

TEST_CASE("events beyond the capacity are counted, and nothing beyond the track is touched") {
  for (const std::uint32_t capacity : {0u, 1u, 5u}) {
    for (const std::uint32_t worker : {0u, 1u}) {
      // The first track of all and the last: beyond them lie only canaries.
      const TraceRole role = worker ? TraceRole::store : TraceRole::control;
      WrittenTrace work(capacity);
      Writer writer(work.buffers, worker, role);
      for (std::uint32_t i = 0; i < capacity + 3; ++i) writer.write(TraceKind::store, 0, i, 0);
      writer.close();
      CHECK(work.track(worker, role).count == capacity);
      CHECK(work.track(worker, role).dropped == 3);
      CHECK(work.written() == capacity);
      for (std::uint32_t i = 0; i < capacity; ++i) CHECK(work.event(worker, role)[i].task == i);
    }
  }
}

TEST_CASE("tracks do not mix") {
  WrittenTrace work(4);
  Writer one(work.buffers, 0, TraceRole::store), next(work.buffers, 1, TraceRole::control);
  for (std::uint32_t i = 0; i < 6; ++i) {
    one.write(TraceKind::store, 0, 100 + i, 0);
    if (i % 2) next.write(TraceKind::gate, 0, 200 + i, 0);
  }
  one.close();
  next.close();
  for (std::uint32_t i = 0; i < 4; ++i) CHECK(work.event(0, TraceRole::store)[i].task == 100 + i);
  for (std::uint32_t i = 0; i < 3; ++i) CHECK(work.event(1, TraceRole::control)[i].task == 201 + 2 * i);
  CHECK(work.written() == 4 + 3);
  CHECK((work.track(0, TraceRole::store).count == 4 && work.track(0, TraceRole::store).dropped == 2));
  CHECK((work.track(1, TraceRole::control).count == 3 && work.track(1, TraceRole::control).dropped == 0));
  CHECK(work.track(0, TraceRole::control).count + work.track(1, TraceRole::store).count == 0);
}

TEST_CASE("bytes are rounded up to KiB, and stop at the largest number there is room for") {
  CHECK(kib_of(0) == 0);
  CHECK(kib_of(1) == 1);
  CHECK(kib_of(1024) == 1);
  CHECK(kib_of(1025) == 2);
  CHECK(kib_of(65534 * 1024) == 65534);
  CHECK(kib_of(65534 * 1024 + 1) == 0xffff);
  CHECK(kib_of(65536u * 1024) == 0xffff);
  CHECK(kib_of(3'000'000'000u) == 0xffff);
}

TEST_CASE("on the CPU a worker's ticks are the ns of the shared clock") {
  const std::uint64_t before = CpuPlatform::now_ns(), ticks = CpuPlatform::ticks();
  CHECK(ticks >= before);
  CHECK(ticks <= CpuPlatform::now_ns());
}

// Two readings would differ by a time slice now and then, when the thread is preempted in between.
TEST_CASE("on the CPU both clocks of a moment are one reading") {
  WrittenTrace work(1);
  for (int i = 0; i < 1000; ++i) {
    TraceWriter<CpuPlatform> writer(work.buffers, 0, TraceRole::compute);
    writer.close();
    const TraceTrack& track = work.track(0, TraceRole::compute);
    REQUIRE(track.begin.ticks == track.begin.ns);
    REQUIRE(track.end.ticks == track.end.ns);
  }
}
