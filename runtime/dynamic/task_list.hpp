// The kernel's task types: a compile-time list with static dispatch. Executors and the roles of compiled runs call the
// parts of a task through it.
#pragma once

#include <type_traits>
#include <utility>

#include "../base/stamped.hpp"
#include "../records/task_type.hpp"
#include "block.hpp"

namespace flywheel::detail {

/// Calls the portable body, operator(), which returns nothing or a small plain value: the task's result.
template <class Task, class Block>
FLYWHEEL_TASK void call_body(const TaskRecord& record, Block& block) {
  const Task& task = *reinterpret_cast<const Task*>(record.args);
  using Result = decltype(task(block));
  if constexpr (std::is_void_v<Result>) {
    task(block);
  } else {
    const Result result = task(block);
    if (block.rank() == 0) block.write_result(result);
  }
}

/// Runs the body on the calling block; of a warp task on a block of its own, that is one warp.
template <class Task, class Block>
FLYWHEEL_TASK void run_body(const TaskRecord& record, Block& block) {
  if constexpr (is_warp_task<Task>()) block.on_one_warp([&](auto& warp) { detail::call_body<Task>(record, warp); });
  else call_body<Task>(record, block);
}

/// A task type with constant operands, which it takes from its worker's operand stream.
template <class Task>
concept HasOperands = requires(const Task& task) {
  task.operand_bytes();
};
/// A task type with dependent operands, which other tasks write.
template <class Task>
concept HasDependents = requires(const Task& task) {
  task.dependent_pages();
};

/// Task types that name their common first base as ComputeAs share the code of its compute part: see operands.hpp.
template <class Task, class = void>
struct ComputeAs {
  using Type = Task;
};
template <class Task>
struct ComputeAs<Task, std::void_t<typename Task::ComputeAs>> {
  using Type = typename Task::ComputeAs;
  static_assert(std::is_base_of_v<Type, Task>, "ComputeAs names a task's first base, which has its compute part");
};

/// The portable body, out of line: it then has a register allocation of its own.
template <class Task, class Block>
FLYWHEEL_COLD void run_portable(const TaskRecord& record, Block& block) {
  run_body<Task>(record, block);
  block.sync();  // all threads have finished with scratch memory
}

/// Runs the compute part. It is inlined: a call would save registers to local memory, and on a GPU every acquire empties the L1
/// cache before they are restored.
template <class Task, class Block, class Operands>
FLYWHEEL_TASK void run_compute(const TaskRecord& record, Block& block, Operands& operands) {
  using Part = typename ComputeAs<Task>::Type;
  static_assert(std::is_void_v<decltype(std::declval<const Task&>()(block))>,
                "a task with a compute part returns nothing: write to a buffer");
  reinterpret_cast<const Part*>(record.args)->compute(block, operands);
}

/// The store part of a task whose compute part ran, on the store warp.
template <class Task, class Operands, class Block>
FLYWHEEL_TASK void run_store(const TaskRecord& record, Block& block) {
  const Task& task = *reinterpret_cast<const Task*>(record.args);
  if constexpr (requires(Operands & operands) {
                  task.compute(block, operands);
                  task.store(block);
                })
    task.store(block);
}

/// Calls fetch(pointer, bytes) for each dependent operand.
template <class Task, class Fetch>
FLYWHEEL_TASK void name_dependents(const TaskRecord& record, Fetch&& fetch) {
  if constexpr (HasDependents<Task>) reinterpret_cast<const Task*>(record.args)->dependents(fetch);
}

/// A task type with a body that is to be inlined into the GPU's kernel, see TaskList::run_in_kernel().
template <class Task, class Block>
concept HasInKernel = requires(const Task& task, Block& block) {
  task.in_kernel(block);
};
/// Whether a task type has look_ahead().
template <class Task, class Lanes>
concept LooksAhead = requires(const Task& task, const Lanes& lanes) {
  task.look_ahead(lanes);
};

/// Whether a task type has serve_beside().
template <class Task, class Lanes>
concept HasServeBeside = requires(const Lanes& lanes) {
  Task::serve_beside(lanes);
};

/// Whether a task type has prefetch() and drop_prefetched().
template <class Task, class Block>
concept Prefetches = requires(const Task& task, Block& block) {
  { task.prefetch(block) } -> std::same_as<bool>;
  task.drop_prefetched(block);
};

/// Packs the task's constant operands, at `to`.
template <class Task, class Block>
FLYWHEEL_COLD void run_pack(const TaskRecord& record, Block& block, unsigned char* to) {
  const Task& task = *reinterpret_cast<const Task*>(record.args);
  if constexpr (HasOperands<Task>) task.pack(block, to);
}

/// A kernel's task types, as flywheel::start<...>() lists them. A record names its type by the position in the list.
template <class... Tasks>
struct TaskList {
  static constexpr std::uint32_t kSize = sizeof...(Tasks);

