// The CPU half of a kernel entry (records/entry.hpp): the loops of a worker and of the inbox poller on a CPU thread.
// <flywheel/task.cuh> includes this header.
#pragma once

#include "../dynamic/inbox_poller.hpp"
#include "../dynamic/worker.hpp"
#include "../records/entry.hpp"
#include "executor.hpp"

namespace flywheel::detail {

/// Runs worker `id` on the calling thread until the runtime parks or aborts. `scratch`: Options::scratch_bytes for its
/// bodies.
template <class List, class P = CpuPlatform>
void cpu_worker(const DeviceState& dev, std::uint32_t id, DirectSlot* direct_slot, unsigned char* scratch) {
  CpuExecutor<List, P> executor(dev, id, scratch);
  Worker<P, CpuExecutor<List, P>> worker(dev, id, executor, direct_slot);
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
