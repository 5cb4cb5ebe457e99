#include "host/plan/graph.hpp"

#include "host/load/loaded_graph.hpp"
#include "host/plan/graph_cycle.hpp"
#include "support/internals.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

struct GraphStranger {  // not in the runtime's list
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

/// What add() asks of it throws.
struct Raises {
  std::uint32_t* word;
  bool from_buffers;
  template <class Block>
  FLYWHEEL_TASK std::uint64_t operator()(Block&) const {
    return 0;
  }
  template <class F>
  void buffers(F&& f) const {
    f("word", word);
    if (from_buffers) throw std::runtime_error("buffers()");
  }
  double cost_ns() const { throw std::runtime_error("cost_ns()"); }
};

Bench& graph_bench() {
  static Bench shared(on_cpu());
  return shared;
}

std::string load_error(const Graph& graph) {
  return error_of<GraphError>([&] { graph_bench().runtime.load(graph); });
}

/// A ring of n tasks that begins at `first`, behind that many tasks of no ring.
Graph ring(std::uint32_t first, std::uint32_t n) {
  Graph graph;
  std::vector<TaskRef<std::uint64_t>> tasks;
  for (std::uint32_t i = 0; i < first + n; ++i) tasks.push_back(graph.add(Square{i}));
  for (std::uint32_t i = 0; i < n; ++i) graph.edge(tasks[first + i], tasks[first + (i + 1) % n]);
  for (std::uint32_t i = 0; i < first; ++i) graph.edge(tasks[first], tasks[i]);
  return graph;
}

}  // namespace

TEST_CASE("a cycle is refused and every task of it named") {
  for (const std::uint32_t n : {1u, 2u, 3u, 7u, 40u}) {
    const std::string message = load_error(ring(2, n));
    check_says(message, {"cycle", "Remove one of these dependencies"});
    for (std::uint32_t i = 2; i < 2 + n; ++i) {
      const std::string next = std::to_string(i) + " (flywheel::testing::Square)";
      check_says(message, {next + " -> "});
    }
    CHECK(message.find(" 1 (flywheel") == std::string::npos);  // it only waits for the ring
  }
}

TEST_CASE("the order of a cycle's tasks is that of its edges") {
  Graph graph;
  const auto a = graph.add(Square{0}), b = graph.add(Square{1}), c = graph.add(Square{2});
  graph.edge(a, c);
  graph.edge(c, b);
  graph.edge(b, a);
  const std::string cycle = find_cycle(graph);
  // Read from any of its tasks on, it goes 0 -> 2 -> 1 -> 0.
  const auto position = [&](int task) { return cycle.find(std::to_string(task) + " ("); };
  const std::size_t at[] = {position(0), position(2), position(1)};
  const bool in_order =
      (at[0] < at[1] && at[1] < at[2]) || (at[1] < at[2] && at[2] < at[0]) || (at[2] < at[0] && at[0] < at[1]);
  INFO(cycle);
  CHECK(in_order);
}

TEST_CASE("a cycle is told with the stages of its tasks") {
  Graph graph;
  graph.stage("there");
  const auto a = graph.add(Square{0});
  graph.stage("back");
  const auto b = graph.add(Square{1});
  graph.edge(a, b);
  graph.edge(b, a);
  check_says(load_error(graph),
             {"task 0 (flywheel::testing::Square, stage there)", "task 1 (flywheel::testing::Square, stage back)"});
}

TEST_CASE("a graph without cycles is not blamed for its diamonds") {
  Graph graph;
  auto top = graph.add(Square{0});
  for (std::uint32_t i = 0; i < 20; ++i) {
    const auto left = graph.add(Square{1}, after(top)), right = graph.add(Square{2}, after(top, top));
    top = graph.add(Square{3}, after(left, right, left));
  }
  CHECK(find_cycle(graph).empty());
  Run run = graph_bench().runtime.submit(graph_bench().runtime.load(graph));
  CHECK(run.get(top) == 9);
}