  /// Position of `Task` in the list.
  template <class Task>
  FLYWHEEL_TASK static constexpr std::uint32_t index_of() {
    static_assert((std::is_same_v<Task, Tasks> || ...),
                  "this task type is not in the list given to flywheel::start<...>(): add it there");
    std::uint32_t at = 0;
    const bool found = ((std::is_same_v<Task, Tasks> || (++at, false)) || ...);
    return found ? at : kSize;
  }

  /// Runs the record's portable body on the calling block.
  template <class Block>
  FLYWHEEL_TASK static void run(const TaskRecord& record, Block& block) {
    std::uint32_t at = 0;
    const std::uint32_t type = record.header.type;
    (void)((at++ == type && (run_body<Tasks>(record, block), true)) || ...);
  }

  /// The same for the GPU's dynamic and phased runs. A task type may have in_kernel(block), which does what its body does and
  /// is inlined into the kernel: for instructions that work only there. Then the bodies of other types are not.
  template <class Block>
  static constexpr bool kHasInKernel = (HasInKernel<Tasks, Block> || ...);
  /// Whether the load warp reads ahead of phases. Of a list without reason for that, compute warps do so in less time (a
  /// boundary takes 0.93 us against 1.01, see device/tuning.md).
  template <class Block, class Lanes>
  static constexpr bool kLooksAhead = kHasInKernel<Block> || (LooksAhead<Tasks, Lanes> || ...);
  template <class Block>
  FLYWHEEL_TASK static void run_in_kernel(const TaskRecord& record, Block& block) {
    if constexpr (kHasInKernel<Block>) {
      if ((run_in_place<Tasks>(record, block) || ...)) return;
      run_beside_kernel(record, block);
    } else {
      run(record, block);
    }
  }

  /// The same where each task is of a type without a compute part: the bodies of the others are left out.
  template <class Block>
  FLYWHEEL_TASK static void run_without_part(const TaskRecord& record, Block& block) {
    std::uint32_t at = 0;
    const std::uint32_t type = record.header.type;
    const auto run_one = [&]<class Task>(std::type_identity<Task>) {
      if constexpr (is_compiled<Task>() && !Asks<const Task>::compute) run_body<Task>(record, block);
      return true;
    };
    (void)((at++ == type && run_one(std::type_identity<Tasks>{})) || ...);
  }

  /// The same where each task is a warp task, and the block is a warp.
  template <class Block>
  FLYWHEEL_TASK static void run_on_warp(const TaskRecord& record, Block& block) {
    std::uint32_t at = 0;
    const std::uint32_t type = record.header.type;
    const auto run_one = [&]<class Task>(std::type_identity<Task>) {
      if constexpr (is_compiled<Task>() && is_warp_task<Task>()) call_body<Task>(record, block);
      return true;
    };
    (void)((at++ == type && run_one(std::type_identity<Tasks>{})) || ...);
  }
  static constexpr bool kHasWarpTasks = (is_warp_task<Tasks>() || ...);

