// Operands on CPU workers: every byte as packed, in the order of use, whatever the sizes and whatever a
// compute part leaves untouched.
#include "runtime/compiled/operands.hpp"
#include "support/internals.hpp"

#include "support/operand_mistakes.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

constexpr std::uint32_t kSizes[] = {
    1, 15, 16, 127, 128, 129, kPageBytes - 1, kPageBytes, kPageBytes + 1, 2 * kPageBytes, 2 * kPageBytes + 1, 200000};

struct Fixture {
  Runtime runtime = start<Packed, Count, Fail>(on_cpu(3));
  Buffer<OperandNotes> notes = runtime.allocate<OperandNotes>(1);
  std::uint64_t expected = 0;  // the sum over one pass

  Packed packed(std::uint32_t bytes, Walk walk = Walk::all) {
    const Packed task{notes.data(), next_seed_++, bytes, walk};
    if (walk != Walk::none && walk != Walk::half) expected += operand_sum(task.seed, bytes);
    return task;
  }
  OperandNotes seen() const { return notes.read()[0]; }
  void check(std::uint32_t tasks, std::uint32_t passes) const {
    const OperandNotes got = seen();
    CHECK(got.wrong == 0);
    CHECK(got.portable == 0);
    CHECK(got.computes == tasks * passes);
    CHECK(got.sum == expected * passes);
  }

 private:
  std::uint32_t next_seed_ = 1;
};

}  // namespace

TEST_CASE("a task's operands fill whole pages but for the last") {
  for (const auto& [bytes, pages] : std::initializer_list<std::pair<std::uint32_t, std::uint32_t>>{
           {0, 0}, {1, 1}, {26623, 1}, {26624, 1}, {26625, 2}, {53248, 2}, {200000, 8}}) {
    CHECK(pages_of(bytes) == pages);
    CHECK(pages_of(padded_operands(bytes)) == pages);  // the loader counts padded bytes
    std::vector<unsigned char> memory(bytes);
    CpuOperands operands(memory.data(), bytes);
    for (std::uint32_t page = 0; page < pages; ++page) CHECK(operands.consumer_wait() == memory.data() + page * kPageBytes);
    CHECK(operands.consumer_wait() == nullptr);
    CHECK(operands.consumer_wait() == nullptr);
  }
  CHECK(padded_operands(1) == 128);
  CHECK(padded_operands(128) == 128);
  CHECK(padded_operands(129) == 256);
}

TEST_CASE_METHOD(Fixture, "operands of every size come in full, over passes and runs") {
  Graph graph;
  for (const std::uint32_t bytes : kSizes) graph.add(packed(bytes));
  const Executable executable = runtime.load(graph, compiled);
  CHECK(seen().computes == 0);
  for (const std::uint32_t passes : {1u, 4u, 2u}) runtime.submit(executable, repeat(passes)).wait();
  check(std::size(kSizes), 7);
}

TEST_CASE_METHOD(Fixture, "tasks of one worker take their operands in the order they run in, not that of add()") {
  Graph graph;
  std::vector<TaskRef<>> tasks;
  for (int round = 0; round < 3; ++round)
    for (const std::uint32_t bytes : kSizes) tasks.push_back(graph.add(packed(bytes)));
  for (const TaskRef<>& task : tasks) graph.place(task, 1);
  for (std::size_t i = 1; i < tasks.size(); ++i) graph.edge(tasks[i], tasks[i - 1]);  // the last is the first to run
  runtime.submit(runtime.load(graph, compiled), repeat(3)).wait();
  check(static_cast<std::uint32_t>(tasks.size()), 3);
}

TEST_CASE_METHOD(Fixture, "what a compute part does not take is not the next task's") {
  Graph graph;
  std::uint32_t tasks = 0;
  std::vector<TaskRef<>> placed;
  for (const Walk walk : {Walk::none, Walk::all, Walk::half, Walk::late, Walk::all, Walk::none, Walk::all})
    for (const std::uint32_t bytes : {1u, 16385u, 70000u}) {
      Packed task = packed(bytes, walk);
      if (walk == Walk::half)
        for (std::uint32_t at = 0; at < pages_of(bytes) / 2 * kPageBytes; ++at)
          expected += std::uint64_t{operand_byte(task.seed, at)} * (at + 1);
      placed.push_back(graph.add(task));
      ++tasks;
    }
  for (const TaskRef<>& task : placed) graph.place(task, 2);
  runtime.submit(runtime.load(graph, compiled), repeat(5)).wait();
  check(tasks, 5);
}

