// The one crossing between host and device code: what the host must know of a kernel to launch it.
#pragma once

#include <cstdint>
#include <typeinfo>

#include "device_state.hpp"

namespace flywheel {

struct TaskType {
  const std::type_info* type;
  std::size_t bytes;  // of its arguments
};

/// Filled by the user's translation unit from its list of task types (flywheel::start<...>()).
struct KernelEntry {
  const TaskType* types;
  std::uint32_t type_count;

  // GPU. `kernel` is null where the program was built without CUDA.
  const void* kernel;            // the GPU entry point, takes a DeviceState
  std::uint32_t block_threads;   // of every block
  bool has_operands;             // some task type takes operands: blocks keep pages for them

  // CPU: turn worker `id`'s loop, or the inbox poller's, on the calling thread until the runtime parks.
  void (*cpu_worker)(const DeviceState&, std::uint32_t id, DirectSlot* direct_slot, unsigned char* scratch);
  void (*cpu_poller)(const DeviceState&, DirectSlot* direct_slot);
};

/// The entry of the kernel for these task types; defined in <flywheel/task.cuh>.
template <class... Tasks>
const KernelEntry& kernel_entry();

}  // namespace flywheel
