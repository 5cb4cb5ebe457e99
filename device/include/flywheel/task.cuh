// <flywheel/task.cuh>: for authors of task types. Include it in the file that calls flywheel::start<...>().
//
// Compiled by nvcc it brings the resident kernel for the given task types; compiled by a C++ compiler alone, only the
// CPU workers.
#pragma once

#include "../../../runtime/cpu/entry.hpp"
#include "../../../runtime/cpu/task_type.hpp"
#ifdef __CUDACC__
#include "../../kernel.cuh"
#endif

namespace flywheel {

namespace detail {
template <class... Tasks>
KernelEntry make_entry() {
  using List = TaskList<Tasks...>;
  static const TaskType types[] = {{&typeid(Tasks), sizeof(Tasks)}...};
  KernelEntry entry{types, List::kSize, nullptr, 0, List::kHasOperands, &cpu_worker<List>, &cpu_poller<>};
#ifdef __CUDACC__
  entry.kernel = reinterpret_cast<const void*>(&flywheel_kernel<List>);
  entry.block_threads = kBlockThreads;
#endif
  return entry;
}
}  // namespace detail

template <class... Tasks>
const KernelEntry& kernel_entry() {
  static_assert(sizeof...(Tasks) > 0, "flywheel::start<...>() needs at least one task type");
  static_assert((check_task_type<Tasks>() && ...));
  static const KernelEntry entry = detail::make_entry<Tasks...>();
  return entry;
}

}  // namespace flywheel
