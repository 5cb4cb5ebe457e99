// Graph: the tasks of a program, what each waits for, phases and parameters. Programs get it through
// <flywheel/flywheel.hpp>. Nothing here touches a device; Runtime::load() checks a graph and places it there.
#pragma once

#include <array>
#include <cstring>
#include <iterator>
#include <string>
#include <type_traits>
#include <typeindex>
#include <vector>

#include "../../runtime/records/task_type.hpp"
#include "../base/error.hpp"

namespace flywheel {

/// The handle of a task in a graph, returned by Graph::add(). `R` is the type that the task's body returns, void if
/// nothing.
template <class R = void>
struct TaskRef {
  std::uint32_t index;
  std::uint32_t result_offset;
  std::uint64_t graph;  // the id of its graph
};

/// The tasks that a new task waits for. Made by after().
struct After {
  std::vector<std::uint32_t> tasks;
  std::vector<std::uint64_t> graphs;
};

namespace detail {
template <class R>
void wait_for(After& waits, const TaskRef<R>& task) {
  waits.tasks.push_back(task.index);
  waits.graphs.push_back(task.graph);
}
template <class Range>
auto wait_for(After& waits, const Range& tasks) -> decltype(wait_for(waits, *std::begin(tasks))) {
  for (const auto& task : tasks) wait_for(waits, task);
}
template <class T>
concept WaitedFor = requires(After& waits, const T& tasks) {
  wait_for(waits, tasks);
};
}  // namespace detail

/// The new task starts when all of these tasks have ended: g.add(task, after(a, b)). Each argument is a TaskRef or a
/// range of them, for example a std::vector of what add() has returned.
template <detail::WaitedFor... Tasks>
After after(const Tasks&... tasks) {
  After waits;
  (detail::wait_for(waits, tasks), ...);
  return waits;
}

namespace detail {
/// A buffer that a task type names in its `buffers()` member. Runtime::load() checks it.
struct BufferArgument {
  std::uint32_t task;
  const char* name;
  const void* pointer;
};

inline constexpr std::uint32_t kAnyWorker = 0xffffffffu;
inline constexpr std::uint32_t kNoGang = 0xffffffffu;

/// A piece of memory that a task names in `dependents()`. Runtime::load() checks it.
struct DependentPiece {
  const void* pointer;
  std::uint32_t bytes;
};

/// A task before its graph is loaded.
struct GraphNode {
  std::type_index type;
  std::array<unsigned char, kTaskArgBytes> args;
  std::uint32_t result_offset;
  Priority priority;
  bool grid;
  std::uint32_t phase;
  std::vector<std::uint32_t> predecessors;
  // For compiled graphs.
  std::uint32_t worker = kAnyWorker;  // the worker chosen by Graph::place()
  std::uint32_t gang = kNoGang;       // its index in Graph::gangs()
  std::uint32_t operand_bytes = 0;    // in the operand stream, see runtime/compiled/operands.hpp
  std::uint32_t dependent_pages = 0;
  std::vector<DependentPiece> dependents;
  bool early = false;       // its roles begin before its predecessors have ended
  double cost_ns = 0;       // what its type's cost_ns() says; 0 if it has none
  std::uint32_t stage = 0;  // its index in Graph::stages()
};

/// Assigns the results of a graph's tasks their offsets in the results of a run.
class ResultLayout {
 public:
  /// Adds a result and returns its offset in bytes. Throws CapacityError, naming the task's type, if it does not fit in
  /// 32 bits.
  std::uint32_t add(std::size_t bytes, std::size_t alignment, std::type_index type);
  std::uint64_t bytes() const { return bytes_; }

