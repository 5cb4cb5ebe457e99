// Graph: the tasks of a program, what each waits for, phases and parameters. Programs get it through
// <flywheel/flywheel.hpp>. Nothing here touches a device; Runtime::load() checks a graph and places it there.
#pragma once

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <type_traits>
#include <typeindex>
#include <vector>

#include "../../runtime/records/task_type.hpp"
#include "../base/error.hpp"
#include "../tasks/control_list.hpp"
#include "../tasks/small_list.hpp"
#include "../tasks/task_store.hpp"

namespace flywheel {

namespace detail {
[[noreturn]] void refuse_case(std::uint32_t number);
}  // namespace detail

/// The handle of a task in a graph, returned by Graph::add(). `R` is the type that the task's body returns, void if
/// nothing.
template <class R = void>
struct TaskRef {
  std::uint32_t index;
  std::uint32_t result_offset;
  std::uint64_t graph;  // the id of its graph
};

/// The tasks that a new task waits for. Made by after(), or task by task with add().
struct After {
  detail::SmallList<std::uint32_t, 6> tasks;
  std::uint64_t graph = 0;   // of the first task; 0 if there is none
  bool many_graphs = false;  // some task is of another graph than the first

  template <class R>
  void add(const TaskRef<R>& task) {
    if (tasks.empty()) graph = task.graph;
    many_graphs |= task.graph != graph;
    tasks.push_back(task.index);
  }
  /// The same for tasks that lie side by side.
  template <class R>
  void add(const TaskRef<R>* task, std::size_t count) {
    if (tasks.empty() && count) graph = task->graph;
    std::uint32_t* to = tasks.add_together(count);
    for (const TaskRef<R>* const end = task + count; task != end; ++task) {
      many_graphs |= task->graph != graph;
      *to++ = task->index;
    }
  }
};

/// A case of a task that chooses, made by when().
template <class R>
struct Case {
  TaskRef<R> task;
  std::uint32_t number;
};

/// The same with conditions; made by after() with cases, by after_any(), or with add(). A type of its own, so that graphs
/// without conditions are built as fast as ever.
struct ConditionalAfter : After {
  std::vector<detail::ChosenCase> cases;  // the tasks that have to choose the new one, and how
  bool any = false;                       // the new task runs if one of the tasks has run, and not only if all have

  using After::add;
  template <class R>
  void add(const Case<R>& one) {
    add(one.task);
    cases.push_back({one.task.index, one.number});
  }
};

/// The new task waits for this one, and runs if a thread of its body has called block.choose(number), from 0 to 27; else it is
/// passed over, and so is what depends on it: g.add(B{}, when(a, 1)), or among others g.add(B{}, after(x, when(a, 1))). A task
/// that waits for several cases of one task runs if one of them is chosen. Throws GraphError if the number is too large.
///
/// A task that is passed over does not run, and its result is not written. A run in which tasks were passed over is a good one.
/// Graphs that are loaded with `compiled`, and phased ones, have no cases.
template <class R>
Case<R> when(const TaskRef<R>& task, std::uint32_t number) {
  if (number >= detail::kMostCases) detail::refuse_case(number);
  return {task, number};
}

namespace detail {
template <class R>
void wait_for(After& waits, const TaskRef<R>& task) {
  waits.add(task);
}
template <class R>
void wait_for(ConditionalAfter& waits, const Case<R>& one) {
  waits.add(one);
}
template <class Waits, class Range>
auto wait_for(Waits& waits, const Range& tasks) -> decltype(wait_for(waits, *std::begin(tasks))) {
  if constexpr (requires { waits.add(std::data(tasks), std::size(tasks)); }) waits.add(std::data(tasks), std::size(tasks));
  else
    for (const auto& task : tasks) wait_for(waits, task);
}
template <class T>
concept WaitedFor = requires(ConditionalAfter& waits, const T& tasks) {
  wait_for(waits, tasks);
};
/// A case, or a range of cases.
template <class T>
concept HasCase = !requires(After & waits, const T& tasks) {
  wait_for(waits, tasks);
};
/// What Graph::add() takes besides an After.
template <class T>
inline constexpr bool kIsConditional = std::is_same_v<T, ConditionalAfter>;
template <class R>
inline constexpr bool kIsConditional<Case<R>> = true;
}  // namespace detail

/// The new task starts when all of these tasks have ended: g.add(task, after(a, b)). Each argument is a TaskRef, a case of one
/// (see when()), or a range of them, for example a std::vector of what add() has returned.
template <detail::WaitedFor... Tasks>
auto after(const Tasks&... tasks) {
  std::conditional_t<(detail::HasCase<Tasks> || ...), ConditionalAfter, After> waits;
  (detail::wait_for(waits, tasks), ...);
  return waits;
}

/// The same for a task that joins what a choice has parted: it starts when all of these have ended, and runs if at least one of
/// them has run. If one of them failed it is skipped; in a run that has failed, also if one was passed over.
template <detail::WaitedFor... Tasks>
ConditionalAfter after_any(const Tasks&... tasks) {
  ConditionalAfter waits;
  (detail::wait_for(waits, tasks), ...);
  waits.any = !waits.tasks.empty();
  return waits;
}

namespace detail {
/// Assigns the results of a graph's tasks their offsets in the results of a run.
class ResultLayout {
 public:
  /// Adds a result and returns its offset in bytes. Throws CapacityError, naming the task's type, if it does not fit in
  /// 32 bits.
  std::uint32_t add(std::size_t bytes, std::size_t alignment, std::type_index type) {
    const std::uint64_t at = (bytes_ + alignment - 1) / alignment * alignment;
    if (at + bytes > kMost) too_many(at + bytes, type);
    bytes_ = at + bytes;
    return static_cast<std::uint32_t>(at);
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  static constexpr std::uint64_t kMost = kNoResult;  // means "no result", so no result may have this offset
  [[noreturn]] static void too_many(std::uint64_t bytes, std::type_index type);

  std::uint64_t bytes_ = 0;
};
}  // namespace detail

/// A graph of tasks. Move-only. A program builds it once, loads it with Runtime::load(), and submits it any number of
/// times. A moved-from graph is a new, empty one.
///
///   auto a = g.add(Square{x}), b = g.add(Square{y});
///   g.add(Add{x, y}, after(a, b));
class Graph {
 public:
  Graph();
  // No copies, and a moved-from graph gets a new id: a TaskRef names its graph by id, so with the same id a TaskRef of
  // one graph would be accepted by another.
  Graph(Graph&& other) noexcept : Graph() { swap(other); }
  Graph& operator=(Graph&& other) noexcept {
    Graph moved(std::move(other));
    swap(moved);
    return *this;
  }

