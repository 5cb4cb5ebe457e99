// What a run must leave behind, computed one task after the other.
#pragma once

#include <set>
#include <vector>

#include "support/graph_tasks.hpp"

namespace flywheel::testing {

/// The account of a run after some passes.
struct Account {
  std::vector<std::uint64_t> value, extra;
  std::vector<std::uint32_t> count, sprouts;
  explicit Account(std::uint32_t n) : value(n, 0), extra(n, 0), count(n, 0), sprouts(n, 0) {}
};

/// A code that a run may fail with, and the node it must name.
struct Fault {
  std::uint32_t code;
  std::uint32_t node;
  auto operator<=>(const Fault&) const = default;
};

class Oracle {
 public:
  Oracle(const GraphSpec& graph, const RunSpec& run) : graph_(graph), run_(run), account_(graph.size()) {}

  /// All passes that the run makes.
  void finish() {
    while (!over()) pass();
  }
  bool over() const { return failed() || stopped_ || completed_ == run_.repeat; }
  bool failed() const { return !faults_.empty(); }
  /// One more pass.
  void pass() {
    const std::uint32_t n = graph_.size();
    std::vector<bool> dead(n, false);
    std::uint32_t last_phase = kNever;  // of a phased graph: the one a task failed in
    for (std::uint32_t id = 0; id < n; ++id) {
      const NodeSpec& node = graph_.nodes[id];
      dead[id] = graph_.phased ? node.phase > last_phase : has_dead_predecessor(node, dead);
      if (dead[id]) continue;
      dead[id] = !execute(id, node);
      if (dead[id] && last_phase == kNever) last_phase = node.phase;
    }
    if (!failed()) ++completed_;
  }

  const Account& account() const { return account_; }
  const std::set<Fault>& faults() const { return faults_; }
  std::uint32_t completed() const { return completed_; }
  /// What node `id` streams in a pass in which it computes `value`.
  void add_emitted(std::vector<std::uint64_t>& to, std::uint32_t id, std::uint32_t pass, std::uint64_t value) const {
    for (std::uint32_t k = 0; k < graph_.nodes[id].emits; ++k) to.push_back(emitted_value(id, pass, k, value));
  }
  const std::vector<std::uint64_t>& emitted() const { return emitted_; }

 private:
  bool has_dead_predecessor(const NodeSpec& node, const std::vector<bool>& dead) const {
    const std::uint32_t* before = graph_.before_of(node);
    return std::any_of(before, before + node.before_count, [&](std::uint32_t p) { return dead[p]; });
  }

  /// False if it fails.
  bool execute(std::uint32_t id, const NodeSpec& node) {
    const std::uint32_t* before = graph_.before_of(node);
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < node.before_count; ++i)
      sum += inherited(account_.value[before[i]], account_.extra[before[i]], i);
    account_.value[id] = mix(own_value(run_.salt, run_.bias, id, completed_), sum);
    ++account_.count[id];
    add_emitted(emitted_, id, completed_, account_.value[id]);
    stopped_ |= node.stop_at == completed_;
    bool good = !(fails_in(run_.salt, node.fail_at, completed_) && !node.tree_fails);
    if (!good) faults_.insert({id, id});
    if (node.tree_depth) good &= grow_tree(id, node);
    return good;
  }

  bool grow_tree(std::uint32_t id, const NodeSpec& node) {
    bool good = true;
    for (std::uint32_t j = 0; j < first_sprouts(graph_.seed, id); ++j)
      good &= grow(first_sprout(graph_.seed, id, node.tree_depth, j, node.tree_fails ? node.fail_at : kNever, {}));
    return good;
  }
  bool grow(const Sprout& sprout) {
    account_.extra[sprout.id] += sprout.worth(run_.salt, completed_);
    ++account_.sprouts[sprout.id];
    bool good = !sprout.fails(run_.salt, completed_);
    if (!good) faults_.insert({kTreeCode + sprout.id, sprout.id});
    for (std::uint32_t j = 0; j < sprout.children(); ++j) good &= grow(sprout.child(j));
    return good;
  }

  const GraphSpec& graph_;
  const RunSpec& run_;
  Account account_;
  std::vector<std::uint64_t> emitted_;
  std::set<Fault> faults_;
  std::uint32_t completed_ = 0;
  bool stopped_ = false;
};

}  // namespace flywheel::testing
