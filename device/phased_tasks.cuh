// The compute warps in phased runs whose phases the load warp reads ahead (look_ahead.cuh): from one task to the next, and
// across the boundaries between phases. executor.cuh includes it.
//
// Between two tasks all compute threads meet twice. Between the two barriers thread 0 crosses the boundary if the phase is at
// its end, while another warp loads the next record. The two do not depend on each other: each follows the phases by itself.
#pragma once

#include "executor_shared.cuh"

namespace flywheel::detail {

inline constexpr int kRecordWarp = 1;  // of the compute warps

/// The block for the task in a slot, or for the tasks of a phased run.
template <class List>
__device__ __forceinline__ GpuBlock<List> make_block(std::uint32_t slot) {
  ExecutorShared& shared = executor_shared();
  GpuBlock<List> block(shared.contexts[slot], shared.block,
                       List::kHasOperands ? page_scratch_memory() : scratch_memory(shared.dev));
  if constexpr (List::kHasOperands) block.borrow_pages();
  return block;
}

/// Waits until the load warp has read the n-th phase of the run. Acquire, block scope: pairs with read_phases_ahead(). No
/// limit: that waits for entries only, which thread 0 returns.
__device__ __forceinline__ const PhasesAhead::Entry& await_phase(PhasesAhead& ahead, std::uint32_t n) {
  const std::uint32_t at = n % kPhasesAhead;
  while (!ptx::mbarrier_test(ahead.full[at], n / kPhasesAhead & 1)) {}
  return ahead.entries[at];
}

/// What thread 0 has read of the end of a phase before all threads have come to it: other workers wait for what it does then.
struct PhaseEnds {
  std::uint32_t taken;  // the phase's number in the run
  bool is_last, is_last_of_all;
  std::uint32_t asked;
};
__device__ __forceinline__ PhaseEnds read_phase_ends(BlockShared& shared, std::uint32_t taken) {
  const PhasesAhead::Entry& entry = shared.ahead.entries[taken % kPhasesAhead];
  const PhaseEnds ends{taken, entry.is_last, entry.is_last_of_all,
                       // Relaxed: pairs with control_phased_run().
                       ThreadPlatform::block(shared.phase_asked).load(Order::relaxed)};
  // All that the load warp reads of the graph is read before the boundary: behind it the graph may be gone.
  if (!ends.is_last_of_all) await_phase(shared.ahead, taken + 1);
  return ends;
}

/// Thread 0, at the end of a phase: goes to the boundary.
__device__ __forceinline__ void cross_phase(TaskContext& context, BlockShared& shared, const PhaseEnds& now) {
  using P = ThreadPlatform;
  const bool go_on = cross_boundary<P>(context, shared.clock, now.is_last ? Boundary::pass : Boundary::phase, now.asked);
  const PhasesAhead::Entry& entry = shared.ahead.entries[now.taken % kPhasesAhead];
  // A grid_sync() may have ended the run before: then this boundary was for the others.
  const bool early = !go_on || shared.ends & kEndsHere;
  if (early || now.is_last_of_all) {
    shared.way.end = early ? PhasesEnd{entry.pass, true, now.is_last, entry.number + 1} : PhasesEnd{entry.pass, false, true, 0};
    shared.ends = kEndsHere;
    return;
  }
  if (now.is_last) context.outcome.iteration = entry.pass + 1;
  // Release, block scope: pairs with await_entry(); no compute warp reads the entry any more.
  ptx::mbarrier_arrive(shared.ahead.returned[now.taken % kPhasesAhead]);
}

/// The reading warp: brings the record of this worker's next task, in the phase `n` or, if that has none left, the next one.
__device__ __forceinline__ void read_task(const DeviceState& dev, BlockShared& shared, std::uint32_t n, bool is_first) {
  const std::uint32_t lane = threadIdx.x % 32, worker = blockIdx.x;
  PhasedWay& way = shared.way;
  const Phase phase = await_phase(shared.ahead, n).phase;
  const std::uint32_t task = is_first ? (phase.grid ? 0 : worker) : way.next_task;
  const TaskRecord& record =
      is_first ? shared.ahead.first[n % kPhasesAhead] : dev.records[shared.ahead.begin.first_record + phase.first + task];
  // Relaxed: the barrier of all compute threads behind this orders it for them. Pairs with the load in control_phased_run(),
  // for reports.
  ThreadPlatform::block(reinterpret_cast<std::uint32_t*>(&shared.phase_record)[lane])
      .store(reinterpret_cast<const std::uint32_t*>(&record)[lane], Order::relaxed);
  __syncwarp();  // orders what all lanes have read of `way` before what one writes there
  if (lane != 0) return;
  way.taken = n;
  way.next_task = task + (phase.grid ? phase.count : dev.workers);
  way.has_task = task < phase.count;
  way.has_more = way.next_task < phase.count;
  way.prefetched = false;
}

/// The reading warp, behind read_task(), while thread 0 is at a boundary: the task behind it may have copies begun to scratch
/// memory, which no body uses now.
template <class List>
__device__ __forceinline__ void prefetch_task(BlockShared& shared, std::uint32_t slot) {
  __syncwarp();  // orders what read_task() left before what all lanes read
  if (!shared.way.has_task) return;
  GpuBlock<List> block = make_block<List>(slot);
  const bool prefetched = List::prefetch(shared.phase_record, block);
  // Orders the lanes' reads of `way` before this; the barrier of all compute threads behind it publishes it.
  __syncwarp();
  if (threadIdx.x % 32 == 0) shared.way.prefetched = prefetched;
}
/// All compute threads, at the end of a run: the copies of a task that is not to come have ended.
template <class List>
__device__ __forceinline__ void drop_prefetched(BlockShared& shared, std::uint32_t slot, bool is_over) {
  if (ComputeThreads::warp() != kRecordWarp) return;
  if (!is_over && shared.way.prefetched) {
    GpuBlock<List> block = make_block<List>(slot);
    List::drop_prefetched(shared.phase_record, block);
  }
  __syncwarp();  // orders the lanes' reads of `way` before this; the end of the command publishes it, see compute_loop()
  if (threadIdx.x % 32 == 0) shared.way.prefetched = false;
}

/// Thread 32: a step of a phased run is odd while a task of this worker runs, and another number for each task. Thread 0, which
/// all workers wait for, does not show it. Relaxed: one thread writes it; pairs with the load in control_phased_run(), which
/// only compares steps.
__device__ __forceinline__ void show_step(BlockShared& shared, bool runs) {
  if (ComputeThreads::rank() != 32 * kRecordWarp) return;
  const auto step = ThreadPlatform::block(shared.phase_step);
  const std::uint32_t now = step.load(Order::relaxed);
  step.store(runs ? now | 1 : (now + 1) & ~1u, Order::relaxed);
}

/// All compute threads, behind the barrier after read_task(): the record of the task that comes next.
__device__ __forceinline__ const TaskRecord* begin_task(BlockShared& shared) {
  show_step(shared, true);
  if (ComputeThreads::leader()) shared.clock.local = shared.phase_record.header.local;
  return &shared.phase_record;
}

/// All compute threads: after a task, the record of the next one, wherever in the run that is. Null at the run's end.
template <class List>
[[gnu::noinline]] __device__ const TaskRecord* next_phased_task(std::uint32_t slot) {
  ExecutorShared& all = executor_shared();
  BlockShared& shared = all.block;
  TaskContext& context = all.contexts[slot];
  do {
    const bool has_more = shared.way.has_more, at_end = ComputeThreads::leader() && !has_more;
    const std::uint32_t taken = shared.way.taken;
    const bool is_over = !has_more && shared.ahead.entries[taken % kPhasesAhead].is_last_of_all;
    PhaseEnds ends{};
    if (at_end) ends = read_phase_ends(shared, taken);
    ComputeThreads::sync();  // all threads have ended the body, and have read where the worker is
    show_step(shared, false);
    if (at_end) {
      cross_phase(context, shared, ends);
    } else if (ComputeThreads::leader()) {
      note_outcome<ThreadPlatform>(context, shared.clock);
      show_progress<ThreadPlatform>(all.dev, context.worker);
    } else if (ComputeThreads::warp() == kRecordWarp && !is_over) {
      read_task(all.dev, shared, has_more ? taken : taken + 1, !has_more);
      if (!has_more) prefetch_task<List>(shared, slot);
    }
    ComputeThreads::sync();  // all threads see what comes next, and what thread 0 has acquired
    if (shared.ends) {
      if (shared.ends & kEndsHere) {
        if (ComputeThreads::leader()) all.phases_end = shared.way.end;
        drop_prefetched<List>(shared, slot, is_over);
        return nullptr;
      }
      if (ComputeThreads::leader() && shared.way.has_task)
        step_traced<ThreadPlatform>(all.dev, context.worker, kNoLocal, context.outcome.iteration);
    }
  } while (!shared.way.has_task);
  return begin_task(shared);
}

/// All compute threads: a traced task of a dynamic run begins; its record.
[[gnu::noinline]] __device__ inline const TaskRecord* begin_traced_task(std::uint32_t slot) {
  ExecutorShared& all = executor_shared();
  const TaskContext& context = all.contexts[slot];
  if (ComputeThreads::leader()) step_traced<ThreadPlatform>(all.dev, context.worker, kNoLocal, context.outcome.iteration);
  return &all.task_slots[slot].record;
}
/// All compute threads: it has ended. Returns null: no other comes behind it. `done` releases what the thread writes to the
/// control thread, with what the body wrote.
[[gnu::noinline]] __device__ inline const TaskRecord* end_traced_task(std::uint32_t slot) {
  ExecutorShared& all = executor_shared();
  TaskContext& context = all.contexts[slot];
  ComputeThreads::sync();  // all threads have ended the body
  if (!ComputeThreads::leader()) return nullptr;
  context.header = &all.task_slots[slot].record.header;  // begin_alone() has it copied
  end_traced<ThreadPlatform>(all.dev, context.worker, *context.header, context.outcome.iteration);
  return nullptr;
}
/// The same where PhasedTasks has run it, which knows no tasks of the library.
template <class Block>
[[gnu::noinline]] __device__ void end_traced_alone(std::uint32_t slot, Block block) {
  const TaskRecord& record = executor_shared().task_slots[slot].record;
  if (record.header.type == kFetchBatchType) fetch_batch(record, block);
  end_traced_task(slot);
}

/// All compute threads: the record of the first task of a phased run.
template <class List>
[[gnu::noinline]] __device__ const TaskRecord* begin_phased_tasks(std::uint32_t slot) {
  ExecutorShared& all = executor_shared();
  BlockShared& shared = all.block;
  TaskContext& context = all.contexts[slot];
  const PhasesBegin begin = shared.ahead.begin;
  const bool is_over = begin.is_over();  // it was suspended at its last boundary
  if (ComputeThreads::leader()) {
    shared.clock = PhaseClock::of<ThreadPlatform>(context);
    const bool traced = context.outcome.stop & kTracedBody;
    shared.ends = (is_over ? kEndsHere : 0u) | (traced ? kEndsTraced : 0u);
    if (is_over) all.phases_end = {begin.repeat - 1, false, true, 0};
    context.outcome.iteration = begin.pass;
    context.header = &shared.phase_record.header;
    if (traced && !is_over) step_traced<ThreadPlatform>(all.dev, context.worker, kNoLocal, begin.pass);
  } else if (ComputeThreads::warp() == kRecordWarp && !is_over) {
    read_task(all.dev, shared, 0, true);
  }
  ComputeThreads::sync();  // all threads see what that has left
  if (is_over) return nullptr;
  return shared.way.has_task ? begin_task(shared) : next_phased_task<List>(slot);
}

}  // namespace flywheel::detail