  /// Adds a task. Throws GraphError if `waits` names a task of another graph, and whatever the task type's own
  /// functions throw; then nothing is added. A task type may have `template <class F> void buffers(F&& f) const {
  /// f("x", x); }`: load() then checks that the device can access each buffer that it names.
  template <class Task>
  auto add(const Task& task, const After& waits = {}, Priority priority = Priority::inherit) {
    static_assert(detail::check_task_type<Task>());
    using Result = decltype(task(std::declval<detail::AnyBlock<false>&>()));
    check_waits(typeid(Task), waits);
    detail::ResultLayout results = results_;
    const std::uint32_t result = add_result<Result>(results, typeid(Task));
    const std::uint32_t index = add_task(task, waits, priority, result);
    results_ = results;
    return TaskRef<Result>{index, result, id_};
  }
  template <class Task>
  auto add(const Task& task, Priority priority) {
    return add(task, After{}, priority);
  }
  /// The same with conditions, see when() and after_any().
  template <class Task, class Waits>
  requires detail::kIsConditional<Waits>
  auto add(const Task& task, const Waits& waits, Priority priority = Priority::inherit) {
    if constexpr (!std::is_same_v<Waits, ConditionalAfter>) {
      return add(task, after(waits), priority);
    } else {
      control_.make_room(waits.cases.size(), waits.any);  // what may throw comes first
      const auto added = add(task, static_cast<const After&>(waits), priority);
      control_.add(added.index, waits.cases, waits.any);
      return added;
    }
  }

  /// Adds a dependency between two tasks of this graph: `then` starts after `before` has ended. Throws GraphError in a
  /// phased graph.
  template <class A, class B>
  void edge(const TaskRef<A>& before, const TaskRef<B>& then) {
    add_edge(before.index, before.graph, then.index, then.graph);
  }

  /// Compiled graphs: the task runs on this worker, whatever the cost model says. load() throws GraphError if a graph
  /// with such a task is not compiled.
  template <class R>
  void place(const TaskRef<R>& task, std::uint32_t worker) {
    place_node(task.index, task.graph, worker);
  }

