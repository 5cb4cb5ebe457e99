// Compiled runs that end early, and compiled runs among others: for the GPU and for the emulated one.
#pragma once

#include <chrono>
#include <thread>

#include "host/trace/trace.hpp"
#include "support/compiled_soak.hpp"
#include "support/internals.hpp"
#include "support/small_tasks.hpp"

namespace flywheel::testing {

/// Runs that stop, fail or are cancelled with operands fetched ahead that nobody will read, and the same graphs once more
/// at once: none may see what was fetched for another.
class ThrownAway {
 public:
  /// `tasks` beside the one that stops or fails. Each has `bytes` of operands more than the one before, modulo 60,000.
  ThrownAway(Runtime& runtime, std::uint32_t tasks, std::uint32_t bytes)
      : runtime_(runtime),
        notes_(runtime.allocate<OperandNotes>(1)),
        clean_(runtime, tasks, Walk::all, 50) {
    Graph stops, fails;
    const auto stop = stops.add(StopAt{3});
    Packed bad{notes_.data(), 1000, 40'000};
    bad.fail_at = 2;
    const auto failing = fails.add(bad);
    for (std::uint32_t i = 0; i < tasks; ++i) {
      const Packed task{notes_.data(), i + 1, 1 + i * bytes % 60'000, Walk::all, i % 2 ? 100u : 0u};
      stops.add(task, i % 5 ? After{} : after(stop));
      fails.add(task, i % 5 ? After{} : after(failing));
    }
    stopping_ = runtime.load(stops, compiled);
    failing_ = runtime.load(fails, compiled);
  }

  void round(std::chrono::microseconds until_cancelled) {
    CHECK(runtime_.submit(stopping_, repeat_until_stop()).iterations() == 4);
    CHECK(runtime_.submit(failing_, repeat(20)).status() == Status::task_failed);
    Run cancelled = runtime_.submit(clean_.executable(), repeat_until_stop());
    std::this_thread::sleep_for(until_cancelled);
    cancelled.cancel();
    CHECK(cancelled.status() == Status::cancelled);
    CHECK(runtime_.submit(stopping_, repeat(2)).status() == Status::ok);
    CHECK(runtime_.submit(failing_, repeat(2)).status() == Status::ok);
  }
  /// After all rounds.
  void check() const {
    CHECK(notes_.read()[0].wrong == 0);
    CHECK(clean_.seen().wrong == 0);
  }

 private:
  Runtime& runtime_;
  Buffer<OperandNotes> notes_;
  OperandRuns clean_;
  Executable stopping_, failing_;
};

/// A traced run says of each body how many bytes of operands it took, in KiB rounded up: the report's bandwidth comes of that.
inline void check_traced_bytes(Runtime& runtime) {
  const std::vector<std::uint32_t> sizes{0, 1, 1024, 1025, kPageBytes, 70'000};
  constexpr std::uint32_t kPasses = 3;
  Buffer<OperandNotes> notes = runtime.allocate<OperandNotes>(1);
  Graph graph;
  for (const std::uint32_t bytes : sizes) graph.add(Packed{notes.data(), bytes, bytes});
  Run run = runtime.submit(runtime.load(graph, compiled), traced, repeat(kPasses));
  std::vector<std::uint32_t> bodies(sizes.size());
  for (const TraceSpan& span : run.trace().spans()) {
    if (span.kind != TraceKind::body) continue;
    ++bodies[span.task];
    CHECK(span.bytes_kib == (sizes[span.task] + 1023) / 1024);
  }
  CHECK(bodies == std::vector<std::uint32_t>(sizes.size(), kPasses));
}

/// Dynamic, phased and compiled runs in turn, with compiled ones of another thread beside them.
class MixedRuns {
 public:
  /// How wide the stages are, and how many tasks with operands and dynamic ones there are.
  struct Sizes {
    std::uint32_t width, other_width, operands, dynamic;
  };

  MixedRuns(Runtime& runtime, std::uint32_t stages, const Sizes& sizes, std::uint32_t delay)
      : runtime_(runtime),
        words_(runtime.allocate<std::uint32_t>(2048)),
        tasks_(sizes.dynamic),
        stages_(runtime, stages, sizes.width, delay),
        others_(runtime, stages - 1, sizes.other_width, 0),
        operands_(runtime, sizes.operands, Walk::all, delay / 2) {
    Graph dynamic, phased;
    const auto first = dynamic.add(Count{words_.data()});
    for (std::uint32_t i = 0; i + 1 < sizes.dynamic; ++i) dynamic.add(Count{words_.data()}, after(first));
    phased.add_grid(Rounds{words_.data() + 8, words_.data() + 1, kMeetings});
    dynamic_ = runtime.load(dynamic);
    phased_ = runtime.load(phased);
  }

  /// So many rounds of all kinds, and runs of the other thread beside them.
  void run(std::uint32_t rounds, std::uint32_t beside) {
    std::thread second([&] {
      for (std::uint32_t i = 0; i < beside; ++i) others_.submit(3).wait();
    });
    for (std::uint32_t i = 0; i < rounds; ++i) {
      Run a = stages_.submit(1 + i % 4), b = runtime_.submit(dynamic_), c = operands_.submit(1 + i % 2);
      Run d = runtime_.submit(phased_, repeat(kPasses));
      a.wait(), b.wait(), c.wait(), d.wait();
    }
    second.join();
    check(rounds);
  }

 private:
  static constexpr std::uint32_t kMeetings = 3, kPasses = 2;

  void check(std::uint32_t rounds) const {
    CHECK(stages_.differences() == 0);
    CHECK(others_.differences() == 0);
    operands_.check();
    const std::vector<std::uint32_t> got = words_.read();
    CHECK(got[0] == rounds * tasks_);
    CHECK(got[1] == 0);
    CHECK(got[2] == rounds * kPasses * kMeetings);
  }

  Runtime& runtime_;
  Buffer<std::uint32_t> words_;
  std::uint32_t tasks_;
  StageRuns stages_, others_;
  OperandRuns operands_;
  Executable dynamic_, phased_;
};

}  // namespace flywheel::testing