TEST_CASE_METHOD(Fixture, "without `compiled` the portable body runs, and operands are not packed") {
  Graph graph;
  for (const std::uint32_t bytes : kSizes) graph.add(packed(bytes));
  runtime.submit(runtime.load(graph), repeat(2)).wait();
  CHECK(seen().portable == 2 * std::size(kSizes));
  CHECK(seen().computes == 0);
}

TEST_CASE_METHOD(Fixture, "skipped tasks leave their operands alone; the next run finds its own") {
  Graph graph;
  Packed bad = packed(5000);
  bad.fail_at = 2;
  const auto failing = graph.add(bad);
  for (const std::uint32_t bytes : kSizes) graph.add(packed(bytes), after(failing));
  const std::uint32_t tasks = graph.size();
  const Executable executable = runtime.load(graph, compiled);
  for (std::uint32_t run = 1; run <= 10; ++run) {
    Run failed = runtime.submit(executable, repeat(6));
    CHECK(failed.status() == Status::task_failed);
    CHECK(failed.iterations() == 2);
    CHECK(seen().computes == (run - 1) * (4 * tasks + 1) + 2 * tasks + 1);
    CHECK(runtime.submit(executable, repeat(2)).status() == Status::ok);
    CHECK(seen().wrong == 0);
  }
}

TEST_CASE_METHOD(Fixture, "several executables keep operands of their own, and give them back when dropped") {
  std::vector<Executable> kept;
  for (int round = 0; round < 4; ++round) {
    expected = 0;
    notes.write({OperandNotes{}});
    Graph graph;
    for (const std::uint32_t bytes : kSizes) graph.add(packed(bytes));
    kept.push_back(runtime.load(graph, compiled));
    runtime.submit(kept.back(), repeat(2)).wait();
    check(std::size(kSizes), 2);
  }
  notes.write({OperandNotes{}});
  for (const Executable& executable : kept) runtime.submit(executable).wait();
  CHECK(seen().wrong == 0);
  CHECK(seen().computes == kept.size() * std::size(kSizes));
}

TEST_CASE("operands are taken from the heap and given back: 300 loads of 700 KB fit into 16 MB") {
  Options options = on_cpu(2);
  options.heap_bytes = 16u << 20;
  Runtime runtime = start<Packed>(options);
  Buffer<OperandNotes> notes = runtime.allocate<OperandNotes>(1);
  constexpr std::uint32_t kLoads = 300;
  for (std::uint32_t i = 0; i < kLoads; ++i) {
    Graph graph;
    graph.add(Packed{notes.data(), i, 700'000});
    runtime.load(graph, compiled);
  }
  Graph graph;
  graph.add(Packed{notes.data(), 1, 12u << 20});  // one piece of most of the heap: nothing else can be left in it
  runtime.submit(runtime.load(graph, compiled)).wait();
  CHECK(notes.read()[0].wrong == 0);
  CHECK(runtime.stats().launches >= 1);
}

TEST_CASE("a CPU task that would go wrong on a GPU fails by name, and other runs go on") {
  Runtime runtime = start<Packed, Mistaken>(on_cpu(3));
  for (const Mistake mistake : {Mistake::keeps_one, Mistake::gives_another, Mistake::takes_another})
    for (const std::uint32_t bytes : {1u, 70'000u}) check_mistake(runtime, mistake, bytes);
  check_mistake(runtime, Mistake::takes_another, 0);
  check_mistake(runtime, Mistake::hoards, 17 * kPageBytes);
}

TEST_CASE("a CPU task that has failed with a code of its own may keep its pages") {
  Runtime runtime = start<Packed>(on_cpu(1));
  const auto notes = runtime.allocate<OperandNotes>(1);
  Graph graph;
  graph.add(Packed{notes.data(), 9, 40'000, Walk::hoards, 0, 0});
  Run run = runtime.submit(runtime.load(graph, compiled));
  CHECK(error_of<RunError>([&] { run.wait(); }).find("own code, 9") != std::string::npos);
}
