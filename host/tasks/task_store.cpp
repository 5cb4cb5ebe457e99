#include "task_store.hpp"

#include <limits>

#include "../base/error.hpp"

namespace flywheel::detail {

void TaskStore::cut(const Mark& mark) {
  for (std::uint32_t task = mark.tasks; task < attributes_of_.size(); ++task) attributes_of_[task] = 0;
  tasks_.cut(mark.tasks);
  args_.cut(mark.args);
  predecessors_.cut(mark.predecessors);
  if (types_.size() != mark.types) last_type_ = nullptr;
  types_.erase(types_.begin() + static_cast<std::ptrdiff_t>(mark.types), types_.end());
  attributes_.resize(mark.attributes);
  dependents_.resize(mark.dependents);
  buffers_.resize(mark.buffers);
  repeats_.resize(mark.repeats);
  last_in_order_ = false;  // nobody has looked
  phases_.cut(mark.tasks);
  stages_.cut(mark.tasks);
}

std::uint16_t TaskStore::number_of(const std::type_info& type) {
  const auto found = std::find(types_.begin(), types_.end(), std::type_index(type));
  const auto number = static_cast<std::size_t>(found - types_.begin());
  if (number > std::numeric_limits<std::uint16_t>::max())
    throw CapacityError("the graph has tasks of " + std::to_string(number) + " types, and that is the most: split it");
  if (found == types_.end()) types_.emplace_back(type);
  last_type_ = &type;
  return last_number_ = static_cast<std::uint16_t>(number);
}

namespace {
constexpr std::size_t kShort = 8;  // predecessors of a task that are compared one by one
}  // namespace

/// Of a short list all pairs are compared; a long one may have repeats.
bool TaskStore::may_repeat(std::span<const std::uint32_t> predecessors) {
  bool may = predecessors.size() > kShort;
  for (auto one = predecessors.begin(); !may && one != predecessors.end(); ++one)
    may = std::find(std::next(one), predecessors.end(), *one) != predecessors.end();
  if (may && repeats_.size() == repeats_.capacity()) repeats_.reserve(2 * repeats_.size() + 1);
  return may;
}

/// The same for one more predecessor behind those that a task has, the last one so far.
void TaskStore::note_repeat(std::uint32_t task, std::uint32_t one) {
  const Predecessors before = predecessors(task);
  const bool may = predecessors_in(tasks_[task].waits) > kShort || std::find(before.begin(), before.end(), one) != before.end();
  if (may && (repeats_.empty() || repeats_.back() != task)) repeats_.push_back(task);
}

void TaskStore::too_many_edges() {
  throw CapacityError("the graph has more than " + std::to_string(kMostEdges) + " dependencies: split it");
}

void TaskStore::too_many_args() { throw CapacityError("the arguments of the graph's tasks take more than 63 GiB: split it"); }

void TaskStore::add_late_edge(std::uint32_t before, std::uint32_t then) {
  if (late_of_.size() <= then) late_of_.resize(std::max<std::size_t>(then + std::size_t{1}, size()));
  late_.push_back({before, 0});
  const std::uint32_t place = late_.size();
  LateList& list = late_of_[then];
  (list.last ? late_[list.last - 1].next : list.first) = place;
  list.last = place;
}

TaskAttributes& TaskStore::attributes(std::uint32_t task) {
  if (attributes_of_.size() <= task) attributes_of_.resize(std::max<std::size_t>(task + std::size_t{1}, size()));
  std::uint32_t& place = attributes_of_[task];
  if (!place) {
    attributes_.emplace_back();
    place = static_cast<std::uint32_t>(attributes_.size());
  }
  return attributes_[place - 1];
}

void TaskStore::add_dependent(std::uint32_t task, DependentPiece piece) {
  TaskAttributes& own = attributes(task);
  if (own.first_dependent == own.end_of_dependents) own.first_dependent = dependents_.size();
  dependents_.push_back(piece);
  own.end_of_dependents = dependents_.size();
}

Predecessors TaskStore::predecessors(std::uint32_t task) const {
  const StoredTask& stored = tasks_[task];
  return {predecessors_, stored.first_predecessor, stored.first_predecessor + predecessors_in(stored.waits), late_,
          task < late_of_.size() ? late_of_[task].first : 0};
}

GraphNode TaskStore::operator[](std::uint32_t task) const {
  const StoredTask& stored = tasks_[task];
  const std::uint32_t place = task < attributes_of_.size() ? attributes_of_[task] : 0;
  const TaskAttributes own = place ? attributes_[place - 1] : TaskAttributes{};
  const std::uint32_t phase = phases_.at(task);
  const std::span<const ArgUnit> units = args(stored);
  return {own,
          types_[stored.type],
          {reinterpret_cast<const unsigned char*>(units.data()), units.size_bytes()},
          stored.result_offset,
          static_cast<Priority>(priority_in(stored.waits)),
          std::binary_search(grid_phases_.begin(), grid_phases_.end(), phase),
          phase,
          predecessors(task),
          {dependents_.data() + own.first_dependent, own.end_of_dependents - own.first_dependent},
          stages_.at(task)};
}

}  // namespace flywheel::detail