  /// Compiled graphs: these tasks form a gang. They run at the same time and may wait for each other's stores. Each
  /// gets a worker of its own, and none is placed behind a task that waits for another of them ("gang scheduling",
  /// Feitelson and Rudolph 1992). If one of them fails, or is skipped because a predecessor failed, block.cancelled()
  /// is true in the others. Throws GraphError if a task is in a gang already.
  template <class R>
  void together(const std::vector<TaskRef<R>>& tasks) {
    std::vector<std::uint32_t> gang;
    for (const TaskRef<R>& task : tasks) gang.push_back(known_task(task.index, task.graph));
    add_gang(std::move(gang));
  }

  /// The same of tasks that are named one by one, whatever they return.
  template <class A, class B, class... More>
  void together(const TaskRef<A>& a, const TaskRef<B>& b, const TaskRef<More>&... more) {
    add_gang({known_task(a.index, a.graph), known_task(b.index, b.graph), known_task(more.index, more.graph)...});
  }

  /// These tasks, from `first` to `last`, are a loop: while the body of `last` calls block.again(), `first` runs once more
  /// after it, and then all that comes between the two. Of the loop's tasks only `first` may wait for others, only `last` may
  /// be waited for by others, and each leads to `last`; load() checks that, and throws GraphError if it is not so. `first` and
  /// `last` may be the same task, and a loop may be part of another. It ends early if a task of it fails, or with the run.
  /// Throws GraphError in a phased graph, and if `last` ends another loop.
  template <class A, class B>
  void loop(const TaskRef<A>& first, const TaskRef<B>& last) {
    add_loop(known_task(first.index, first.graph), known_task(last.index, last.graph));
  }

  /// Phased graphs: tasks that are added from here on belong to the next phase. All tasks of a phase end before the
  /// next phase begins, so tasks of a phased graph name no dependencies. Throws GraphError if the graph has
  /// dependencies.
  void phase();
  /// Phased graphs: adds a phase in which every worker runs this one task; see block.grid_sync().
  template <class Task>
  void add_grid(const Task& task) {
    static_assert(detail::check_task_type<Task>());
    static_assert(!detail::is_warp_task<Task>(), "a grid task runs on all warps of each worker: leave out `Grain`");
    const std::uint32_t phase_before = phase_;
    const bool phased_before = phased_;
    try {
      phase();
      add_task(task, {}, Priority::inherit, kNoResult);
    } catch (...) {
      phase_ = phase_before;
      phased_ = phased_before;
      throw;
    }
    end_grid();
  }

  /// Adds a parameter: a value that may differ from run to run, and that bodies read with block.param(). A run that
  /// does not set it gets `value`. Throws CapacityError if all parameters take more than kParamBytes.
  template <class T>
  Param<T> param(const T& value = {}) {
    static_assert(std::is_trivially_copyable_v<T>, "a run parameter must be trivially copyable");
    return {add_param(&value, sizeof(T), alignof(T)), static_cast<std::uint32_t>(id_)};
  }

  /// Tasks that are added from here on belong to the stage `name`; "" for none. Errors, plans and traces name it: "task
  /// 4711 (Project, stage qkv)".
  void stage(const std::string& name);
  /// The graph as input for Graphviz (`dot -Tsvg`): tasks, their dependencies, and a frame around each stage or phase.
  std::string to_dot() const;

  std::uint32_t size() const { return tasks_.size(); }

  // What load() reads.
  detail::GraphNodes nodes() const { return detail::GraphNodes(tasks_); }
  const detail::TaskStore& tasks() const { return tasks_; }
  const std::vector<detail::BufferArgument>& buffers() const { return tasks_.buffers(); }
  const std::vector<unsigned char>& params() const { return params_; }
  std::uint64_t result_bytes() const { return results_.bytes(); }
  const std::vector<std::vector<std::uint32_t>>& gangs() const { return gangs_; }
  std::uint32_t phase_count() const { return phased_ ? phase_ + 1 : 0; }
  const std::vector<std::string>& stages() const { return stages_; }
  const detail::ControlList& control() const { return control_; }
  /// Whether some task has more than a portable body: parts, operands, or an early begin.
  bool has_parts() const { return has_parts_; }
  /// Whether all tasks are warp tasks.
  bool all_warp_tasks() const { return !has_block_tasks_; }
  /// The first task whose type is not for compiled graphs; size() if there is none.
  std::uint32_t first_not_compiled() const { return std::min(first_not_compiled_, size()); }
  std::uint64_t id() const { return id_; }

