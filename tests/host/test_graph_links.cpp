#include "host/load/graph_links.hpp"
#include "support/internals.hpp"

#include <rapidcheck.h>

#include <set>

#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

using Refs = std::vector<TaskRef<std::uint64_t>>;
using Sets = std::vector<std::set<std::uint32_t>>;

/// No two tasks have the same, each is a successor of its task, and a task has none only if others have all its successors.
void check_awaited(const GraphLinks& links, const Sets& successors) {
  std::set<std::uint32_t> awaited;
  for (std::uint32_t task = 0; task < successors.size(); ++task) {
    if (links.awaited(task) == GraphLinks::kNone) continue;
    RC_ASSERT(successors[task].contains(links.awaited(task)));
    RC_ASSERT(awaited.insert(links.awaited(task)).second);
  }
  for (std::uint32_t task = 0; task < successors.size(); ++task)
    if (links.awaited(task) == GraphLinks::kNone)
      for (const std::uint32_t next : successors[task]) RC_ASSERT(awaited.contains(next));
}

void check_links(const GraphLinks& links, const Sets& successors, const Sets& predecessors) {
  std::uint32_t roots = 0;
  for (std::uint32_t task = 0; task < successors.size(); ++task) {
    const std::vector<std::uint32_t> wanted(successors[task].begin(), successors[task].end());
    const auto all = links.successors().subspan(links.first(task), links.count(task));
    RC_ASSERT(std::vector<std::uint32_t>(all.begin(), all.end()) == wanted);
    RC_ASSERT(predecessors_in(links.waits()[task]) == predecessors[task].size());
    RC_ASSERT(priority_in(links.waits()[task]) == static_cast<std::uint32_t>(Priority::low));
    roots += predecessors[task].empty();
  }
  RC_ASSERT(links.roots() == roots);
  check_awaited(links, successors);
}

/// A graph that is built at random, with its edges as sets beside it: dependencies of add(), of edge() to the last task
/// and, in every other graph, to earlier ones, in any order, some of them twice.
void build_and_check(GraphLinks& links) {
  Graph graph;
  Refs tasks;
  const auto count = *rc::gen::inRange(1u, 40u);
  const bool may_be_late = *rc::gen::arbitrary<bool>();
  Sets successors(count), predecessors(count);
  const auto note = [&](std::uint32_t before, std::uint32_t then) {
    successors[before].insert(then);
    predecessors[then].insert(before);
  };
  for (std::uint32_t task = 0; task < count; ++task) {
    Refs waits;
    for (const std::uint32_t before : *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange(0u, 40u)))
      if (before < task) waits.push_back(tasks[before]), note(before, task);
    tasks.push_back(graph.add(Square{task}, after(waits), Priority::low));
    for (const auto& [one, two] : *rc::gen::container<std::vector<std::pair<std::uint32_t, std::uint32_t>>>(
             rc::gen::pair(rc::gen::inRange(0u, 40u), rc::gen::inRange(0u, 40u))))
      if (one < two && (two == task || (may_be_late && two < task))) graph.edge(tasks[one], tasks[two]), note(one, two);
  }
  links.link(graph);
  check_links(links, successors, predecessors);
}

}  // namespace

TEST_CASE("links have each successor once and in order, whichever way the edges came") {
  GraphLinks links;  // one after the other in the same memory
  CHECK(rc::check("model of links", [&] { build_and_check(links); }));
}

TEST_CASE("a predecessor that is named twice counts once") {
  GraphLinks links;
  Graph graph;
  const auto a = graph.add(Square{0});
  std::vector<TaskRef<std::uint64_t>> many(20, a);
  graph.add(Square{1}, after(a, a));
  graph.add(Square{2}, after(many));
  links.link(graph);
  CHECK(links.edges() == 2);
  CHECK(predecessors_in(links.waits()[1]) == 1);
  CHECK(predecessors_in(links.waits()[2]) == 1);
}

