// What a task type must look like: compile-time checks, whose messages are for the author of the task type.
// Graph::add() and flywheel::start<...>() check with it.
//
// The checks call no part of a task (see operands.hpp): they ask whether the types would allow the call. A part must
// have a written return type `void`, so that asking does not compile its body.
#pragma once

#include <type_traits>
#include <utility>

#include "any_block.hpp"

namespace flywheel {

/// A task type with `using Grain = flywheel::Warp;` is a warp task: on a GPU its block is one warp, with 32 threads for size()
/// and an eighth of a worker's scratch memory. The warps of a worker run such tasks side by side in compiled graphs that have
/// no others; elsewhere one of them runs, and the worker's other warps wait. For bodies of a microsecond or so with little to
/// share out: a warp begins and ends a task without waiting for others.
struct Warp {};

/// A node of a tree with `using Grain = flywheel::Thread;` runs on one thread, see Tree (host/api/tree.hpp).
struct Thread {};

}  // namespace flywheel

namespace flywheel::detail {

/// Stands for a GPU block, for parts that only GPUs have.
struct AnyFetch {
  FLYWHEEL_TASK void operator()(const void*, std::uint32_t) const {}
};
struct AnyNote {
  void operator()(const char*, const void*) const {}
};

/// Which members a task type has. The library calls them on a `const Task`: a member that only a `Task` has lacks its
/// const.
template <class Task>
struct Asks {
  using Cpu = AnyBlock<false>;
  using Gpu = AnyBlock<true>;

  template <class Block>
  static constexpr bool computes_on = requires(Task& task, Block& block, AnyOperands& operands) {
    task.compute(block, operands);
  };
  template <class Block>
  static constexpr bool computes_alone_on = requires(Task& task, Block& block) {
    task.compute(block);
  };
  template <class Block>
  static constexpr bool stores_on = requires(Task& task, Block& block) {
    task.store(block);
  };

