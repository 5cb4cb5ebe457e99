// The load warp in phased runs: it reads what coming phases begin with, so that no compute warp waits for that behind a
// boundary. collective.cuh includes it.
//
// Nothing that it reads is written while the run is in flight. It reads a phase while the one before runs: thread 0 waits for
// that before it arrives at the boundary between, at which the run may end. It lets the first task of each phase name memory
// that it will read, see TaskList::look_ahead().
#pragma once

#include "executor_shared.cuh"

namespace flywheel::detail {

/// One thread, before any phased run and before each: `first` says which.
__device__ __forceinline__ void init_phases_ahead(PhasesAhead& ahead, bool first) {
  // No order of their own: what follows in prepare() and control_phased_run() publishes them to the warps of the block.
  for (std::uint32_t i = 0; i < kPhasesAhead; ++i) {
    if (!first) ptx::mbarrier_invalidate(ahead.full[i]), ptx::mbarrier_invalidate(ahead.returned[i]);
    ptx::mbarrier_init(ahead.full[i], 1);
    ptx::mbarrier_init(ahead.returned[i], 1);
  }
  ahead.over = 0;
}

/// All lanes: waits until entry n may be written. False if the run has ended.
__device__ __forceinline__ bool await_entry(PhasesAhead& ahead, std::uint32_t n) {
  if (n < kPhasesAhead) return true;
  // Acquire, block scope: pairs with cross_phase(). No limit: the control thread says when the run is over.
  const auto is_returned = [&] { return ptx::mbarrier_test(ahead.returned[n % kPhasesAhead], (n / kPhasesAhead - 1) & 1); };
  for (std::uint32_t spins = 0; !__all_sync(0xffffffffu, is_returned()); ++spins) {
    // Relaxed: pairs with control_phased_run(); this warp only leaves.
    if (__any_sync(0xffffffffu, ThreadPlatform::block(ahead.over).load(Order::relaxed) != 0)) return false;
    ThreadPlatform::pause(spins);
  }
  return true;
}

/// All lanes: reads the phases of a run, one after the other.
template <class List>
__device__ __forceinline__ void read_phases_ahead(const DeviceState& dev) {
  PhasesAhead& ahead = executor_shared().block.ahead;
  const PhasesBegin begin = ahead.begin;
  if (begin.is_over()) return;  // the run's graph may be gone
  const TaskRecord* const records = dev.records + begin.first_record;
  const std::uint32_t lane = threadIdx.x % 32, worker = blockIdx.x;
  std::uint32_t n = 0;
  for (PhaseCursor cursor(dev, begin); !cursor.is_over() && await_entry(ahead, n); cursor.next(), ++n) {
    const Phase phase = cursor.phase();
    const bool has_task = phase.grid || worker < phase.count;
    const TaskRecord& first = records[phase.first + (phase.grid || !has_task ? 0 : worker)];
    const std::uint32_t word = has_task ? reinterpret_cast<const std::uint32_t*>(&first)[lane] : 0;
    PhasesAhead::Entry& entry = ahead.entries[n % kPhasesAhead];
    reinterpret_cast<std::uint32_t*>(&ahead.first[n % kPhasesAhead])[lane] = word;
    if (lane == 0) {
      entry.phase = phase;
      entry.pass = cursor.pass();
      entry.number = cursor.number();
      entry.is_last = cursor.is_last();
      entry.is_last_of_all = cursor.is_last_of_all();
    }
    if (has_task) List::look_ahead(first, WarpLanes{});
    __syncwarp();  // orders what the lanes wrote and read before the arrival of one
    // Release, block scope: pairs with await_phase(); covers the entry. So what was read here was read before any boundary at
    // which the run may end, and its graph may go.
    if (lane == 0) ptx::mbarrier_arrive(ahead.full[n % kPhasesAhead]);
  }
}

/// The load warp's part of a phased run: none where the compute warps read for themselves.
template <class List>
[[gnu::noinline]] __device__ void look_ahead_of_phases(const DeviceState& dev) {
  if constexpr (GpuBlock<List>::kLoadWarpLooksAhead) read_phases_ahead<List>(dev);
  __syncwarp();  // orders what the lanes did before the arrival of one
  // Release, block scope: pairs with control_phased_run(); the next run begins with new barriers.
  if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(executor_shared().returned);
}

}  // namespace flywheel::detail