TEST_CASE("predecessors in any order keep a graph on the straight way, also if one is named twice") {
  GraphLinks links;
  Graph graph;
  Refs tasks;
  for (std::uint32_t i = 0; i < 6; ++i) tasks.push_back(graph.add(Square{i}));
  const auto last = graph.add(Square{6}, after(tasks[5], tasks[1]));
  graph.edge(tasks[3], last);
  graph.edge(tasks[0], last);
  CHECK(graph.tasks().repeats().empty());
  links.link(graph);
  CHECK(predecessors_in(links.waits()[6]) == 4);
  CHECK(links.edges() == 4);
  graph.edge(tasks[5], last);  // larger than the one before it, and named before
  CHECK(graph.tasks().repeats() == std::vector<std::uint32_t>{6});
  graph.edge(tasks[1], last);
  CHECK(graph.tasks().repeats() == std::vector<std::uint32_t>{6});
  CHECK(graph.tasks().in_order());
  links.link(graph);
  CHECK(predecessors_in(links.waits()[6]) == 4);
  CHECK(links.edges() == 4);
}

TEST_CASE("a ring of neighbours has no repeats, and a long list out of order is looked through") {
  Graph ring;
  Refs before, now;
  for (std::uint32_t step = 0; step < 3; ++step, before = std::exchange(now, {}))
    for (std::uint32_t i = 0; i < 10; ++i) {
      now.push_back(ring.add(Square{i}));
      for (const std::uint32_t near : {i + 9, i, i + 1})
        if (step) ring.edge(before[near % 10], now[i]);
    }
  CHECK(ring.tasks().repeats().empty());
  GraphLinks links;
  links.link(ring);
  CHECK(links.edges() == 60);
  Graph fan;
  Refs all;
  for (std::uint32_t i = 0; i < 12; ++i) all.push_back(fan.add(Square{i}));
  fan.add(Square{12}, after(std::vector(all.rbegin(), all.rend())));
  CHECK(fan.tasks().repeats() == std::vector<std::uint32_t>{12});
  links.link(fan);
  CHECK(links.edges() == 12);
}

TEST_CASE("in a grid each point may await itself one step later, whichever way the edges came") {
  constexpr std::uint32_t kWidth = 9, kSteps = 5;
  for (const std::uint32_t reach : {0u, 1u, 3u})
    for (const bool around : {false, true})
      for (const bool in_order : {true, false}) {
        Graph graph;
        Refs before, now;
        for (std::uint32_t step = 0; step < kSteps; ++step, before = std::exchange(now, {}))
          for (std::uint32_t i = 0; i < kWidth; ++i) {
            now.push_back(graph.add(Square{i}));
            std::set<std::uint32_t> near;
            for (std::uint32_t at = i + kWidth - reach; at <= i + kWidth + reach; ++at)
              if (around || at / kWidth == 1) near.insert(at % kWidth);
            for (const std::uint32_t n : near)
              if (step) graph.edge(before[n], now[i]);
          }
        if (!in_order) graph.edge(before[0], before[1]);
        CHECK(graph.tasks().in_order() == in_order);
        GraphLinks links;
        links.link(graph);
        for (std::uint32_t task = 0; task + kWidth < kWidth * kSteps; ++task) {
          INFO("reach " << reach << ", around " << around << ", in order " << in_order << ", task " << task);
          CHECK(links.awaited(task) == task + kWidth);
        }
      }
}

TEST_CASE("edges that go back are refused only if they close a cycle") {
  GraphLinks links;
  Graph graph;
  const auto a = graph.add(Square{0}), b = graph.add(Square{1}), c = graph.add(Square{2}, after(a));
  graph.edge(c, b);
  links.link(graph);
  CHECK(links.roots() == 1);
  graph.edge(b, a);
  check_says(error_of<GraphError>([&] { links.link(graph); }), {"cycle", "task 0", "task 1", "task 2"});
  Graph itself;
  const auto self = itself.add(Square{0});
  itself.edge(self, self);
  check_says(error_of<GraphError>([&] { links.link(itself); }), {"task 0", "-> task 0"});
}
