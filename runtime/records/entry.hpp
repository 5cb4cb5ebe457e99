// The interface between host and device code: what the host needs to know of a kernel, or of CPU workers, to launch them.
//
// The user's translation unit defines the entry (<flywheel/task.cuh>); the host library reads it.
#pragma once

#include <cstdint>
#include <typeinfo>

#include "device_state.hpp"

namespace flywheel::detail {

template <class P>
struct CpuTasks;

/// One task type of a kernel.
struct TaskType {
  const std::type_info* type;
  std::size_t bytes;  // size of its arguments
};

/// The entry of one list of task types (flywheel::start<...>()).
struct KernelEntry {
  const TaskType* types;
  std::uint32_t type_count;

  // GPU. `kernel` is null where the program was built without CUDA.
  const void* kernel;           // the GPU entry point; its parameter is a DeviceState
  std::uint32_t block_threads;  // threads of a block
  bool has_operands;            // a task type takes operands, so blocks need pages

  // CPU: the task types as CPU workers call them (cpu/tasks.hpp).
  const CpuTasks<CpuPlatform>* cpu_tasks;
};

/// The entry of the kernel for these task types; defined in <flywheel/task.cuh>.
template <class... Tasks>
const KernelEntry& kernel_entry();

}  // namespace flywheel::detail
