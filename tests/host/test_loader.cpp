#include "host/load/loader.hpp"
#include "support/internals.hpp"

#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

Graph squares(std::uint32_t n) {
  Graph graph;
  for (std::uint32_t i = 0; i < n; ++i) graph.add(Square{i});
  return graph;
}

/// Every task of one layer waits for every task of the layer before.
Graph layers(std::uint32_t count, std::uint32_t width) {
  Graph graph;
  std::vector<TaskRef<std::uint64_t>> before;
  for (std::uint32_t layer = 0; layer < count; ++layer) {
    std::vector<TaskRef<std::uint64_t>> now;
    for (std::uint32_t i = 0; i < width; ++i) {
      now.push_back(graph.add(Square{i}));
      for (const auto& b : before) graph.edge(b, now.back());
    }
    before = now;
  }
  return graph;
}

/// For dynamic and phased graphs alone.
struct NeverCompiled {
  static constexpr bool kCompiled = false;
  std::uint32_t value;
  template <class Block>
  FLYWHEEL_TASK std::uint32_t operator()(Block&) const {
    return value;
  }
};

/// A function of its type throws when it is added.
struct NeverAdded : NeverCompiled {
  template <class Note>
  void buffers(Note&&) const {
    throw 17;
  }
};

std::string capacity_error(Runtime& runtime, const Graph& graph) {
  return error_of<CapacityError>([&] { runtime.load(graph); });
}

}  // namespace

TEST_CASE("no room for tasks names max_tasks, and room comes back with the executable") {
  Options options = on_cpu();
  options.max_tasks = 100;
  Runtime runtime = small_runtime(options);
  check_says(capacity_error(runtime, squares(101)), {"101", "tasks", "Options::max_tasks from 100 to 201"});
  Executable most = runtime.load(squares(90));
  check_says(capacity_error(runtime, squares(20)), {"20", "tasks", "Options::max_tasks from 100 to 120"});
  most = Executable();
  CHECK(runtime.load(squares(100)).size() == 100);
}

TEST_CASE("no room for edges names max_edges, and takes nothing") {
  Options options = on_cpu();
  options.max_edges = 64;
  Runtime runtime = small_runtime(options);
  check_says(capacity_error(runtime, layers(2, 8)), {"72", "edges", "Options::max_edges from 64 to 136"});
  const Executable some = runtime.load(layers(2, 5));  // 25 and 5 roots
  check_says(capacity_error(runtime, layers(2, 6)), {"42", "edges", "Options::max_edges"});
  CHECK(runtime.load(layers(2, 5)).size() == 10);
}

TEST_CASE("no room for executables names max_executables") {
  Options options = on_cpu();
  options.max_executables = 3;
  Runtime runtime = small_runtime(options);
  std::vector<Executable> loaded;
  for (int i = 0; i < 3; ++i) loaded.push_back(runtime.load(squares(1)));
  check_says(capacity_error(runtime, squares(1)), {"executables", "Options::max_executables from 3 to 4"});
  loaded.pop_back();
  CHECK(runtime.load(squares(1)).size() == 1);
}

TEST_CASE("graphs without tasks or edges in the arenas need no room there, and give back none") {
  Options options = on_cpu();
  options.max_tasks = options.max_edges = 2;
  Runtime runtime = small_runtime(options);
  Graph phased;
  phased.add(Square{1});
  phased.phase();
  const Executable first = runtime.load(squares(1));
  {
    const Executable second = runtime.load(squares(1)), none = runtime.load(squares(8), compiled);
    check_says(capacity_error(runtime, squares(1)), {"1 more tasks", "Options::max_tasks"});
    CHECK(runtime.submit(none).status() == Status::ok);
  }
  const Executable no_edges = runtime.load(phased);
  CHECK(runtime.submit(no_edges).status() == Status::ok);
  check_says(capacity_error(runtime, squares(1)), {"1 more tasks", "Options::max_tasks"});
}