 private:
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
    Addition addition(*this);
    const std::uint32_t result = add_result<Result>(typeid(Task));
    const std::uint32_t index = add_node(typeid(Task), &task, sizeof(Task), waits, priority);
    nodes_[index].result_offset = result;
    note_buffers(task, index);
    note_compiled(task, index);
    addition.keep();
    return TaskRef<Result>{index, result, id_};
  }
  template <class Task>
  auto add(const Task& task, Priority priority) {
    return add(task, After{}, priority);
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

  /// Phased graphs: tasks that are added from here on belong to the next phase. All tasks of a phase end before the
  /// next phase begins, so tasks of a phased graph name no dependencies. Throws GraphError if the graph has
  /// dependencies.
  void phase();
  /// Phased graphs: adds a phase in which every worker runs this one task; see block.grid_sync().
  template <class Task>
  void add_grid(const Task& task) {
    static_assert(detail::check_task_type<Task>());
    Addition addition(*this);
    begin_grid();
    note_buffers(task, add_node(typeid(Task), &task, sizeof(Task), {}, Priority::inherit));
    end_grid();
    addition.keep();
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

  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }

  // What load() reads.
  const std::vector<detail::GraphNode>& nodes() const { return nodes_; }
  const std::vector<detail::BufferArgument>& buffers() const { return buffers_; }
  const std::vector<unsigned char>& params() const { return params_; }
  std::uint64_t result_bytes() const { return results_.bytes(); }
  const std::vector<std::vector<std::uint32_t>>& gangs() const { return gangs_; }
  std::uint32_t phase_count() const { return phased_ ? phase_ + 1 : 0; }
  const std::vector<std::string>& stages() const { return stages_; }
  std::uint64_t id() const { return id_; }

 private:
  /// Undoes what was added to the graph since its construction, unless keep() is called.
  class Addition {
   public:
    explicit Addition(Graph& graph)
        : graph_(graph),
          nodes_(graph.nodes_.size()),
          buffers_(graph.buffers_.size()),
          results_(graph.results_),
          phase_(graph.phase_),
          phased_(graph.phased_) {}
    ~Addition() {
      if (kept_) return;
      graph_.nodes_.erase(graph_.nodes_.begin() + static_cast<std::ptrdiff_t>(nodes_), graph_.nodes_.end());
      graph_.buffers_.resize(buffers_);
      graph_.results_ = results_;
      graph_.phase_ = phase_;
      graph_.phased_ = phased_;
    }
    Addition(const Addition&) = delete;
    Addition& operator=(const Addition&) = delete;
    void keep() { kept_ = true; }

   private:
    Graph& graph_;
    std::size_t nodes_, buffers_;
    detail::ResultLayout results_;
    std::uint32_t phase_;
    bool phased_;
    bool kept_ = false;
  };

  std::uint32_t add_node(std::type_index type, const void* args, std::size_t bytes, const After& waits, Priority priority);
  void add_edge(std::uint32_t before, std::uint64_t before_graph, std::uint32_t then, std::uint64_t then_graph);
  std::uint32_t known_task(std::uint32_t task, std::uint64_t graph) const;
  void place_node(std::uint32_t task, std::uint64_t graph, std::uint32_t worker);
  void add_gang(std::vector<std::uint32_t> tasks);
  std::uint32_t add_param(const void* value, std::size_t bytes, std::size_t alignment);
  void begin_grid();
  void end_grid();
  void swap(Graph& other) noexcept;

  template <class Result>
  std::uint32_t add_result(std::type_index type) {
    if constexpr (std::is_void_v<Result>) {
      return kNoResult;
    } else {
      static_assert(std::is_trivially_copyable_v<Result> && sizeof(Result) <= 64 && alignof(Result) <= 16,
                    "a task may return a plain value of up to 64 bytes; write larger results to a buffer");
      return results_.add(sizeof(Result), alignof(Result), type);
    }
  }

  template <class Task>
  void note_buffers(const Task& task, std::uint32_t index) {
    const auto note = [&](const char* name, const void* pointer) { buffers_.push_back({index, name, pointer}); };
    if constexpr (requires { task.buffers(note); }) task.buffers(note);
  }

  /// Keeps what compiled graphs need of the task: `double cost_ns() const`, and its operands, see
  /// runtime/compiled/operands.hpp.
  template <class Task>
  void note_compiled(const Task& task, std::uint32_t index) {
    if constexpr (requires { task.cost_ns(); }) nodes_[index].cost_ns = task.cost_ns();
    if constexpr (requires { task.operand_bytes(); }) nodes_[index].operand_bytes = task.operand_bytes();
    if constexpr (requires { task.dependent_pages(); }) {
      nodes_[index].dependent_pages = task.dependent_pages();
      task.dependents([&](const void* pointer, std::uint32_t bytes) { nodes_[index].dependents.push_back({pointer, bytes}); });
    }
    if constexpr (requires { Task::kEarly; }) nodes_[index].early = Task::kEarly;
  }

  std::vector<detail::GraphNode> nodes_;
  std::vector<std::vector<std::uint32_t>> gangs_;
  std::vector<std::string> stages_{""};  // the names of all stages so far
  std::uint32_t stage_ = 0;
  std::vector<detail::BufferArgument> buffers_;
  std::vector<unsigned char> params_;
  detail::ResultLayout results_;
  std::uint32_t phase_ = 0;
  bool phased_ = false;
  std::uint64_t id_;
};

namespace detail {
/// A type's demangled name.
std::string type_name(std::type_index type);
}  // namespace detail

}  // namespace flywheel
