// The CPU half of a kernel entry: the worker's and the door's loops over CPU threads.
#pragma once

#include "runtime/cpu_crew.hpp"
#include "runtime/door.hpp"
#include "runtime/entry.hpp"
#include "runtime/worker.hpp"

namespace flywheel {

template <class List, class P = CpuPlatform>
void cpu_worker(const World& world, std::uint32_t id, Porch* porch, unsigned char* scratch) {
  CpuCrew<List, P> crew(world, id, scratch);
  Worker<P, CpuCrew<List, P>> worker(world, id, crew, porch);
  worker();
}

template <class P = CpuPlatform>
void cpu_door(const World& world, Porch* porch) {
  RunConstants desk{};
  Door<P> door(world, *porch, desk);
  door();
}

/// A body must be usable by the runtime; the sentences are what a user reads when it is not.
template <class Task>
constexpr bool check_task_type() {
  static_assert(std::is_trivially_copyable_v<Task>,
                "a task type must be trivially copyable: it is sent to the GPU as bytes");
  static_assert(sizeof(Task) <= kTaskArgBytes,
                "a task type must fit kTaskArgBytes (96): keep larger data in a device buffer and pass a pointer");
  static_assert(alignof(Task) <= 16, "a task type must not ask for more than 16-byte alignment");
  static_assert(std::is_invocable_v<const Task&, CpuBlock<AnyTaskList>&>,
                "a task type needs `template <class Block> FLYWHEEL_TASK auto operator()(Block& block) const`");
  return true;
}

}  // namespace flywheel
