// What a graph says of control: which tasks wait for a choice or for any of several tasks, and its loops. Most graphs say
// nothing. Included by graph.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace flywheel::detail {

/// The task has to choose a successor: it calls block.choose(number).
struct ChosenCase {
  std::uint32_t task, number;
};

/// See Graph::loop().
struct GraphLoop {
  std::uint32_t first, last;
};

class ControlList {
 public:
  /// What one task waits for: to be chosen by another.
  struct Choice {
    std::uint32_t task;
    ChosenCase by;
  };

  /// Takes the memory for a task with so many cases. Throws std::bad_alloc.
  void make_room(std::size_t cases, bool any) {
    if (cases && choices_.capacity() < choices_.size() + cases) choices_.reserve(2 * choices_.size() + cases);
    if (any && any_.capacity() == any_.size()) any_.reserve(2 * any_.size() + 1);
  }
  /// Tasks come in rising order. Throws nothing after make_room().
  void add(std::uint32_t task, const std::vector<ChosenCase>& cases, bool any) {
    for (const ChosenCase& one : cases) choices_.push_back({task, one});
    if (any) any_.push_back(task);
  }
  void add(const GraphLoop& loop) { loops_.push_back(loop); }

  const std::vector<Choice>& choices() const { return choices_; }  // in order of the tasks that wait
  std::span<const Choice> choices_of(std::uint32_t task) const {
    // Not std::ranges::equal_range(): clang 14 does not compile its subrange.
    const auto [first, last] = std::equal_range(choices_.begin(), choices_.end(), Choice{task, {}}, is_before);
    return {first, last};
  }
  const std::vector<GraphLoop>& loops() const { return loops_; }
  /// Whether the task waits for any of its predecessors.
  bool waits_for_any(std::uint32_t task) const { return std::binary_search(any_.begin(), any_.end(), task); }
  const std::vector<std::uint32_t>& any() const { return any_; }
  bool empty() const { return choices_.empty() && any_.empty() && loops_.empty(); }

 private:
  static bool is_before(const Choice& a, const Choice& b) { return a.task < b.task; }

  std::vector<Choice> choices_;
  std::vector<std::uint32_t> any_;
  std::vector<GraphLoop> loops_;
};

}  // namespace flywheel::detail
