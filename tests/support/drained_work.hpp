// A small mixed workload in drain mode, quick enough to run under compute-sanitizer. It has test cases: each program includes
// it once.
#pragma once

#include "catch.hpp"
#include "support/compiled_soak.hpp"
#include "support/dependent_tasks.hpp"
#include "support/early_tasks.hpp"
#include "support/graph_driver.hpp"
#include "support/small_runtime.hpp"

namespace flywheel::testing {

inline Options drained() {
  Options options;
  options.target = Target::gpu;
  options.mode = Mode::drain;
  options.workers = 8;
  // A sanitizer slows tasks down a hundredfold.
  options.start_timeout = std::chrono::minutes(2);
  options.stall_limit = std::chrono::minutes(2);
  options.spin_budget = std::chrono::minutes(2);
  options.shutdown_timeout = std::chrono::minutes(2);
  return options;
}

TEST_CASE("drain mode: dynamic and phased graphs, spawns, streams, scratch, failures") {
  Bench bench(drained(), 512);
  Buffer<std::uint64_t> sum = bench.runtime.allocate<std::uint64_t>(1);
  Graph dynamic;
  const auto param = dynamic.param<std::uint64_t>(3);
  const auto root = dynamic.add(Fibonacci{8, sum.data(), bench.at(0)});
  const auto reduced = dynamic.add(Reduce{700}, after(root), Priority::high);
  const auto emitted = dynamic.add(EmitRange{0, 20}, after(root));
  const auto read = dynamic.add(Read{param}, after(reduced, emitted));
  for (int i = 0; i < 40; ++i) dynamic.edge(dynamic.add(Count{bench.at(1)}), read);

  Graph phased;
  for (int i = 0; i < 20; ++i) phased.add(Count{bench.at(2)});
  phased.add_grid(Rounds{bench.at(16), bench.at(3), 3});

  Graph failing;
  failing.add(Count{bench.at(5)}, after(failing.add(Fail{7, 0})));

  Run first = bench.runtime.submit(bench.runtime.load(dynamic), set(param, 9), repeat(2));
  Run second = bench.runtime.submit(bench.runtime.load(phased), repeat(2));
  Run third = bench.runtime.submit(bench.runtime.load(failing));
  CHECK(first.get(reduced) == 700 * 699 / 2);
  CHECK(first.get(read) == 9);
  std::uint32_t next = 0;
  while (const auto value = first.next<std::uint32_t>()) CHECK(*value == next++);
  CHECK(next == 40);
  CHECK(second.iterations() == 2);
  CHECK(third.status() == Status::task_failed);
  CHECK(sum.read()[0] == 42);
  CHECK(bench.get(1) == 80);
  CHECK(bench.get(2) == 40);
  CHECK(bench.get(3) == 0);
  CHECK(bench.get(5) == 0);
}

TEST_CASE("drain mode: a few random graphs") {
  Runtime runtime = start<Node, ReturningNode, Sprout>(drained());
  Tally tally;
  const auto graphs = static_cast<std::uint32_t>(number_from("FLYWHEEL_GRAPHS", 40));
  run_campaign(runtime, {number_from("FLYWHEEL_SEED", 500), graphs, 100, 2}, tally);
  INFO(tally.problem);
  CHECK_FALSE(tally.bad);
}

TEST_CASE("drain mode: compiled graphs, with operands by bulk copies and by cp.async") {
  for (const bool bulk : {true, false}) {
    Options options = drained();
    options.tuning.bulk_copies = bulk;
    options.operand_pages = 3;
    options.trace_events = 256;
    Runtime runtime = start<Packed, Borrowing, Mixer, Count, Fail, StopAt, EmitRange, Reduce>(options);
    OperandRuns operands(runtime, 40, Walk::all, 20, Borrows::yes), late(runtime, 20, Walk::late, 0);
    StageRuns stages(runtime, 3, 8, 20);
    operands.submit(3).wait();
    late.submit(2).wait();
    Run shown = runtime.submit(operands.executable(), traced);
    CHECK_FALSE(shown.trace().spans().empty());
    stages.submit(5).wait();
    CHECK(operands.seen().wrong == 0);
    CHECK(operands.borrowed().wrong == 0);
    late.check();
    CHECK(stages.differences() == 0);
  }
}

TEST_CASE("drain mode: compiled runs that stop and fail with pages fetched ahead") {
  Runtime runtime = start<Packed, Count, Fail, StopAt>(drained());
  Buffer<OperandNotes> notes = runtime.allocate<OperandNotes>(1);
  Graph stops, fails;
  const auto stop = stops.add(StopAt{1});
  const auto bad = fails.add(Fail{3, 1});
  for (std::uint32_t i = 0; i < 30; ++i) {
    const Packed task{notes.data(), i, 1 + i * 997, i % 2 ? Walk::all : Walk::none};
    stops.add(task, after(stop));
    fails.add(task, i % 2 ? after(bad) : After{});
  }
  const Executable stopping = runtime.load(stops, compiled), failing = runtime.load(fails, compiled);
  for (int round = 0; round < 3; ++round) {
    CHECK(runtime.submit(stopping, repeat_until_stop()).iterations() == 2);
    CHECK(runtime.submit(failing, repeat(4)).status() == Status::task_failed);
  }
  CHECK(notes.read()[0].wrong == 0);
}

TEST_CASE("drain mode: early tasks and dependent operands, checked and not") {
  for (const bool checked : {false, true}) {
    Options options = drained();
    options.check_operands = checked;
    options.check_budget = std::chrono::minutes(2);
    options.operand_pages = 4;
    Runtime runtime = start<Write, Check, Direct, Stored, Collect>(options);
    Stages stages(runtime, 12, 6000);
    const auto words = runtime.allocate<Stamped>(24);
    EarlyGraph early(runtime, words, {6, 4}, 3);
    runtime.submit(runtime.load(stages.graph, compiled), repeat(3)).wait();
    runtime.submit(runtime.load(early.graph, compiled), repeat(3)).wait();
    CHECK(stages.notes.read()[0].wrong == 0);
    CHECK(early.seen().wrong == 0);
    CHECK(early.seen().computes == 3 * 24);
  }
}

}  // namespace flywheel::testing