  // Compiled runs: the parts of a task, see operands.hpp.
  template <class Block, class Operands>
  FLYWHEEL_TASK static void compute(const TaskRecord& record, Block& block, Operands& operands) {
    if (has_part<Block, Operands>(record.header.type)) compute_part(record, block, operands);
    else compute_whole<Operands>(record, block);
  }
  /// Whether tasks of a type have a compute part for this block and these operands. They run by compute_part(), others by
  /// compute_whole(), portably.
  template <class Block, class Operands>
  FLYWHEEL_TASK static constexpr bool has_part(std::uint32_t type) {
    std::uint32_t at = 0;
    return ((at++ == type && kHasPart<Tasks, Block, Operands>) || ...);
  }
  template <class Block, class Operands>
  FLYWHEEL_TASK static void compute_part(const TaskRecord& record, Block& block, Operands& operands) {
    compute_first_of<Tasks...>(record, block, operands);
  }
  template <class Operands, class Block>
  FLYWHEEL_TASK static void compute_whole(const TaskRecord& record, Block& block) {
    std::uint32_t at = 0;
    const std::uint32_t type = record.header.type;
    const auto run_one = [&]<class Task>(std::type_identity<Task>) {
      if constexpr (is_compiled<Task>() && !kHasPart<Task, Block, Operands>) run_portable<Task>(record, block);
      return true;
    };
    (void)((at++ == type && run_one(std::type_identity<Tasks>{})) || ...);
  }
  template <class Operands, class Block>
  FLYWHEEL_TASK static void store(const TaskRecord& record, Block& block) {
    std::uint32_t at = 0;
    const std::uint32_t type = record.header.type;
    (void)((at++ == type && (run_store<Tasks, Operands>(record, block), true)) || ...);
  }
  /// Phased runs on a GPU: a warp, in the phase before the task runs. A type may have look_ahead(lanes), which brings near what
  /// its body will read and no task writes.
  template <class Lanes>
  FLYWHEEL_TASK static void look_ahead(const TaskRecord& record, const Lanes& lanes) {
    const auto of_type = [&]<class Task>(std::type_identity<Task>) {
      if constexpr (LooksAhead<Task, Lanes>)
        if (record.header.type == index_of<Task>()) reinterpret_cast<const Task*>(record.args)->look_ahead(lanes);
    };
    (of_type(std::type_identity<Tasks>{}), ...);
  }
  /// Dynamic and phased runs on a GPU: the store warp, where a body has called it. Types that have serve_beside(lanes) have the
  /// same one.
  template <class Lanes>
  FLYWHEEL_TASK static void serve_beside(const Lanes& lanes) {
    bool done = false;
    const auto by_type = [&]<class Task>(std::type_identity<Task>) {
      if constexpr (HasServeBeside<Task, Lanes>) {
        if (!done) Task::serve_beside(lanes);
        done = true;
      }
    };
    (by_type(std::type_identity<Tasks>{}), ...);
  }
  /// Phased runs on a GPU whose phases are read ahead: a warp, in front of the boundary before the task's phase. A type may
  /// have prefetch(block), which begins copies to scratch memory of what no task writes, and says whether it has; if so the
  /// body finds block.prefetched(). If the run ends at that boundary drop_prefetched(block) waits until they have landed.
  template <class Block>
  FLYWHEEL_TASK static bool prefetch(const TaskRecord& record, Block& block) {
    bool prefetched = false;
    const auto of_type = [&]<class Task>(std::type_identity<Task>) {
      if constexpr (Prefetches<Task, Block>)
        if (record.header.type == index_of<Task>()) prefetched = reinterpret_cast<const Task*>(record.args)->prefetch(block);
    };
    (of_type(std::type_identity<Tasks>{}), ...);
    return prefetched;
  }
  template <class Block>
  FLYWHEEL_TASK static void drop_prefetched(const TaskRecord& record, Block& block) {
    const auto of_type = [&]<class Task>(std::type_identity<Task>) {
      if constexpr (Prefetches<Task, Block>)
        if (record.header.type == index_of<Task>()) reinterpret_cast<const Task*>(record.args)->drop_prefetched(block);
    };
    (of_type(std::type_identity<Tasks>{}), ...);
  }
  template <class Block>
  FLYWHEEL_TASK static void pack(const TaskRecord& record, Block& block, unsigned char* to) {
    std::uint32_t at = 0;
    const std::uint32_t type = record.header.type;
    (void)((at++ == type && (run_pack<Tasks>(record, block, to), true)) || ...);
  }
  template <class Fetch>
  FLYWHEEL_TASK static void dependents(const TaskRecord& record, Fetch&& fetch) {
    std::uint32_t at = 0;
    const std::uint32_t type = record.header.type;
    (void)((at++ == type && (name_dependents<Tasks>(record, fetch), true)) || ...);
  }
  static constexpr bool kHasOperands = ((HasOperands<Tasks> || HasDependents<Tasks>) || ...);
  static constexpr bool kHasDependents = (HasDependents<Tasks> || ...);