TEST_CASE("a graph that could overflow a ready queue names queue_capacity") {
  Options options = on_cpu();
  options.queue_capacity = 128;
  options.spawn_capacity = 64;
  Runtime runtime = small_runtime(options);
  check_says(capacity_error(runtime, squares(65)),
             {"65 tasks", "64 records", "rounded up to a power of two", "together 129", "holds 128",
              "Options::queue_capacity to 256", "Options::spawn_capacity to at most 32"});
  check_says(capacity_error(runtime, squares(127)), {"Options::queue_capacity to 256", "Options::spawn_capacity to at most 1"});
  const std::string too_many = capacity_error(runtime, squares(128));
  check_says(too_many, {"128 tasks", "Options::queue_capacity to 256"});
  CHECK(too_many.find("at most") == std::string::npos);
  Run run = runtime.submit(runtime.load(squares(64)));
  CHECK(run.status() == Status::ok);
}

TEST_CASE("results that do not fit name result_bytes") {
  Options options = on_cpu();
  options.result_bytes = 128;
  Runtime runtime = small_runtime(options);
  check_says(capacity_error(runtime, squares(17)), {"136 bytes", "Options::result_bytes from 128 to that"});
  CHECK(runtime.load(squares(16)).size() == 16);
}

TEST_CASE("a task that is placed needs a plan") {
  Runtime runtime = small_runtime(on_cpu());
  Graph graph = squares(3);
  const auto placed = graph.add(Square{3});
  graph.place(placed, 999);
  check_says(error_of<GraphError>([&] { runtime.load(graph); }), {"task 3", "worker 999", "`compiled`", "Graph::place()"});
}

TEST_CASE("a type with kCompiled = false runs in dynamic and phased graphs, and is named when a graph with it is compiled") {
  Runtime runtime = start<Square, NeverCompiled>(on_cpu());
  Graph graph = squares(3);
  const auto task = graph.add(NeverCompiled{17}), more = graph.add(NeverCompiled{18});
  Run dynamic = runtime.submit(runtime.load(graph));
  CHECK(dynamic.get(task) == 17);
  CHECK(dynamic.get(more) == 18);
  check_says(error_of<GraphError>([&] { runtime.load(graph, compiled); }),
             {"task 3", "NeverCompiled", "kCompiled = false", "without `compiled`"});
  Graph moved = std::move(graph);
  check_says(error_of<GraphError>([&] { runtime.load(moved, compiled); }), {"task 3"});
  graph = squares(3);
  CHECK_THROWS_AS(graph.add(NeverAdded{}), int);  // and leaves nothing behind
  graph.add(Square{4});
  CHECK(runtime.submit(runtime.load(graph, compiled)).status() == Status::ok);

  Graph phased;
  const auto first = phased.add(NeverCompiled{19});
  phased.phase();
  const auto second = phased.add(Square{5});
  Run run = runtime.submit(runtime.load(phased));
  CHECK(run.get(first) == 19);
  CHECK(run.get(second) == 25);
}

TEST_CASE("a null buffer is found by load() and named") {
  Runtime runtime = small_runtime(on_cpu());
  auto word = runtime.allocate<std::uint32_t>(1);
  Graph graph;
  graph.add(Square{1});
  graph.add(Count{word.data()});
  graph.add(Count{nullptr});
  check_says(error_of<GraphError>([&] { runtime.load(graph); }),
             {"task 2 (flywheel::testing::Count)", "buffer 'word'", "null", "Runtime::allocate()"});
}

TEST_CASE("an executable lives as long as its last run, whatever is loaded meanwhile") {
  Options options = on_cpu();
  options.max_tasks = 8;
  Bench bench(options);
  Executable held;
  Run run = bench.hold(0, held);
  held = Executable();
  for (int i = 0; i < 50; ++i) {
    Graph graph;
    for (int k = 0; k < 7; ++k) graph.add(Count{bench.at(2)});
    bench.runtime.submit(bench.runtime.load(graph)).wait();
  }
  check_says(capacity_error(bench.runtime, squares(8)), {"Options::max_tasks"});  // the gate's task is still there
  bench.put(1, 1);
  run.wait();
  CHECK(bench.get(0) == 1);
  CHECK(bench.get(2) == 350);
  run = Run();
  CHECK(bench.runtime.load(squares(8)).size() == 8);
}
