// Choices, joins, loops and continuations on CPU workers, and what is refused.
#include "host/load/control_links.hpp"
#include "support/control_programs.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// Counts in a word, and chooses the cases of a mask.
struct Chooser {
  std::uint32_t* word;
  std::uint32_t cases;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) add_to(*word, 1u);
    for (std::uint32_t n = 0; n < 32; ++n)
      if (cases >> n & 1) block.choose(n);
  }
};
/// Counts, and begins its loop again until the word has reached `until`.
struct Turn {
  std::uint32_t* word;
  std::uint32_t until;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (add_to(*word, 1u) + 1 < until) block.again();
  }
};
/// Goes on until it is `until`, as its own continuation.
struct Onward {
  std::uint32_t* word;
  std::uint32_t until;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (add_to(*word, 1u) + 1 == until) return;
    if (!block.then(*this)) block.fail(1);
    if (!block.spawn(Count{word + 1})) block.fail(2);
  }
};
/// Fails when the word has reached `at`.
struct FailAt {
  std::uint32_t* word;
  std::uint32_t at;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (add_to(*word, 1u) + 1 == at) block.fail(6);
  }
};
struct ThenTwice {
  std::uint32_t* word;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const bool first = block.then(Count{word});
    const bool second = block.then(Count{word});
    if (!first || second) block.fail(3);
  }
};
/// Its continuation must not run if one that it spawned fails, nor what depends on it.
struct FailingChild {
  std::uint32_t* word;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (!block.then(Count{word})) block.fail(1);
    if (!block.spawn(Fail{9, 0})) block.fail(2);
    if (!block.spawn(Count{word + 1})) block.fail(2);
  }
};

struct Control {
  explicit Control(const Options& options = on_cpu(3))
      : runtime(start<Chooser, Turn, Onward, FailAt, ThenTwice, FailingChild, Count, Fail, Step, StepJoin, StepSprout, FibCall,
                      FibSum>(options)),
        words(runtime.allocate<std::uint32_t>(64)) {}
  std::uint32_t* at(std::size_t i) const { return words.data() + i; }
  std::uint32_t get(std::size_t i) { return peek_at(*at(i)); }
  std::vector<std::uint32_t> run(const Graph& graph, std::size_t count, std::uint32_t passes = 1) {
    words.write(std::vector<std::uint32_t>(64));
    runtime.submit(runtime.load(graph), repeat(passes)).wait();
    return {at(0), at(count)};
  }
  std::uint32_t code_of(const Graph& graph) {
    try {
      runtime.submit(runtime.load(graph)).wait();
    } catch (const RunError& error) {
      return error.status() == Status::task_failed ? error.user_code() : static_cast<std::uint32_t>(error.status());
    }
    return 0;
  }
  Runtime runtime;
  Buffer<std::uint32_t> words;
};
using Counts = std::vector<std::uint32_t>;

