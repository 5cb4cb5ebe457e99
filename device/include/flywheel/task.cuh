// <flywheel/task.cuh>: for authors of task types. Include it in the one file that calls flywheel::start<...>().
//
// Compiled by nvcc, it brings the kernel for the given task types and the CPU workers. Compiled by a C++ compiler alone,
// it brings only the CPU workers.
//
//   struct Scale {
//     float* x; int n; float by;
//     template <class Block> FLYWHEEL_TASK void operator()(Block& block) const {
//       block.stream(n, flywheel::reads(x), flywheel::writes(x), [&](float value) { return by * value; });
//     }
//   };
//   auto rt = flywheel::start<Scale>();
#pragma once

#include "../../../runtime/cpu/tasks.hpp"
#include "../../../runtime/records/entry.hpp"
#include "../../../runtime/records/task_type.hpp"
#include "../../../runtime/tree/tree.hpp"
#ifdef __CUDACC__
#include "../../kernel.cuh"
#endif

namespace flywheel::detail {
template <class... Tasks>
KernelEntry make_entry() {
  using List = TaskList<Tasks...>;
  static const TaskType types[] = {{&typeid(Tasks), sizeof(Tasks)}...};
  KernelEntry entry{types, List::kSize, nullptr, 0, List::kHasOperands, &cpu_tasks<List>};
#ifdef __CUDACC__
  entry.kernel = reinterpret_cast<const void*>(&flywheel_kernel<List>);
  entry.block_threads = kBlockThreads;
#endif
  return entry;
}

/// The entry that flywheel::start<Tasks...>() passes to the host library: the kernel, the CPU workers, and the task types
/// with their sizes. One object for each list of types, for the life of the program. Fails to compile, with a
/// sentence that says why, if the list is empty or a type cannot be a task.
template <class... Tasks>
const KernelEntry& kernel_entry() {
  static_assert(sizeof...(Tasks) > 0, "flywheel::start<...>() needs at least one task type");
  static_assert((check_task_type<Tasks>() && ...));
  static const KernelEntry entry = make_entry<Tasks...>();
  return entry;
}

}  // namespace flywheel::detail
