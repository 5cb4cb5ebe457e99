// The CPU half of a kernel entry: the worker's and the door's loops over CPU threads.
#pragma once

#include "runtime/cpu/crew.hpp"
#include "runtime/dynamic/door.hpp"
#include "runtime/dynamic/worker.hpp"
#include "runtime/records/entry.hpp"

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

}  // namespace flywheel
