// The kernel's task types as the loops of CPU workers call them: through pointers. So the loops are the same for all lists of
// types, and the host library has them compiled; a program compiles only what its bodies need (nvcc took 22 s for a small one
// when each list had loops of its own, and takes 10 s).
#pragma once

#include "../compiled/operands.hpp"
#include "../dynamic/task_list.hpp"
#include "block.hpp"

namespace flywheel::detail {

/// The parts of the task that a record names; see TaskList (dynamic/task_list.hpp), whose functions these are.
template <class P>
struct CpuTasks {
  void (*run)(const TaskRecord& record, CpuWorkerBlock<P>& block);
  void (*compute)(const TaskRecord& record, CpuWorkerBlock<P>& block, CpuOperands& operands);
  void (*pack)(const TaskRecord& record, CpuWorkerBlock<P>& block, unsigned char* to);
  /// Adds the task's dependent operands to `operands`; returns how many pages they take on a GPU.
  std::uint32_t (*add_dependents)(const TaskRecord& record, CpuOperands& operands);
};

template <class List, class P>
void run_on_cpu(const TaskRecord& record, CpuWorkerBlock<P>& of_worker) {
  CpuBlock<List, P> block(of_worker);
  List::run(record, block);
}
template <class List, class P>
void compute_on_cpu(const TaskRecord& record, CpuWorkerBlock<P>& of_worker, CpuOperands& operands) {
  CpuBlock<List, P> block(of_worker);
  List::compute(record, block, operands);
}
template <class List, class P>
void pack_on_cpu(const TaskRecord& record, CpuWorkerBlock<P>& of_worker, unsigned char* to) {
  CpuBlock<List, P> block(of_worker);
  List::pack(record, block, to);
}
template <class List>
std::uint32_t add_dependents_on_cpu(const TaskRecord& record, CpuOperands& operands) {
  std::uint32_t pages = 0;
  List::dependents(record, [&](const void* at, std::uint32_t bytes) {
    operands.add(at, bytes);
    pages += pages_of(bytes);
  });
  return pages;
}

/// The pointers for one list. Its address stays the same for the life of the program.
template <class List, class P = CpuPlatform>
inline constexpr CpuTasks<P> cpu_tasks{&run_on_cpu<List, P>, &compute_on_cpu<List, P>, &pack_on_cpu<List, P>,
                                       &add_dependents_on_cpu<List>};

}  // namespace flywheel::detail
