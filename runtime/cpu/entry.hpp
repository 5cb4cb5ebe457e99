// The CPU half of a kernel entry: the worker's and the inbox poller's loops over CPU threads.
#pragma once

#include "executor.hpp"
#include "../dynamic/inbox_poller.hpp"
#include "../dynamic/worker.hpp"
#include "../records/entry.hpp"

namespace flywheel {

template <class List, class P = CpuPlatform>
void cpu_worker(const DeviceState& dev, std::uint32_t id, DirectSlot* direct_slot, unsigned char* scratch) {
  CpuExecutor<List, P> executor(dev, id, scratch);
  Worker<P, CpuExecutor<List, P>> worker(dev, id, executor, direct_slot);
  worker();
}

template <class P = CpuPlatform>
void cpu_poller(const DeviceState& dev, DirectSlot* direct_slot) {
  RunConstants work{};
  InboxPoller<P> poller(dev, *direct_slot, work);
  poller();
}

}  // namespace flywheel
