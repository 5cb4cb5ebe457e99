// The storage of a graph: what load() needs of its tasks to write the records that the device reads, and what only some
// tasks have, in lists that most tasks add nothing to. Graph owns one and checks what goes in.
//
// Adding a task writes 20 bytes, its arguments and its predecessors at the end of three lists: no allocation a task, no
// look-up. A record takes 128 bytes, and graphs are large: what is not written here need not be fetched again by load().
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <typeinfo>

#include "graph_node.hpp"

namespace flywheel::detail {

/// A value for each task, of which neighbours mostly have the same: kept as the tasks at which it changes.
class ChangingValue {
 public:
  /// The value of all tasks from `task` on. Tasks come in rising order.
  void note(std::uint32_t task, std::uint32_t value) {
    if (value != last_) change(task, value);
  }
  /// The value of a task; 0 before the first note().
  std::uint32_t at(std::uint32_t task) const {
    const auto after = std::upper_bound(changes_.begin(), changes_.end(), task,
                                        [](std::uint32_t wanted, const Change& change) { return wanted < change.task; });
    return after == changes_.begin() ? 0 : std::prev(after)->value;
  }
  /// Forgets the tasks from `size` on.
  void cut(std::uint32_t size) {
    while (!changes_.empty() && changes_.back().task >= size) changes_.pop_back();
    last_ = changes_.empty() ? 0 : changes_.back().value;
  }

 private:
  struct Change {
    std::uint32_t task, value;
  };
  void change(std::uint32_t task, std::uint32_t value) {
    changes_.push_back({task, value});
    last_ = value;
  }

  std::vector<Change> changes_;
  std::uint32_t last_ = 0;
};

/// {number of predecessors:30 | priority:2}: what an edge to a task says, in one word.
constexpr std::uint32_t wait_word(std::uint32_t predecessors, Priority priority) {
  return predecessors << 2 | static_cast<std::uint32_t>(priority);
}
constexpr std::uint32_t predecessors_in(std::uint32_t wait_word) { return wait_word >> 2; }
constexpr std::uint32_t priority_in(std::uint32_t wait_word) { return wait_word & 3; }

/// The unit in which arguments are kept, as they are aligned in a record.
struct alignas(16) ArgUnit {
  unsigned char bytes[16];
};
static_assert(kTaskArgBytes % sizeof(ArgUnit) == 0);

/// What every task has.
struct StoredTask {
  std::uint32_t waits;  // a wait word; late edges do not count
  std::uint32_t first_predecessor;
  std::uint32_t result_offset;
  std::uint32_t first_arg;  // the position of its arguments among those of all tasks, in units of ArgUnit
  std::uint16_t type;       // in TaskStore::types()
  std::uint16_t arg_units;
};

/// Copies arguments, and fills the rest of the last unit with zeros. Unit by unit: a single copy of so few bytes may become
/// a string instruction of the processor, which takes longer than all else that adding a task does.
template <std::size_t Bytes>
void copy_args(ArgUnit* to, const void* from) {
  constexpr std::size_t kUnits = Bytes / sizeof(ArgUnit), kRest = Bytes % sizeof(ArgUnit);
  const auto* source = static_cast<const unsigned char*>(from);
  for (const ArgUnit* const end = to + kUnits; to != end; ++to, source += sizeof(ArgUnit))
    std::memcpy(to, source, sizeof(ArgUnit));
  if constexpr (kRest) {
    *to = {};
    std::memcpy(to, source, kRest);
  }
}

/// Move-only.
class TaskStore {
 public:
  /// What to remove again if adding a task fails half-way.
  struct Mark {
    std::uint32_t tasks, args, predecessors;
    std::size_t types, attributes, dependents, buffers, repeats;
  };
  Mark mark() const {
    return {size(),          args_.size(),   predecessors_.size(), types_.size(), attributes_.size(), dependents_.size(),
            buffers_.size(), repeats_.size()};
  }
  void cut(const Mark& mark);

  std::uint32_t size() const { return tasks_.size(); }
  /// A task that add() has added, and the memory for its arguments.
  struct Added {
    std::uint32_t task;
    ArgUnit* args;
  };
  /// Adds a task. The caller writes its arguments, `arg_bytes` rounded up to units. Throws CapacityError if there are too
  /// many edges or arguments; then nothing is added.
  Added add(const std::type_info& type, std::size_t arg_bytes, std::span<const std::uint32_t> predecessors, Priority priority,
            std::uint32_t result_offset, std::uint32_t phase, std::uint32_t stage) {
    const std::uint32_t task = size();
    const std::uint16_t number = &type == last_type_ ? last_number_ : number_of(type);
    const auto units = static_cast<std::uint16_t>((arg_bytes + sizeof(ArgUnit) - 1) / sizeof(ArgUnit));
    phases_.note(task, phase);
    stages_.note(task, stage);
    check_room(predecessors.size());
    const bool in_order = std::ranges::adjacent_find(predecessors, std::greater_equal<>()) == predecessors.end();
    const bool repeats = !in_order && may_repeat(predecessors);
    tasks_.make_room(1);
    ArgUnit* const args = args_.add_together(units);
    const std::uint32_t first = predecessors_.size();
    predecessors_.append(predecessors);  // the last line that may throw
    const auto count = static_cast<std::uint32_t>(predecessors.size());
    tasks_.push_back({wait_word(count, priority), first, result_offset, args_.size() - units, number, units});
    last_in_order_ = in_order;
    if (repeats) [[unlikely]]
      repeats_.push_back(task);  // within what may_repeat() has reserved
    return {task, args};
  }
  /// Adds a dependency between two tasks. While a task is the last one, its predecessors are the end of the list.
  void add_edge(std::uint32_t before, std::uint32_t then) {
    check_room(1);
    backward_ |= before >= then;
    if (then + std::size_t{1} != size()) return add_late_edge(before, then);
    StoredTask& stored = tasks_.back();
    const std::uint32_t count = predecessors_in(stored.waits);
    last_in_order_ &= !count || predecessors_.back() < before;
    if (!last_in_order_) note_repeat(then, before);
    predecessors_.push_back(before);
    stored.waits += wait_word(1, Priority{});
  }
  /// The attributes of a task, to be set.
  TaskAttributes& attributes(std::uint32_t task);
  /// Adds a piece to the dependents of the task that was added last.
  void add_dependent(std::uint32_t task, DependentPiece piece);
  void add_buffer(const BufferArgument& buffer) { buffers_.push_back(buffer); }
  void set_grid(std::uint32_t phase) { grid_phases_.push_back(phase); }  // phases come in rising order