 private:
  /// If the record is of type `Task`, which has in_kernel(). True if it was.
  template <class Task, class Block>
  [[gnu::always_inline]] FLYWHEEL_TASK static bool run_in_place(const TaskRecord& record, Block& block) {
    if constexpr (HasInKernel<Task, Block>) {
      if (record.header.type != index_of<Task>()) return false;
      reinterpret_cast<const Task*>(record.args)->in_kernel(block);
      return true;
    }
    return false;
  }
  /// Bodies of the types that have none in the kernel. The block is a copy, so that it stays in registers.
  template <class Block>
  FLYWHEEL_COLD static void run_beside_kernel(const TaskRecord& record, Block block) {
    std::uint32_t at = 0;
    const std::uint32_t type = record.header.type;
    const auto run_one = [&]<class Task>(std::type_identity<Task>) {
      if constexpr (!HasInKernel<Task, Block>) run_body<Task>(record, block);
      return true;
    };
    (void)((at++ == type && run_one(std::type_identity<Tasks>{})) || ...);
  }

  template <class Task, class Block, class Operands>
  static constexpr bool kHasPart = requires(const typename ComputeAs<Task>::Type& part, Block& block, Operands& operands) {
    part.compute(block, operands);
  };

  template <class Task, class... Others, class Block, class Operands>
  FLYWHEEL_TASK static void compute_first_of(const TaskRecord& record, Block& block, Operands& operands) {
    if constexpr (kHasPart<Task, Block, Operands>)
      if (computes<Task>(record.header.type)) return run_compute<Task>(record, block, operands);
    if constexpr (sizeof...(Others) > 0) compute_first_of<Others...>(record, block, operands);
  }

  /// Whether tasks of `type` run the compute part of `Task`, which has one. Of the types that share one, the first in the list
  /// stands for all.
  template <class Task>
  FLYWHEEL_TASK static constexpr bool computes(std::uint32_t type) {
    using Part = typename ComputeAs<Task>::Type;
    std::uint32_t at = 0, first = kSize;
    bool shares = false;
    const auto look = [&](bool same) {
      if (same && first == kSize) first = at;
      shares |= same && at == type;
      ++at;
    };
    (look(std::is_same_v<Part, typename ComputeAs<Tasks>::Type>), ...);
    return first == index_of<Task>() && shares;
  }
};

// ---- batches: tasks without a graph; host/load/batch_blocks.hpp has the host's end ----
//
// They travel to the device in blocks of up to kBatchTasks records. The host writes the records of a block to pinned memory
// and submits a run. Its message carries the record of a task of the library's own, which copies the block to device memory
// with all threads of a worker and then publishes the tasks as the roots of the run. So the records cross PCIe once, in large
// pieces, and no worker waits for that but this one.

/// Copies the records to the arena, shared out over the threads of the block.
template <class Block>
FLYWHEEL_TASK void copy_batch(const FetchBatch& batch, TaskRecord* records, Block& block) {
  struct alignas(16) Piece {
    std::uint64_t words[2];
  };
  constexpr int kAtOnce = Block::kOnGpu ? 8 : 1;  // loads under way for each thread: a trip across PCIe takes 1 us
  const auto* from = reinterpret_cast<const Piece*>(batch.from);
  auto* to = reinterpret_cast<Piece*>(records + batch.first);
  const int n = static_cast<int>(batch.count * (sizeof(TaskRecord) / sizeof(Piece)));
  for (int base = block.rank(); base < n; base += kAtOnce * block.size()) {
    Piece pieces[kAtOnce];
    for (int k = 0; k < kAtOnce; ++k)
      if (base + k * block.size() < n) pieces[k] = from[base + k * block.size()];
    for (int k = 0; k < kAtOnce; ++k)
      if (base + k * block.size() < n) to[base + k * block.size()] = pieces[k];
  }
}

/// The body of that task.
template <class Block>
FLYWHEEL_COLD void fetch_batch(const TaskRecord& record, Block& block) {
  const FetchBatch& batch = *reinterpret_cast<const FetchBatch*>(record.args);
  if (batch.count == 0) return;  // of a run that only follows others
  copy_batch(batch, block.records(), block);
  block.sync();  // publish_own_roots() releases what all threads wrote
  if (block.leader()) block.publish_own_roots();
}

/// Runs the body of a task of a dynamic run: one of the list's types, or fetch_batch(). `Runs` is the list, or what calls
/// its bodies in its place.
template <class Runs, class Block>
FLYWHEEL_TASK void run_dynamic(const TaskRecord& record, Block& block) {
  if (record.header.type != kFetchBatchType) {
    if constexpr (Block::kOnGpu) return Runs::run_in_kernel(record, block);
    else return Runs::run(record, block);
  }
  Block copy = block;  // the call takes its address: the caller's own block stays in registers
  fetch_batch(record, copy);
}

}  // namespace flywheel::detail