TEST_CASE("dependencies on another graph are refused") {
  Graph one, other;
  const auto task = one.add(Square{1});
  const auto stranger = other.add(Square{2});
  check_says(error_of<GraphError>([&] { other.add(Square{3}, after(task)); }), {"Square", "another graph"});
  check_says(error_of<GraphError>([&] { one.edge(task, stranger); }), {"another graph"});
  check_says(error_of<GraphError>([&] { one.edge(stranger, task); }), {"another graph"});
  CHECK(other.size() == 1);
}

TEST_CASE("what is left of a graph that was moved is a new graph") {
  Graph first;
  const auto task = first.add(Square{3});
  Graph moved = std::move(first);
  check_says(error_of<GraphError>([&] { first.edge(task, task); }), {"another graph"});
  check_says(error_of<GraphError>([&] { first.add(Square{4}, after(task)); }), {"another graph"});
  check_says(load_error(first), {"no tasks"});
  const auto other = first.add(Square{5});
  Run run = graph_bench().runtime.submit(graph_bench().runtime.load(moved)),
      own = graph_bench().runtime.submit(graph_bench().runtime.load(first));
  CHECK(run.get(task) == 9);
  CHECK(own.get(other) == 25);
  check_says(error_of<UsageError>([&] { own.get(task); }), {"another graph"});
  first.phase();
  moved = std::move(first);
  CHECK(first.phase_count() == 0);
  CHECK(first.result_bytes() == 0);
  CHECK(moved.phase_count() == 2);
}

TEST_CASE("phases and dependencies do not mix") {
  Graph phased;
  const auto first = phased.add(Square{1});
  phased.phase();
  const auto second = phased.add(Square{2});
  check_says(error_of<GraphError>([&] { phased.add(Square{3}, after(first)); }), {"phased graph", "leave out"});
  check_says(error_of<GraphError>([&] { phased.edge(first, second); }), {"phased graph"});
  Graph edged;
  edged.add(Square{2}, after(edged.add(Square{1})));
  check_says(error_of<GraphError>([&] { edged.phase(); }), {"phase()", "one or the other"});
  check_says(error_of<GraphError>([&] { edged.add_grid(Square{1}); }), {"phase()"});
}

TEST_CASE("phase() where nothing was added makes no empty phase") {
  Graph graph;
  graph.phase();
  graph.phase();
  const auto a = graph.add(Square{3});
  graph.phase();
  graph.phase();
  const auto b = graph.add(Square{4});
  graph.phase();
  Run run = graph_bench().runtime.submit(graph_bench().runtime.load(graph));
  CHECK(run.get(a) == 9);
  CHECK(run.get(b) == 16);
}

TEST_CASE("an empty graph and an unknown task type are refused") {
  check_says(load_error(Graph()), {"no tasks", "add()"});
  Graph phases;
  phases.phase();
  check_says(load_error(phases), {"no tasks"});
  Graph graph;
  graph.add(GraphStranger{});
  check_says(load_error(graph), {"GraphStranger", "flywheel::start<...>()"});
}

TEST_CASE("parameters are aligned and limited") {
  Graph graph;
  graph.param<char>('a');
  CHECK(graph.param<std::uint64_t>(1).offset == 8);
  CHECK(graph.param<char>('b').offset == 16);
  CHECK(graph.param<std::uint32_t>(2).offset == 20);
  Graph full;
  for (std::size_t i = 0; i < kParamBytes / 8; ++i) full.param<std::uint64_t>();
  check_says(error_of<CapacityError>([&] { full.param<char>(); }), {std::to_string(kParamBytes), "device buffer"});
}

TEST_CASE("results of more than 4 GiB are refused by name, and do not begin again at 0") {
  struct Answer {};
  ResultLayout layout;
  constexpr std::uint64_t kFit = (std::uint64_t{1} << 32) / 64 - 1;
  for (std::uint64_t i = 0; i < kFit; ++i) layout.add(64, 16, typeid(Answer));
  CHECK(layout.bytes() == 64 * kFit);
  check_says(error_of<CapacityError>([&] { layout.add(64, 16, typeid(Answer)); }),
             {"Answer", "4294967296 bytes", "split the graph"});
  CHECK(layout.bytes() == 64 * kFit);
  CHECK(layout.add(4, 4, typeid(Answer)) == 64 * kFit);
}