  GraphNode operator[](std::uint32_t task) const;
  std::uint32_t phase_of(std::uint32_t task) const { return phases_.at(task); }
  std::uint32_t stage_of(std::uint32_t task) const { return stages_.at(task); }
  Predecessors predecessors(std::uint32_t task) const;

  // What load() reads list by list.
  const ChunkList<StoredTask>& tasks() const { return tasks_; }
  /// The arguments of a task.
  std::span<const ArgUnit> args(const StoredTask& task) const {
    if (!task.arg_units) return {};
    return {&args_[task.first_arg], task.arg_units};
  }
  const std::vector<std::type_index>& types() const { return types_; }
  const std::vector<BufferArgument>& buffers() const { return buffers_; }
  const ChangingValue& stages() const { return stages_; }
  /// True if all_predecessors() has the predecessors of all tasks, in order of the tasks. Else predecessors() has to be asked.
  bool in_order() const { return late_.empty(); }
  /// In order, the tasks that may name a predecessor twice, late edges left out. The others do not.
  const std::vector<std::uint32_t>& repeats() const { return repeats_; }
  const ChunkList<std::uint32_t>& all_predecessors() const { return predecessors_; }
  bool has_edges() const { return edges() != 0; }
  /// The number of dependencies, with those that were named twice.
  std::uint64_t edges() const { return std::uint64_t{predecessors_.size()} + late_.size(); }
  /// True if a task waits for one that was added after it, or for itself: only then there can be a cycle.
  bool may_have_cycle() const { return backward_; }
  bool has_attributes() const { return !attributes_.empty(); }
  /// The first task of which `wanted` is true, of those with attributes; size() if there is none.
  template <class Wanted>
  std::uint32_t find_attributes(Wanted&& wanted) const {
    for (std::uint32_t task = 0; task < attributes_of_.size(); ++task)
      if (const std::uint32_t place = attributes_of_[task]; place && wanted(attributes_[place - 1])) return task;
    return size();
  }

 private:
  struct LateList {
    std::uint32_t first = 0, last = 0;  // positions + 1 in `late_`
  };

  std::uint16_t number_of(const std::type_info& type);
  /// Throws CapacityError if the graph has no room for so many more edges, or for the arguments of one more task.
  void check_room(std::size_t edges_more) const {
    if (edges() + edges_more > kMostEdges) too_many_edges();
    if (args_.size() > kMostArgUnits) too_many_args();
  }
  /// For predecessors that do not rise. If so, there is room for one more task in `repeats_`.
  bool may_repeat(std::span<const std::uint32_t> predecessors);
  void add_late_edge(std::uint32_t before, std::uint32_t then);
  void note_repeat(std::uint32_t task, std::uint32_t one);
  [[noreturn]] static void too_many_edges();
  [[noreturn]] static void too_many_args();

  static constexpr std::size_t kMostEdges = (1u << 30) - 1;  // a wait word can hold as many
  static constexpr std::uint32_t kMostArgUnits = 0xffffffffu - 2 * ChunkList<ArgUnit>::kPerChunk;

  ChunkList<StoredTask> tasks_;
  ChunkList<ArgUnit> args_;
  ChunkList<std::uint32_t> predecessors_;
  std::vector<std::type_index> types_;
  const std::type_info* last_type_ = nullptr;
  std::uint16_t last_number_ = 0;
  bool last_in_order_ = true;  // the predecessors of the last task rise, and so differ
  bool backward_ = false;      // see may_have_cycle()
  ChangingValue phases_, stages_;
  std::vector<std::uint32_t> grid_phases_;
  std::vector<std::uint32_t> repeats_;
  ChunkList<LateEdge> late_;
  std::vector<LateList> late_of_;             // by task; tasks behind its end have none
  std::vector<std::uint32_t> attributes_of_;  // of each task: position + 1 in `attributes_`, or 0. Likewise
  std::vector<TaskAttributes> attributes_;
  std::vector<DependentPiece> dependents_;
  std::vector<BufferArgument> buffers_;
};

/// A range of the nodes of a graph.
class GraphNodes {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = GraphNode;
    using difference_type = std::ptrdiff_t;

    Iterator(const TaskStore& store, std::uint32_t task) : store_(&store), task_(task) {}
    GraphNode operator*() const { return (*store_)[task_]; }
    Iterator& operator++() {
      ++task_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return task_ == other.task_; }

   private:
    const TaskStore* store_;
    std::uint32_t task_;
  };

  explicit GraphNodes(const TaskStore& store) : store_(store) {}
  GraphNode operator[](std::uint32_t task) const { return store_[task]; }
  std::uint32_t size() const { return store_.size(); }
  Iterator begin() const { return {store_, 0}; }
  Iterator end() const { return {store_, size()}; }

 private:
  const TaskStore& store_;
};

}  // namespace flywheel::detail
