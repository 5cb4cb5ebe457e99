// The loops of a worker and of the inbox poller on a CPU thread. The host library's CPU engine (host/engine/cpu_engine.cpp)
// includes this header and has them compiled; a program that defines task types includes tasks.hpp, through
// <flywheel/task.cuh>.
#pragma once

#include "../dynamic/worker.hpp"
#include "../poller/inbox_poller.hpp"
#include "executor.hpp"

namespace flywheel::detail {

/// Runs worker `id` on the calling thread until the runtime parks or aborts. `scratch`: Options::scratch_bytes for its
/// bodies.
template <class P = CpuPlatform>
void cpu_worker(const DeviceState& dev, const CpuTasks<P>& tasks, std::uint32_t id, DirectSlot* direct_slot,
                unsigned char* scratch) {
  CpuExecutor<P> executor(dev, tasks, id, scratch);
  Worker<P, CpuExecutor<P>> worker(dev, id, executor, direct_slot);
  worker();
}

/// Runs the inbox poller on the calling thread until the runtime parks or aborts.
template <class P = CpuPlatform>
void cpu_poller(const DeviceState& dev, DirectSlot* direct_slot) {
  PollerBuffer buffer{};
  InboxPoller<P> poller(dev, *direct_slot, buffer);
  poller();
}

}  // namespace flywheel::detail
