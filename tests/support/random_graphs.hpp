// Random graphs: everything follows from one seed.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/atomics.hpp"
#include "support/graph_spec.hpp"

namespace flywheel::testing {

/// Random numbers that are the same on every machine.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() { return mix(state_, count_++); }
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(next() % n); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }
  /// 1 to `most`, each order of magnitude as likely as the next.
  std::uint32_t size_up_to(std::uint32_t most) {
    const double unit = static_cast<double>(next() >> 11) / static_cast<double>(std::uint64_t{1} << 53);
    return std::min(most, static_cast<std::uint32_t>(std::exp(unit * std::log(most + 1.0))));
  }

 private:
  std::uint64_t state_;
  std::uint64_t count_ = 0;
};

/// Predecessors have smaller numbers than their successors; `order` then hides that from the library.
class GraphMaker {
 public:
  static constexpr std::uint32_t kMostBefore = 60'000;

  /// `compiled`: without phases and spawns, which compiled graphs do not have.
  explicit GraphMaker(std::uint64_t seed, bool compiled = false) : dice_(seed), compiled_(compiled) { graph_.seed = seed; }

  GraphSpec make(std::uint32_t most_tasks) {
    const std::uint32_t n = dice_.size_up_to(most_tasks);
    using Shape = void (GraphMaker::*)(std::uint32_t);
    static constexpr struct {
      const char* name;
      Shape shape;
    } kShapes[] = {{"wide", &GraphMaker::wide},         {"deep", &GraphMaker::deep},     {"layered", &GraphMaker::layered},
                   {"diamonds", &GraphMaker::diamonds}, {"fan-in", &GraphMaker::fan_in}, {"fan-out", &GraphMaker::fan_out},
                   {"random", &GraphMaker::random},     {"tree", &GraphMaker::tree},     {"phased", &GraphMaker::phased}};
    const auto& chosen = kShapes[dice_.below(std::size(kShapes) - compiled_)];
    graph_.shape = chosen.name;
    (this->*chosen.shape)(n);
    give_features();
    shuffle();
    return std::move(graph_);
  }

 private:
  NodeSpec& node(const std::vector<std::uint32_t>& before = {}) {
    NodeSpec made;
    made.first_before = static_cast<std::uint32_t>(graph_.before.size());
    made.before_count = static_cast<std::uint32_t>(std::min<std::size_t>(before.size(), kMostBefore - graph_.before.size()));
    graph_.before.insert(graph_.before.end(), before.begin(), before.begin() + made.before_count);
    graph_.nodes.push_back(made);
    return graph_.nodes.back();
  }
  /// Some of the nodes first..end-1, perhaps one of them twice.
  std::vector<std::uint32_t> some(std::uint32_t first, std::uint32_t end, std::uint32_t most) {
    std::vector<std::uint32_t> picked(first == end ? 0 : dice_.below(most) + 1);
    for (std::uint32_t& p : picked) p = first + dice_.below(end - first);
    return picked;
  }
  static std::vector<std::uint32_t> all(std::uint32_t first, std::uint32_t end) {
    std::vector<std::uint32_t> list(end - first);
    std::iota(list.begin(), list.end(), first);
    return list;
  }

