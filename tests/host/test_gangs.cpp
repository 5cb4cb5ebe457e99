// Tasks that wait for each other while they run: where they are placed, what is refused, and that they do meet.
#include "support/schedule_graphs.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

struct GangNap {
  std::uint32_t* done;
  std::uint32_t ms;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    add_to(*done, 1u);
  }
};

std::string refusal(const Graph& graph, std::uint32_t workers) {
  return error_of<GraphError>([&] { make_schedule(graph, workers, compiled); });
}

/// `count` tasks of so many ns after one task, all on its worker unless placed elsewhere, because a hop takes longer than
/// they do.
Tasks add_after_one(Graph& graph, std::uint32_t count) {
  const Tasks first = add_works(graph, {1000}), all = add_works(graph, std::vector<double>(count, 1));
  for (const auto& task : all) graph.edge(first[0], task);
  return all;
}

std::vector<std::uint32_t> workers_of(const SchedulePlan& plan, const Tasks& tasks) {
  std::vector<std::uint32_t> workers;
  for (const auto& task : tasks) workers.push_back(plan.tasks[task.index].worker);
  std::sort(workers.begin(), workers.end());
  return workers;
}

}  // namespace

TEST_CASE("a gang takes a worker for each, be they ever so short") {
  Graph alone, gang;
  const Tasks one_by_one = add_after_one(alone, 4), together = add_after_one(gang, 4);
  gang.together(together);
  CHECK(workers_of(compile(alone, 5), one_by_one) == std::vector<std::uint32_t>(4, 0));
  CHECK(workers_of(compile(gang, 5), together) == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK(describe_schedule(compile(gang, 5), gang).find("together with 3") != std::string::npos);
}

TEST_CASE("those of a gang that are placed keep their place, and others go elsewhere") {
  Graph graph;
  const Tasks tasks = add_after_one(graph, 4);
  graph.place(tasks[2], 0);
  graph.place(tasks[3], 2);
  graph.together(tasks);
  const SchedulePlan plan = compile(graph, 4);
  CHECK(plan.tasks[tasks[2].index].worker == 0);
  CHECK(plan.tasks[tasks[3].index].worker == 2);
  CHECK(workers_of(plan, tasks) == std::vector<std::uint32_t>{0, 1, 2, 3});
}

TEST_CASE("a gang ranks as one task that takes as long as its longest") {
  Graph graph;
  graph.together(add_works(graph, {600, 600}));
  const Tasks longer = add_works(graph, {1000}), between = add_works(graph, {900});
  const SchedulePlan plan = compile(graph, 2);
  CHECK(plan.tasks[longer[0].index].place == 0);
  CHECK(plan.tasks[between[0].index].place == 0);
  CHECK(plan.makespan_ns == 1600);
}

TEST_CASE("gangs that are ready at the same time do not stand in each other's way") {
  Graph graph;
  std::vector<Tasks> gangs(6);
  for (std::uint32_t i = 0; i < 18; ++i) gangs[i % 6].push_back(graph.add(Work{1000.0 + 700 * (i % 5)}));
  for (const Tasks& gang : gangs) graph.together(gang);
  Random random(1);
  CHECK(PaperRun(compile(graph, 3), graph, 3).go(random).empty());
}

TEST_CASE("a gang that can never run together is refused with words") {
  Graph many, placed, ordered, around;
  many.together(add_after_one(many, 4));
  check_says(refusal(many, 3), {"4 tasks are to run together", "task 1 (", "3 workers", "Options::workers"});
  const Tasks same = add_placed(placed, {1, 0, 1});
  placed.together(same);
  check_says(refusal(placed, 3), {"task 0 (", "task 2 (", "worker 1", "Graph::place()"});
  const Tasks chain = add_works(ordered, {1, 1});
  ordered.edge(chain[0], chain[1]);
  ordered.together(chain);
  check_says(refusal(ordered, 3), {"can never begin", "task 0 (", "the other 1", "Remove a dependency"});
  const Tasks ring = add_works(around, {1, 1, 1});
  around.edge(ring[0], ring[2]);
  around.edge(ring[2], ring[1]);
  around.together(Tasks{ring[0], ring[1]});
  check_says(refusal(around, 3), {"can never begin", "task 0 ("});
}

TEST_CASE("a gang is named once, of tasks of its graph, and compiled") {
  Graph graph, other;
  const Tasks tasks = add_works(graph, {1, 1, 1}), strangers = add_works(other, {1});
  graph.together(Tasks{tasks[0], tasks[1]});
  check_says(error_of<GraphError>([&] {
               graph.together(Tasks{tasks[1], tasks[2]});
             }),
             {"task 1 (", "twice", "Graph::together()"});
  check_says(error_of<GraphError>([&] { graph.together(Tasks{tasks[2], tasks[1]}); }), {"task 1 (", "twice"});
  check_says(error_of<GraphError>([&] { graph.together(Tasks{tasks[2], tasks[2]}); }), {"task 2 (", "twice"});
  CHECK(compile(graph, 2).order[1].size() == 1);  // what was refused left nothing behind
  check_says(error_of<GraphError>([&] { graph.together(strangers); }), {"task 0", "another graph"});
  Runtime runtime = start<Work>(on_cpu());
  check_says(error_of<GraphError>([&] { runtime.load(graph); }), {"Graph::together()", "`compiled`"});
}

TEST_CASE("a gang of no tasks is none") {
  Bench bench(on_cpu());
  Graph graph;
  graph.add(Count{bench.at(0)});
  graph.together(std::vector<TaskRef<>>{});
  bench.runtime.submit(bench.runtime.load(graph)).wait();
  CHECK(bench.get(0) == 1);
}

TEST_CASE("gangs meet on CPU workers, pass after pass, with other work between them") {
  constexpr std::uint32_t kWorkers = 3, kGangs = 12, kPasses = 20;
  Runtime runtime = start<Meet, Count>(on_cpu(kWorkers));
  const auto words = runtime.allocate<std::uint32_t>(kGangs + 1);
  Graph graph;
  auto last = graph.add(Count{words.data()});
  for (std::uint32_t gang = 1; gang <= kGangs; ++gang) {
    const std::uint32_t count = 2 + gang % 2;
    std::vector<TaskRef<void>> tasks;
    for (std::uint32_t i = 0; i < count; ++i) tasks.push_back(graph.add(Meet{words.data() + gang, count}, after(last)));
    graph.together(tasks);
    if (gang % 3 == 0) last = graph.add(Count{words.data()}, after(tasks[0], tasks[1]));
  }
  CHECK(runtime.submit(runtime.load(graph, compiled), repeat(kPasses)).status() == Status::ok);
  const std::vector<std::uint32_t> seen = words.read();
  CHECK(seen[0] == kPasses * (1 + kGangs / 3));
  for (std::uint32_t gang = 1; gang <= kGangs; ++gang) CHECK(seen[gang] == kPasses * (2 + gang % 2));
}

TEST_CASE("a gang does not stall while a worker is still busy with short tasks of another run") {
  Options options = on_cpu();
  options.stall_limit = std::chrono::milliseconds(300);
  Runtime runtime = start<GangNap, Meet>(options);
  const auto words = runtime.allocate<std::uint32_t>(2);
  Graph naps, graph;
  for (int i = 0; i < 60; ++i) naps.add(GangNap{words.data(), i / 10 % 2 ? 100u : 1u});  // a worker takes several at once
  graph.together(Tasks{graph.add(Meet{words.data() + 1, 2}), graph.add(Meet{words.data() + 1, 2})});
  const Executable gang = runtime.load(graph, compiled);
  Run resting = runtime.submit(runtime.load(naps));
  REQUIRE(eventually([&] { return peek_at(words.data()[0]) > 2; }));
  Run meeting = runtime.submit(gang);
  CHECK(meeting.status() == Status::ok);
  resting.cancel();
  CHECK(resting.status() == Status::cancelled);
}

TEST_CASE("a gang ends at once when one of it fails, or is left out for a failure before it") {
  Runtime runtime = start<Meet, Fail>(on_cpu());
  const auto words = runtime.allocate<std::uint32_t>(1);
  Graph left_out;
  const auto fails = left_out.add(Fail{7, 0});
  const Tasks gang{left_out.add(Meet{words.data(), 100}), left_out.add(Meet{words.data(), 100})};
  left_out.edge(fails, gang[0]);
  left_out.together(gang);
  const Executable first = runtime.load(left_out, compiled);
  for (int round = 0; round < 3; ++round) {
    Run run = runtime.submit(first, repeat(5));
    REQUIRE(run.wait_for(std::chrono::seconds(10)));
    check_says(error_of<RunError>([&] { run.wait(); }), {"its own code, 7", "task 0 ("});
  }
  Graph again;
  again.together(Tasks{again.add(Fail{8, 0}), again.add(Meet{words.data(), 100})});
  Run run = runtime.submit(runtime.load(again, compiled));
  REQUIRE(run.wait_for(std::chrono::seconds(10)));
  check_says(error_of<RunError>([&] { run.wait(); }), {"its own code, 8", "task 0 ("});
}

TEST_CASE("a gang whose partner never ends is named when all have begun") {
  Options options = on_cpu();
  options.stall_limit = std::chrono::milliseconds(100);
  options.log_level = "off";
  Runtime runtime = start<Meet>(options);
  const auto words = runtime.allocate<std::uint32_t>(1);
  Graph graph;
  graph.together(Tasks{graph.add(Meet{words.data(), 3}), graph.add(Meet{words.data(), 3})});
  Run run = runtime.submit(runtime.load(graph, compiled));
  REQUIRE(run.wait_for(std::chrono::seconds(20)));
  CHECK(run.status() == Status::worker_stalled);
}
