// The GPU's kernel on an emulated GPU: dependent operands, fetched into pages once their tasks' turn has come.
#include "support/dependent_tasks.hpp"
#include "support/emulated_bench.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

struct FetchWay {
  bool bulk;
  std::uint32_t pages, window;
};

template <class Action>
void each_fetch_way(Action&& action) {
  for (const FetchWay way :
       {FetchWay{true, 4, 4}, FetchWay{true, 5, 4}, FetchWay{true, 5, 5}, FetchWay{false, 4, 4}, FetchWay{false, 5, 5}}) {
    INFO((way.bulk ? "bulk copies, " : "cp.async, ") << way.pages << " pages, window " << way.window);
    Options options = emulated_options();
    options.operand_pages = way.pages;
    options.tuning.operand_window = way.window * kPageBytes;
    options.tuning.bulk_copies = way.bulk;
    Runtime runtime = start_emulated<Write, Check, Count>(options);
    INFO(runtime.device());
    action(runtime);
  }
}

}  // namespace

TEST_CASE("kernel, dependents: pages hold what the predecessors of this pass wrote") {
  each_fetch_way([](Runtime& runtime) {
    Stages stages(runtime, 12, 12800);  // up to two pages a piece
    const Executable executable = runtime.load(stages.graph, compiled);
    for (const std::uint32_t passes : {1u, 4u, 2u}) runtime.submit(executable, repeat(passes)).wait();
    CHECK(stages.notes.read()[0].wrong == 0);
    CHECK(stages.notes.read()[0].computes == 7 * 12);
  });
}

TEST_CASE("kernel, dependents: a trace counts constants and what other tasks wrote") {
  Options options = emulated_options();
  options.trace_events = 64;
  Runtime runtime = start_emulated<Write, Check>(options);
  Stages stages(runtime, 3, 12800);
  Run run = runtime.submit(runtime.load(stages.graph, compiled), traced, repeat(2));
  const auto kib = [](std::uint32_t bytes) { return (bytes + 1023) / 1024; };
  std::uint32_t checked = 0;
  for (const TraceSpan& span : run.trace().spans()) {
    if (span.kind != TraceKind::body || span.task % 3 != 2) continue;
    const Check& task = stages.checks[span.task / 3];
    ++checked;
    CHECK(span.bytes_kib == kib(task.constants) + kib((task.counts[0] + task.counts[1]) * 4));
  }
  CHECK(checked == 3 * 2);
}

TEST_CASE("kernel, dependents: a writer fails, its reader does not run, and the next run is right") {
  each_fetch_way([](Runtime& runtime) {
    Stages failing(runtime, 6, 10000, 1), clean(runtime, 5, 10000);
    const Executable bad = runtime.load(failing.graph, compiled), good = runtime.load(clean.graph, compiled);
    for (int i = 0; i < 3; ++i) {
      CHECK(runtime.submit(bad, repeat(3)).status() == Status::task_failed);
      CHECK(runtime.submit(good, repeat(2)).status() == Status::ok);
    }
    CHECK(failing.notes.read()[0].wrong == 0);
    CHECK(clean.notes.read()[0].wrong == 0);
    CHECK(clean.notes.read()[0].computes == 30);
  });
}

TEST_CASE("kernel, dependents: a task that names more pages than it said fails by name, and too many are refused") {
  Options options = emulated_options();
  options.operand_pages = 4;
  options.tuning.operand_window = 4 * kPageBytes;
  Runtime runtime = start_emulated<Write, Check>(options);
  const auto words = runtime.allocate<std::uint32_t>(5 * kPageBytes / 4);
  const auto notes = runtime.allocate<OperandNotes>(1);
  auto more = runtime.allocate<std::uint32_t>(1);
  const auto graph_of = [&](std::uint32_t count) {
    Graph graph;
    graph.add(Check{{words.data(), words.data()}, {8, count}, 1, 100, notes.data(), more.data()},
              after(graph.add(Write{words.data(), 8, 1})));
    return graph;
  };
  const Executable executable = runtime.load(graph_of(8), compiled);
  CHECK(runtime.submit(executable).status() == Status::ok);
  more.write({1});
  CHECK(runtime.submit(executable).status() == Status::operands_misnamed);
  more.write({0});
  CHECK(runtime.submit(executable).status() == Status::ok);
  check_says(error_of<CapacityError>([&] { runtime.load(graph_of(4 * kPageBytes / 4), compiled); }),
             {"task 1", "5 pages", "and 4 may be under way", "split the task: a worker has 4 pages"});
  options.tuning.operand_window = 2 * kPageBytes;
  Runtime narrow = start_emulated<Write, Check>(options);
  check_says(error_of<CapacityError>([&] { narrow.load(graph_of(2 * kPageBytes / 4), compiled); }),
             {"task 1", "3 pages", "and 2 may be under way",
              "set Options::tuning.operand_window to " + std::to_string(3 * kPageBytes)});
}