  void wide(std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) node();
  }
  void deep(std::uint32_t n) {
    const std::uint32_t chains = 1 + dice_.below(4);
    for (std::uint32_t i = 0; i < n; ++i) node(i < chains ? all(0, 0) : all(i - chains, i - chains + 1));
  }
  void layered(std::uint32_t n) {
    const std::uint32_t width = dice_.size_up_to(200);
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t layer = i / width;
      node(layer ? some((layer - 1) * width, layer * width, 4) : all(0, 0));
    }
  }
  void diamonds(std::uint32_t n) {
    const std::uint32_t width = 1 + dice_.size_up_to(64);
    std::uint32_t top = 0;
    node();
    while (graph_.size() < n) {
      const std::uint32_t first = graph_.size();
      for (std::uint32_t i = 0; i < width; ++i) node({top});
      top = graph_.size();
      node(all(first, top));
    }
  }
  void fan_in(std::uint32_t n) {
    const std::uint32_t sinks = 1 + dice_.below(3);
    for (std::uint32_t i = 0; i < n; ++i) node();
    for (std::uint32_t i = 0; i < sinks; ++i) node(all(0, n));
  }
  void fan_out(std::uint32_t n) {
    node();
    for (std::uint32_t i = 1; i < n; ++i) node({0});
  }
  void random(std::uint32_t n) {
    const std::uint32_t most = 1 + dice_.below(8), reach = dice_.size_up_to(n);
    for (std::uint32_t i = 0; i < n; ++i) node(dice_.one_in(10) ? all(0, 0) : some(i > reach ? i - reach : 0, i, most));
  }
  void tree(std::uint32_t n) {
    const std::uint32_t ways = 2 + dice_.below(6);
    for (std::uint32_t i = 0; i < n; ++i) node(i ? std::vector<std::uint32_t>{(i - 1) / ways} : all(0, 0));
  }
  void phased(std::uint32_t n) {
    graph_.phased = true;
    const std::uint32_t width = dice_.size_up_to(n);
    n = std::min(n, width * 40);  // a phase is a meeting of all workers: some dozens of them are enough
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t phase = i / width;
      node(phase ? some(0, phase * width, 4) : all(0, 0)).phase = phase;
    }
  }

  void give_features() {
    const bool spawns = !graph_.phased && dice_.one_in(3) && !compiled_, fails = dice_.one_in(4), streams = dice_.one_in(3);
    const bool stops = dice_.one_in(6), returns = dice_.one_in(2), priorities = dice_.one_in(2);
    for (NodeSpec& node : graph_.nodes) {
      if (priorities) node.priority = static_cast<Priority>(dice_.below(4));
      if (returns) node.returns = dice_.one_in(4);
      if (spawns && dice_.one_in(8)) node.tree_depth = 1 + dice_.below(3);
      if (streams && dice_.one_in(16)) node.emits = 1 + dice_.below(3);
      if (fails && dice_.one_in(2 + graph_.size() / 2)) node.fail_at = dice_.one_in(2) ? 0 : dice_.below(4);
      node.tree_fails = node.tree_depth && dice_.one_in(2);
    }
    if (stops) graph_.nodes[dice_.below(graph_.size())].stop_at = dice_.below(3);
    limit_returns();
  }
  /// Options::result_bytes is 16 KiB: at most 1,000 results.
  void limit_returns() {
    std::uint32_t left = 1000;
    for (NodeSpec& node : graph_.nodes)
      if (node.returns && left-- == 0) node.returns = false, left = 0;
  }
  void shuffle() {
    graph_.order = all(0, graph_.size());
    if (graph_.phased || dice_.one_in(2)) return;
    for (std::uint32_t i = graph_.size(); i > 1; --i) std::swap(graph_.order[i - 1], graph_.order[dice_.below(i)]);
  }

  Dice dice_;
  bool compiled_;
  GraphSpec graph_;
};

inline RunSpec make_run(Dice& dice, bool cancels) {
  RunSpec run;
  run.salt = dice.next();
  run.sets_bias = dice.one_in(2);
  run.bias = run.sets_bias ? dice.below(1000) : kDefaultBias;
  run.repeat = dice.one_in(3) ? 1 + dice.below(5) : 1;
  run.priority = static_cast<Priority>(dice.below(3));
  run.cancels = cancels && dice.one_in(2);
  run.cancel_after_us = dice.size_up_to(300) - 1;
  return run;
}

/// The case of a seed. Graphs have up to `most_tasks` (and three) tasks, cases up to kMostRuns runs.
inline constexpr std::uint32_t kMostRuns = 8;
inline Case make_case(std::uint64_t seed, std::uint32_t most_tasks, bool compiled = false) {
  Case made;
  made.graph = GraphMaker(seed, compiled).make(most_tasks);
  Dice dice(mix(seed, 0x72756e73));
  const std::uint32_t runs = 1 + dice.below(made.graph.size() > 1000 ? 3 : kMostRuns);
  const bool cancels = dice.one_in(4);
  for (std::uint32_t i = 0; i < runs; ++i) made.runs.push_back(make_run(dice, cancels));
  made.two_submitters = runs > 1 && dice.one_in(4);
  return made;
}

}  // namespace flywheel::testing