std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const GraphError& error) {
    return error.what();
  }
  return "";
}
bool names(const std::string& text, std::initializer_list<const char*> parts) {
  return std::ranges::all_of(parts, [&](const char* part) { return text.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("what is chosen runs, and what depends on the rest is passed over") {
  Control control;
  for (std::uint32_t mask = 0; mask < 8; ++mask) {
    Graph graph;
    const auto chooser = graph.add(Chooser{control.at(0), mask});
    std::vector<TaskRef<>> ends;
    for (std::uint32_t n = 0; n < 3; ++n) {
      const auto one = graph.add(Count{control.at(1 + n)}, when(chooser, n));
      ends.push_back(graph.add(Count{control.at(4 + n)}, after(one)));
    }
    graph.add(Count{control.at(7)}, after(ends));
    graph.add(Count{control.at(8)}, after_any(ends));
    graph.add(Count{control.at(9)}, after(chooser, when(chooser, 1)));
    graph.add(Count{control.at(10)}, after_any(when(chooser, 0), when(chooser, 2)));
    const std::uint32_t a = mask & 1, b = mask >> 1 & 1, c = mask >> 2;
    const Counts want{2, 2 * a, 2 * b, 2 * c, 2 * a, 2 * b, 2 * c, 2 * (a & b & c), 2 * (a | b | c), 2 * b, 2 * (a | c)};
    CAPTURE(mask);
    CHECK(control.run(graph, 11, 2) == want);
  }
}

TEST_CASE("a task that waits for several that choose runs if all do, or any") {
  Control control;
  for (std::uint32_t mask = 0; mask < 4; ++mask) {
    Graph graph;
    const auto a = graph.add(Chooser{control.at(0), mask & 1}), b = graph.add(Chooser{control.at(1), mask >> 1});
    graph.add(Count{control.at(2)}, after(when(a, 0), when(b, 0)));
    graph.add(Count{control.at(3)}, after_any(when(a, 0), when(b, 0)));
    graph.add(Count{control.at(4)}, after_any(when(a, 0), b));
    CAPTURE(mask);
    CHECK(control.run(graph, 5) == Counts{1, 1, mask == 3, mask != 0, 1});
  }
}

TEST_CASE("a loop runs until its last task lets it end") {
  Control control;
  Graph graph;
  const auto before = graph.add(Count{control.at(0)}), first = graph.add(Count{control.at(1)}, after(before));
  const auto left = graph.add(Count{control.at(2)}, after(first)), right = graph.add(Count{control.at(3)}, after(first));
  const auto last = graph.add(Turn{control.at(4), 500}, after(left, right));
  graph.loop(first, last);
  SECTION("with a task behind it") {
    graph.add(Count{control.at(5)}, after(last));
    CHECK(control.run(graph, 6) == Counts{1, 500, 500, 500, 500, 1});
  }
  SECTION("as the last tasks of the graph, among others") {
    for (int i = 0; i < 40; ++i) graph.add(Count{control.at(5)});
    CHECK(control.run(graph, 6) == Counts{1, 500, 500, 500, 500, 40});
  }
}

TEST_CASE("a loop of one task, and loops within loops") {
  Control control;
  Graph graph;
  const auto alone = graph.add(Turn{control.at(0), 7});
  graph.loop(alone, alone);
  const auto outer = graph.add(Count{control.at(1)}, after(alone)), inner = graph.add(Turn{control.at(2), 100}, after(outer));
  const auto last = graph.add(Turn{control.at(3), 5}, after(inner));
  graph.loop(inner, inner);
  graph.loop(outer, last);
  CHECK(control.run(graph, 4) == Counts{7, 5, 104, 5});
}

TEST_CASE("a continuation takes its task's place, again and again") {
  Control control;
  Graph graph;
  const auto onward = graph.add(Onward{control.at(0), 300});
  graph.add(Chooser{control.at(2), 0}, after(onward));
  CHECK(control.run(graph, 3) == Counts{300, 299, 1});
  check_fib(control.runtime, 10);
}

TEST_CASE("a failure before a continuation skips it and what depends on it") {
  Control control;
  Graph graph;
  const auto failing = graph.add(FailingChild{control.at(0)});
  graph.add(Count{control.at(2)}, after(failing));
  graph.add(Count{control.at(3)}, after_any(failing, graph.add(Count{control.at(4)})));
  CHECK(control.code_of(graph) == 9);
  CHECK(Counts{control.at(0), control.at(5)} == Counts{0, 1, 0, 0, 1});
}

TEST_CASE("a failure in a loop ends it") {
  Control control;
  Graph graph;
  const auto first = graph.add(Count{control.at(0)}), fails = graph.add(FailAt{control.at(1), 4}, after(first));
  const auto last = graph.add(Turn{control.at(2), ~0u}, after(fails));
  graph.loop(first, last);
  graph.add(Count{control.at(3)}, after(last));
  graph.add(Count{control.at(4)});
  CHECK(control.code_of(graph) == 6);
  CHECK(Counts{control.at(0), control.at(5)} == Counts{4, 4, 3, 0, 1});
}

TEST_CASE("a cancelled run leaves its loop") {
  Control control;
  Graph graph;
  const auto round = graph.add(Turn{control.at(0), ~0u});
  graph.loop(round, round);
  Run run = control.runtime.submit(control.runtime.load(graph));
  REQUIRE(eventually([&] { return control.get(0) > 100; }));
  run.cancel();
  CHECK_THROWS_AS(run.wait(), RunError);
}

TEST_CASE("mistakes in a body are named") {
  Control control;
  Graph twice, no_loop;
  twice.add(ThenTwice{control.at(0)});
  CHECK(control.code_of(twice) == static_cast<std::uint32_t>(Status::continued_twice));
  no_loop.add(Turn{control.at(1), ~0u});
  CHECK(control.code_of(no_loop) == static_cast<std::uint32_t>(Status::no_loop));
}

TEST_CASE("graphs that control cannot be in, and loops with several ways in or out, are refused") {
  Control control;
  Graph graph;
  const auto a = graph.add(Count{control.at(0)}), b = graph.add(Count{control.at(0)}, after(a)),
             c = graph.add(Count{control.at(0)}, after(b)), outside = graph.add(Count{control.at(0)});
  const auto load = [&] { control.runtime.load(graph); };
  CHECK(names(refusal_of([&] { when(a, 28); }), {"case 28", "0 to 27"}));
  SECTION("left on the way") {
    graph.add(Count{control.at(0)}, after(b));
    graph.loop(a, c);
    CHECK(names(refusal_of(load), {"task 4 (", "does not lead to the last"}));
  }
  SECTION("entered on the way") {
    graph.loop(a, c);
    graph.edge(outside, b);
    CHECK(names(refusal_of(load), {"task 1 (", "waits for task 3 ("}));
  }
  SECTION("the wrong way round") {
    graph.loop(c, a);
    CHECK(names(refusal_of(load), {"task 2 (", "does not lead to the last"}));
  }
  SECTION("apart") {
    graph.loop(outside, c);
    CHECK(names(refusal_of(load), {"task 3 (", "does not lead to the last"}));
  }
  SECTION("two loops with one end") {
    graph.loop(a, c);
    CHECK(names(refusal_of([&] { graph.loop(b, c); }), {"task 2 (", "ends two loops"}));
  }
  SECTION("compiled") {
    graph.add(Count{control.at(0)}, when(c, 0));
    CHECK(names(refusal_of([&] { control.runtime.load(graph, compiled); }), {"task 4 (", "when()", "`compiled`"}));
  }
  SECTION("compiled, with a loop") {
    graph.loop(a, c);
    CHECK(names(refusal_of([&] { control.runtime.load(graph, compiled); }), {"task 2 (", "Graph::loop()"}));
  }
  SECTION("after_any() of none says nothing") {
    Graph free, phased;
    free.add(Count{control.at(0)}, after_any(std::vector<TaskRef<>>{}));
    control.runtime.load(free, compiled);
    phased.phase();
    phased.add(Count{control.at(0)}, after_any(std::vector<TaskRef<>>{}));
    control.runtime.load(phased);
    CHECK(free.control().empty());
  }
  SECTION("phased") {
    Graph phased;
    phased.phase();
    const auto only = phased.add(Count{control.at(0)});
    CHECK(names(refusal_of([&] { phased.loop(only, only); }), {"phased"}));
  }
  SECTION("of another graph") {
    Graph other;
    CHECK(names(refusal_of([&] { other.add(Count{control.at(0)}, when(a, 0)); }), {"another graph"}));
    CHECK(names(refusal_of([&] { other.loop(a, a); }), {"another graph"}));
  }
}

TEST_CASE("a picture of a graph shows cases, joins and loops") {
  Graph graph;
  const auto a = graph.add(Count{nullptr}), b = graph.add(Count{nullptr}, after(when(a, 2), when(a, 3)));
  graph.add(Count{nullptr}, after_any(b, when(a, 0)));
  graph.loop(a, a);
  CHECK(names(graph.to_dot(), {"t0 -> t1 [label=\"case 2, 3\"]", "t1 -> t2 [style=dashed]",
                               "t0 -> t2 [style=dashed label=\"case 0\"]", "t0 -> t0 [label=again constraint=false]"}));
}

TEST_CASE("random programs leave what an interpreter says") {
  FLYWHEEL_TEST_SEED(seed);
  for (const std::uint32_t workers : {1, 2, 4}) {
    Options options = on_cpu(workers);
    options.spawn_capacity = workers == 2 ? 8 : 1024;
    options.tuning.keep_successor = workers != 4;
    Control control(options);
    check_programs(control.runtime, seed + workers, 40, 60);
  }
}
