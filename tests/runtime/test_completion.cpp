// The end of a run: reported once, by the last sink, with what happened; repeated runs go round until something
// ends them.
#include "runtime/ready/completion.hpp"
#include "support/internals.hpp"

#include <atomic>

#include "catch.hpp"
#include "support/device_state_fixture.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using P = CpuPlatform;

/// A run of `sinks` root tasks that end when the test says so.
struct Finish {
  TestDeviceState device;
  RunConstants run{};
  CompletionSlot& done;

  explicit Finish(std::uint32_t sinks, std::uint32_t repeat = 1) : done(device.dev.completions[0]) {
    run.sinks = run.root_count = sinks;
    run.flags = kRootsUniform | kRootsDense;
    run.repeat = repeat;
    run.generation = 7;
    run.priority = 1;
    device.open(run);
  }
  RunState& state() { return device.dev.runs[0]; }
  void arrive(bool alone = false, bool clean = true) { arrive_sink<P>(device.dev, 0, run, alone, clean); }
  std::uint32_t queued() { return Views<P>{device.dev}.ready(1).size_hint(); }
  std::uint32_t code() const { return static_cast<std::uint32_t>(done.word); }
  bool over() const { return done.word >> 32 == run.generation; }
};
}  // namespace

TEST_CASE("a run ends with its last sink and not before") {
  Finish finish(3);
  finish.arrive();
  finish.arrive();
  CHECK_FALSE(finish.over());
  finish.arrive();
  CHECK(finish.done.word == completion_word(7, 0));
  CHECK(finish.device.dev.control->finished.value == 1);
}

TEST_CASE("sinks that end at once end the run once, with all results in place") {
  for (std::uint32_t round = 0; round < 200; ++round) {
    Finish finish(3);
    std::uint32_t results[3] = {}, seen = 0;
    run_together(4, [&](std::uint32_t i) {
      if (i < 3) {
        results[i] = i + 1;
        finish.arrive();
      } else if (wait_for([&] { return P::system(finish.done.word).load(Order::acquire) != 0; })) {
        seen = results[0] + results[1] + results[2];
      }
    });
    REQUIRE(seen == 6);
    REQUIRE(finish.device.dev.control->finished.value == 1);
  }
}

TEST_CASE("a lone sink needs no counting and leaves the count armed") {
  Finish finish(1, 3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    CHECK_FALSE(finish.over());
    finish.arrive(true);
    CHECK(finish.state().outstanding == 1);
  }
  CHECK(finish.code() == 0);
  CHECK(finish.done.iterations == 3);
}

TEST_CASE("a repeated run publishes its roots again and counts its passes") {
  Finish finish(2, 3);
  for (std::uint32_t pass = 0; pass < 3; ++pass) {
    CHECK(finish.state().line.iteration == pass);
    CHECK(finish.queued() == 2 * pass);
    finish.arrive();
    finish.arrive();
  }
  CHECK(finish.over());
  CHECK(finish.queued() == 4);
  CHECK(finish.done.iterations == 3);
}

TEST_CASE("a task's stop ends a repeated run after the pass") {
  Finish finish(2, 100);
  finish.arrive();
  finish.arrive();
  finish.state().line.stop = 1;
  finish.arrive();
  CHECK_FALSE(finish.over());
  finish.arrive();
  CHECK(finish.done.word == completion_word(7, 0));
  CHECK(finish.done.iterations == 2);
}

TEST_CASE("a fault ends a repeated run and is reported with its task") {
  Finish finish(2, 100);
  record_fault<P>(finish.state(), 70, 11);
  finish.arrive();
  finish.arrive(false, false);
  CHECK(finish.done.word == completion_word(7, 70));
  CHECK(finish.done.fault_task == 12);
  CHECK(finish.done.iterations == 0);
}

TEST_CASE("the first of many faults counts") {
  RunState run{};
  std::atomic<std::uint32_t> next{0};
  run_together(4, [&](std::uint32_t) {
    const std::uint32_t self = next++;
    record_fault<P>(run, 64 + self, self);
  });
  const std::uint64_t fault = run.line.fault;
  CHECK((fault >> 32) - 64 + 1 == (fault & 0xffffffffu));
  record_fault<P>(run, 99, 9);
  CHECK(run.line.fault == fault);
}

TEST_CASE("a cancelled run says so, unless a fault came first") {
  Finish cancelled(2);
  cancelled.state().line.cancelled = 1;
  cancelled.arrive();
  cancelled.arrive(false, false);
  CHECK(cancelled.code() == static_cast<std::uint32_t>(Status::cancelled));

  Finish failed(2);
  failed.state().line.cancelled = 1;
  record_fault<P>(failed.state(), 65, 0);
  failed.arrive();
  failed.arrive(false, false);
  CHECK(failed.code() == 65);
}

// No task is skipped, so the sink does not show the cancellation; the passes that are missing do.
TEST_CASE("a repeated run that is cut short by a cancellation does not end as a success") {
  for (const bool alone : {true, false}) {
    Finish finish(1, 100);
    finish.arrive(alone);
    finish.state().line.cancelled = 1;
    finish.arrive(alone);
    REQUIRE(finish.over());
    INFO("alone " << alone);
    CHECK(finish.code() == static_cast<std::uint32_t>(Status::cancelled));
    CHECK(finish.done.iterations < 100);
  }
}