 private:
  void check_waits(std::type_index type, const After& waits) const {
    if (waits.tasks.empty()) return;
    if (names_others(waits) || phased_) refuse_waits(type, waits);
  }
  /// Whether a task of another graph is among those that are waited for.
  bool names_others(const After& waits) const { return waits.graph != id_ || waits.many_graphs; }
  [[noreturn]] void refuse_waits(std::type_index type, const After& waits) const;
  void add_edge(std::uint32_t before, std::uint64_t before_graph, std::uint32_t then, std::uint64_t then_graph);
  std::uint32_t known_task(std::uint32_t task, std::uint64_t graph) const;
  void place_node(std::uint32_t task, std::uint64_t graph, std::uint32_t worker);
  void add_gang(std::vector<std::uint32_t> tasks);
  void add_loop(std::uint32_t first, std::uint32_t last);
  std::uint32_t add_param(const void* value, std::size_t bytes, std::size_t alignment);
  void end_grid();
  void swap(Graph& other) noexcept;

  template <class Result>
  std::uint32_t add_result(detail::ResultLayout& results, std::type_index type) const {
    if constexpr (std::is_void_v<Result>) {
      return kNoResult;
    } else {
      static_assert(std::is_trivially_copyable_v<Result> && sizeof(Result) <= 64 && alignof(Result) <= 16,
                    "a task may return a plain value of up to 64 bytes; write larger results to a buffer");
      return results.add(sizeof(Result), alignof(Result), type);
    }
  }

  /// Adds the task, or nothing if a function of its type throws.
  template <class Task>
  std::uint32_t add_task(const Task& task, const After& waits, Priority priority, std::uint32_t result) {
    const auto write = [&] {
      constexpr std::size_t kBytes = std::is_empty_v<Task> ? 0 : sizeof(Task);
      const auto [index, args] =
          tasks_.add(typeid(Task), kBytes, {waits.tasks.begin(), waits.tasks.size()}, priority, result, phase_, stage_);
      detail::copy_args<kBytes>(args, &task);
      if constexpr (!detail::is_compiled<Task>()) first_not_compiled_ = std::min(first_not_compiled_, index);
      return index;
    };
    using Is = detail::Asks<const Task>;
    if constexpr (!detail::is_warp_task<Task>()) has_block_tasks_ = true;
    has_parts_ |= Is::compute || Is::operand_bytes || Is::dependent_pages || Is::early;
    if constexpr (Is::buffers || Is::cost_ns || Is::operand_bytes || Is::dependent_pages || Is::early) {
      const detail::TaskStore::Mark mark = tasks_.mark();
      try {
        const std::uint32_t index = write();
        note_buffers(task, index);
        note_compiled(task, index);
        return index;
      } catch (...) {
        tasks_.cut(mark);
        if (first_not_compiled_ >= size()) first_not_compiled_ = kNoTask;
        throw;
      }
    } else {
      return write();
    }
  }

  template <class Task>
  void note_buffers(const Task& task, std::uint32_t index) {
    const auto note = [&](const char* name, const void* pointer) { tasks_.add_buffer({index, name, pointer}); };
    if constexpr (requires { task.buffers(note); }) task.buffers(note);
  }

  /// Keeps what compiled graphs need of the task: `double cost_ns() const`, and its operands, see
  /// runtime/compiled/operands.hpp.
  template <class Task>
  void note_compiled(const Task& task, std::uint32_t index) {
    if constexpr (requires { task.cost_ns(); }) tasks_.attributes(index).cost_ns = task.cost_ns();
    if constexpr (requires { task.operand_bytes(); }) tasks_.attributes(index).operand_bytes = task.operand_bytes();
    if constexpr (requires { task.dependent_pages(); }) {
      tasks_.attributes(index).dependent_pages = task.dependent_pages();
      task.dependents([&](const void* pointer, std::uint32_t bytes) { tasks_.add_dependent(index, {pointer, bytes}); });
    }
    if constexpr (requires { Task::kEarly; }) tasks_.attributes(index).early = Task::kEarly;
  }

  detail::TaskStore tasks_;
  std::vector<std::vector<std::uint32_t>> gangs_;
  detail::ControlList control_;
  std::vector<std::string> stages_{""};  // the names of all stages so far
  std::uint32_t stage_ = 0;
  std::vector<unsigned char> params_;
  detail::ResultLayout results_;
  std::uint32_t phase_ = 0;
  bool phased_ = false;
  bool has_parts_ = false;
  bool has_block_tasks_ = false;
  static constexpr std::uint32_t kNoTask = ~std::uint32_t{0};
  std::uint32_t first_not_compiled_ = kNoTask;
  std::uint64_t id_;
};

namespace detail {
/// A type's demangled name.
std::string type_name(std::type_index type);
}  // namespace detail

}  // namespace flywheel