  static constexpr bool compute = computes_on<Cpu> || computes_on<Gpu>;
  static constexpr bool compute_alone = computes_alone_on<Cpu> || computes_alone_on<Gpu>;
  static constexpr bool store = stores_on<Cpu> || stores_on<Gpu>;
  static constexpr bool operand_bytes = requires(Task & task) { task.operand_bytes(); };
  static constexpr bool pack = requires(Task & task, Cpu& block, unsigned char* to) { task.pack(block, to); };
  static constexpr bool dependent_pages = requires(Task & task) { task.dependent_pages(); };
  static constexpr bool dependents = requires(Task & task, AnyFetch& fetch) { task.dependents(fetch); };
  static constexpr bool buffers = requires(Task & task, AnyNote& note) { task.buffers(note); };
  static constexpr bool cost_ns = requires(Task & task) { task.cost_ns(); };
  static constexpr bool early = requires { Task::kEarly; };
  static constexpr bool grain = requires { typename Task::Grain; };
};

/// Whether the task is a warp task, see flywheel::Warp.
template <class Task>
constexpr bool is_warp_task() {
  if constexpr (Asks<const Task>::grain) return std::is_same_v<typename Task::Grain, Warp>;
  else return false;
}

/// Whether compiled graphs may have tasks of this type. A type that is for dynamic and phased graphs alone may say so, by
/// `static constexpr bool kCompiled = false;`: the kernel then has no code for them in compiled runs, and is built sooner.
template <class Task>
constexpr bool is_compiled() {
  if constexpr (requires { Task::kCompiled; }) return Task::kCompiled;
  else return true;
}

struct NamedCompute {
  int compute;
};
template <class Task>
struct AndNamedCompute : Task, NamedCompute {};
/// Whether the task has a member called `compute`, with any parameters: the name is then ambiguous in a type derived
/// from the task and from NamedCompute. A final type cannot be derived from; it counts as having one.
template <class Task>
constexpr bool names_compute() {
  if constexpr (std::is_final_v<Task>) return true;
  else return !requires {
      &AndNamedCompute<Task>::compute;
    };
}

/// Members for operands are const and come in pairs.
template <class Task>
constexpr void check_operand_members() {
  using Is = Asks<const Task>;
  using Meant = Asks<Task>;
  static_assert(Is::operand_bytes || !Meant::operand_bytes, "operand_bytes() of a task type must be const");
  static_assert(Is::pack || !Meant::pack, "pack() of a task type must be const");
  static_assert(Is::pack || !Is::operand_bytes,
                "a task type with operand_bytes() needs "
                "`template <class Block> FLYWHEEL_TASK void pack(Block& block, unsigned char* to) const`");
  static_assert(Is::operand_bytes || !Is::pack,
                "a task type with pack() needs `std::uint32_t operand_bytes() const`: without it nothing is packed");
  static_assert(Is::dependent_pages || !Meant::dependent_pages, "dependent_pages() of a task type must be const");
  static_assert(Is::dependents || !Meant::dependents, "dependents() of a task type must be const");
  static_assert(Is::dependents || !Is::dependent_pages,
                "a task type with dependent_pages() needs "
                "`template <class Fetch> FLYWHEEL_TASK void dependents(Fetch&& fetch) const`");
  static_assert(Is::dependent_pages || !Is::dependents,
                "a task type with dependents() needs `std::uint32_t dependent_pages() const`: without it nothing is fetched");
  static_assert(!Is::early || !Is::dependent_pages,
                "an early task has no dependent operands: those are fetched when the tasks before it are done");
}

/// Parts are const, and a store part needs a compute part. `kEarly` asks for no part: a portable body may wait, too.
template <class Task>
constexpr void check_parts() {
  using Is = Asks<const Task>;
  using Meant = Asks<Task>;
  constexpr bool has_more = Meant::operand_bytes || Meant::dependent_pages || Meant::store || Meant::early;
  static_assert(Is::compute || !Meant::compute, "compute() of a task type must be const: it would not be called");
  static_assert(Is::compute || !(has_more && Meant::compute_alone),
                "a compute part takes its operands, too: "
                "`template <class Block, class Operands> FLYWHEEL_TASK void compute(Block& block, Operands& operands) const`");
  static_assert(Is::store || !Meant::store, "store() of a task type must be const: it would not be called");
  static_assert(!Is::store || names_compute<Task>(),
                "store() ends what compute() began, and is not called without: add a compute part or change the name");
}

/// A warp task has a portable body alone: parts are for all warps of a worker, and an early task waits inside its body.
template <class Task>
constexpr void check_grain() {
  using Is = Asks<const Task>;
  static_assert(!Is::grain || is_warp_task<Task>(), "the Grain of a task type is flywheel::Warp, or is left out");
  static_assert(!is_warp_task<Task>() || !(Is::compute || Is::operand_bytes || Is::dependent_pages || Is::early),
                "a warp task has no compute part, no operands and no early begin: leave out `Grain`, or those");
}

/// Parts and operands are for compiled graphs.
template <class Task>
constexpr void check_compiled() {
  using Is = Asks<const Task>;
  static_assert(is_compiled<Task>() || !(Is::compute || Is::operand_bytes || Is::dependent_pages || Is::early),
                "a compute part, operands and an early begin are for compiled graphs: leave out `kCompiled = false`, or those");
}

/// Fails to compile, with a message, unless the runtime can use `Task` as a task type.
template <class Task>
constexpr bool check_task_type() {
  static_assert(std::is_trivially_copyable_v<Task>, "a task type must be trivially copyable: it is sent to the GPU as bytes");
  static_assert(sizeof(Task) <= kTaskArgBytes,
                "a task type must fit kTaskArgBytes (96): keep larger data in a device buffer and pass a pointer");
  static_assert(alignof(Task) <= 16, "a task type must not ask for more than 16-byte alignment");
  static_assert(std::is_invocable_v<const Task&, AnyBlock<false>&>,
                "a task type needs `template <class Block> FLYWHEEL_TASK auto operator()(Block& block) const`");
  check_operand_members<Task>();
  check_parts<Task>();
  check_grain<Task>();
  check_compiled<Task>();
  using Is = Asks<const Task>;
  using Meant = Asks<Task>;
  static_assert(Is::buffers || !Meant::buffers, "buffers() of a task type must be const: load() would check none of them");
  static_assert(Is::cost_ns || !Meant::cost_ns, "cost_ns() of a task type must be const: it would not count");
  return true;
}

}  // namespace flywheel::detail