TEST_CASE("a task whose own functions throw is not added") {
  Graph graph, phased;
  const auto first = graph.add(Square{2});
  const std::uint64_t results = graph.result_bytes();
  for (const bool from_buffers : {true, false}) {
    const std::string name = from_buffers ? "buffers()" : "cost_ns()";
    CHECK(error_of<std::runtime_error>([&] { graph.add(Raises{nullptr, from_buffers}, after(first)); }) == name);
    CHECK(graph.size() == 1);
    CHECK(graph.buffers().empty());
    CHECK(graph.result_bytes() == results);
  }
  const auto second = graph.add(Square{3}, after(first));
  CHECK(graph_bench().runtime.submit(graph_bench().runtime.load(graph)).get(second) == 9);
  CHECK(error_of<std::runtime_error>([&] { phased.add_grid(Raises{nullptr, true}); }) == "buffers()");
  CHECK(phased.size() == 0);
  CHECK(phased.phase_count() == 0);
  const auto plain = phased.add(Square{4});
  phased.add(Square{5}, after(plain));  // it is no phased graph
  CHECK(graph_bench().runtime.submit(graph_bench().runtime.load(phased)).get(plain) == 16);
}

TEST_CASE("a task that was refused takes no room among the results") {
  Graph graph, other;
  const auto foreign = other.add(Square{1});
  CHECK(error_of<GraphError>([&] { graph.add(Square{2}, after(foreign)); }) != "");
  CHECK(graph.size() == 0);
  CHECK(graph.result_bytes() == 0);
}

TEST_CASE("after() takes tasks and ranges of them, in any mixture") {
  Graph graph;
  std::vector<TaskRef<std::uint64_t>> many;
  for (std::uint32_t i = 0; i < 3; ++i) many.push_back(graph.add(Square{i}));
  const std::array<TaskRef<std::uint64_t>, 2> two{graph.add(Square{3}), graph.add(Square{4})};
  const auto one = graph.add(Square{5});
  const auto all = graph.add(Square{6}, after(many, one, two));
  const auto none = graph.add(Square{7}, after(std::vector<TaskRef<>>{}));
  CHECK(graph.nodes()[all.index].predecessors == std::vector<std::uint32_t>{0, 1, 2, 5, 3, 4});
  CHECK(graph.nodes()[none.index].predecessors.empty());
  CHECK(graph.nodes()[graph.add(Square{8}, after()).index].predecessors.empty());
}

TEST_CASE("what is said of a task names its stage") {
  Graph graph;
  graph.add(Square{0});
  graph.stage("qkv");
  const auto first = graph.add(Square{1}), second = graph.add(Square{2}, after(first));
  graph.stage("");
  graph.add(Square{3}, after(second));
  graph.stage("qkv");  // goes on
  graph.add(Square{4});
  const Executable loaded = graph_bench().runtime.load(graph);
  CHECK(loaded.loaded()->task_name(0) == "task 0 (flywheel::testing::Square)");
  CHECK(loaded.loaded()->task_name(2) == "task 2 (flywheel::testing::Square, stage qkv)");
  CHECK(loaded.loaded()->task_name(3) == "task 3 (flywheel::testing::Square)");
  CHECK(loaded.loaded()->task_name(4) == "task 4 (flywheel::testing::Square, stage qkv)");
  graph.place(second, 0);
  check_says(load_error(graph), {"task 2 (flywheel::testing::Square, stage qkv)"});
}

TEST_CASE("a graph as Graphviz reads it: tasks, edges, and frames around stages and phases") {
  Graph graph;
  const auto first = graph.add(Square{0});
  graph.stage("a \"b\"");
  graph.add(Square{1}, after(first));
  CHECK(graph.to_dot() ==
        "digraph {\n  node [shape=box]\n"
        "  t0 [label=\"0 flywheel::testing::Square\"]\n"
        "  subgraph cluster_0 {\n  label=\"a \\\"b\\\"\"\n"
        "  t1 [label=\"1 flywheel::testing::Square\"]\n  }\n"
        "  t0 -> t1\n}\n");
  Graph phases;
  phases.add(Square{0});
  phases.phase();
  phases.add(Square{1});
  check_says(phases.to_dot(), {"label=\"phase 0\"", "label=\"phase 1\""});
}
