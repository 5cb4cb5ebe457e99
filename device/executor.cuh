// The executor of a GPU worker. The control thread gives commands through two task slots (GpuExecutor, for Worker), and the
// compute warps execute them (compute_loop()). kernel.cuh includes it.
//
// Task slot s holds a record. `full[s]` signals that the slot is filled, `done[s]` that its body has ended. With both slots
// in use the compute warps go from one task to the next without waiting for the control thread.
#pragma once

#include "../runtime/dynamic/task_list.hpp"
#include "awaited.cuh"
#include "collective.cuh"
#include "direct_worker.cuh"
#include "phased_tasks.cuh"

namespace flywheel::detail {

/// The control thread's side, the Executor of Worker. `kHasDirectSlot`: of the worker in the poller's block.
template <bool kHasDirectSlot>
class GpuExecutor {
 public:
  static constexpr bool kPrefetches = true;
  static constexpr bool kStartsDirectly = kHasDirectSlot;  // DirectStarter does

  __device__ GpuExecutor(const DeviceState& dev, std::uint32_t worker) : dev_(dev), worker_(worker) {
    ExecutorShared& shared = executor_shared();
    for (std::uint32_t s = 0; s < 2; ++s) {
      shared.contexts[s] = {&shared.dev, &shared.task_slots[s].record.header, nullptr, {}, worker, {}};
      shared.tags[s] = {SlotTag::kNoRecord, 0};
    }
    shared.next_slot = 0;
  }

  /// Copies a task's record and its run's constants into a slot. All loads are issued before the first is waited for. They
  /// bypass L1, because other SMs change run lines.
  __device__ const TaskSlot& fetch(std::uint32_t slot, const TaskRecord& record, RunState& run) {
    cancelled_or_traced_ = fetch_task(slot, record, run, iteration_);
    return executor_shared().task_slots[slot];
  }

  /// The same for a run that was admitted just now: its constants came through the direct slot, which IdleSlot::peek() has
  /// acquired, and so did a record that the message carried. A record of a loaded graph may still be in the slot, see SlotTag.
  __device__ const TaskSlot& fetch_direct(std::uint32_t slot, const TaskRecord& record, std::uint32_t index,
                                          const RunConstants&) {
    TaskSlot& task_slot = executor_shared().task_slots[slot];
    const std::uint32_t serial = executor_shared().direct_slot.run.serial;  // `run`, found by name
    const std::uint32_t flags = executor_shared().direct_slot.run.flags;
    if (flags & kInlineRoot) {
      copy_carried(slot);
    } else if (executor_shared().tags[slot].record != index || executor_shared().tags[slot].serial != serial) {
      uint4 words[kRecordVectors];
      read_words<kRecordVectors>(words, &record);
      put<kRecordVectors>(&task_slot.record, words);
      executor_shared().tags[slot].record = index;
      executor_shared().tags[slot].serial = serial;
    }
    cancelled_or_traced_ = flags & kTraced;
    iteration_ = 0;
    return task_slot;
  }

  /// For a chain of runs, see serve_chain().
  __device__ ChainSlots chain_slots() const { return {next_, parity_, 0}; }
  __device__ void leave_chain(const ChainSlots& slots) {
    parity_ = slots.parity;
    pass_to(slots.next);
  }

  __device__ static SuccessorAwaiter successor_awaiter() { return {}; }
  /// True if a task was started that is not finished.
  __device__ bool take_awaited() {
    parity_ = executor_shared().awaited.parity;
    pass_to(executor_shared().awaited.next);
    return executor_shared().work.awaited.has_next;
  }

  __device__ void keep_constants(std::uint32_t slot, const RunConstants&) {
    executor_shared().task_slots[slot].run.constants = executor_shared().direct_slot.run;
  }

  /// Whether the run of the task fetched last was cancelled at that time, or is traced: start_traced() knows.
  __device__ bool cancelled_or_traced() const { return cancelled_or_traced_; }

  /// Commands the compute warps to run the task in `slot`.
  __device__ void start(std::uint32_t slot, Item item) {
    start_task(slot, dev_.runs + item.run, item, iteration_);
    pass_to(slot ^ 1);
  }

  /// In place of start() where cancelled_or_traced() is true: false if the run was cancelled.
  __device__ bool start_traced(std::uint32_t slot, Item item) {
    const bool starts = start_traced_task(slot, dev_.runs + item.run, item, iteration_);
    if (starts) pass_to(slot ^ 1);
    return starts;
  }

  /// Polls the direct slot and ends what it can of what comes there, see direct_worker.cuh.
  __device__ DirectTurn serve_direct_slot(std::uint32_t polls) {
    const DirectTurn turn = detail::serve_direct_slot(polls, next_, parity_);
    next_ = turn.next;
    parity_ = turn.parity;
    return turn;
  }
  /// Whether the task that came over the direct slot is started. IdleSlot::peek() has acquired the slot.
  __device__ static bool is_started() { return executor_shared().direct_slot.started; }
  /// Takes over such a task, which is in next_slot(), when its body runs.
  __device__ const TaskSlot& take_started() {
    const TaskSlot& task_slot = executor_shared().task_slots[next_];
    pass_to(next_ ^ 1);
    return task_slot;
  }

  /// Waits for the body in `slot`. Calls `takes_long` once if the body outlasts kShortBody polls of its barrier, `last` when it
  /// has run for kLookTicks more and from time to time after that, `slow` after each kSlowTaskNs.
  template <class Slow, class Long, class Last>
  __device__ Outcome wait(std::uint32_t slot, Slow&& slow, Long&& takes_long, Last&& last) {
    bool done = is_done(slot);
    FLYWHEEL_ROLLED
    for (std::uint32_t tries = 0; tries < kShortBody && !done; ++tries) done = is_done(slot);
    if (!done) {
      takes_long();
      wait_done(slot, slow, last);
    } else {
      parity_ ^= 1u << slot;
    }
    executor_shared().awaited.parity = parity_;  // for SuccessorAwaiter
    return executor_shared().contexts[slot].outcome;
  }

  __device__ PhasesEnd run_phased(std::uint16_t run_slot) {
    control_phased_run({worker_, run_slot, next_, parity_ >> next_ & 1, 0});
    pass_slot();
    return executor_shared().phases_end;
  }

  __device__ void run_compiled(std::uint16_t run_slot) {
    control_compiled_run({worker_, run_slot, next_, parity_ >> next_ & 1, compiled_runs_});
    ++compiled_runs_;
    pass_slot();
  }

  __device__ LocalWork& work() { return executor_shared().work; }
  __device__ PrefetchedTask& ahead() { return executor_shared().ahead; }
  __device__ void dismiss() {
    executor_shared().commands[next_] = Command::leave;
    // Release, block scope: pairs with the test of `full` in compute_loop(); covers the command.
    ptx::mbarrier_arrive(executor_shared().full[next_]);
    roles_shared().kernel_ends = 1;
    // Release, block scope: pair with serve_store_warp() and serve_load_warp(); cover `kernel_ends`.
    ptx::mbarrier_arrive(roles_shared().begin);
    ptx::mbarrier_arrive(executor_shared().load_begin);
  }
  /// The slot that the compute warps take next.
  __device__ std::uint32_t next_slot() const { return next_; }

 private:
  __device__ static void copy_carried(std::uint32_t slot) {
    const auto* from = reinterpret_cast<const uint4*>(&executor_shared().direct_slot.record);
    auto* to = reinterpret_cast<uint4*>(&executor_shared().task_slots[slot].record);
    uint4 words[kRecordVectors];
#pragma unroll
    for (std::uint32_t i = 0; i < kRecordVectors; ++i) words[i] = from[i];
#pragma unroll
    for (std::uint32_t i = 0; i < kRecordVectors; ++i) to[i] = words[i];
    executor_shared().tags[slot].record = SlotTag::kNoRecord;
  }

  /// The compute warps take `slot` next.
  __device__ void pass_to(std::uint32_t slot) {
    next_ = slot;
    if (kStartsDirectly) executor_shared().next_slot = slot;
  }

  __device__ static std::uint32_t ticks() { return static_cast<std::uint32_t>(ThreadPlatform::ticks()); }

  /// Acquire, block scope: pairs with the arrivals on `done` in compute_loop(); covers all that the body wrote.
  __device__ bool is_done(std::uint32_t slot) const {
    return ptx::mbarrier_test(executor_shared().done[slot], parity_ >> slot & 1);
  }

  template <class Slow, class Last>
  __device__ void wait_done(std::uint32_t slot, Slow&& slow, Last&& last) {
    std::uint64_t start = 0, reported = 0;
    std::uint32_t lasts_at = ticks() + kLookTicks;  // a count of polls is no clock: the hardware suspends some of them
    for (std::uint32_t spins = 1; !is_done(slot); ++spins) {
      if (static_cast<std::int32_t>(ticks() - lasts_at) > 0) {
        last();
        lasts_at += 1u << 30;
      }
      if (spins % 1024) continue;
      const std::uint64_t now = detail::global_timer_ns();
      if (!start) start = reported = now;
      if (now - reported < kSlowTaskNs) continue;
      slow(now - start);
      reported = now;
    }
    parity_ ^= 1u << slot;
  }

  /// A collective run is over, which had a slot to itself.
  __device__ void pass_slot() {
    parity_ ^= 1u << next_;
    pass_to(next_ ^ 1);
  }

  const DeviceState& dev_;
  std::uint32_t worker_;
  std::uint32_t compiled_runs_ = 0;
  std::uint32_t next_ = 0;
  std::uint32_t parity_ = 0;     // bit s: parity of the phase of done[s] that ends next
  std::uint32_t iteration_ = 0;  // of the task fetched last; here, so that it is not read again from shared memory
  bool cancelled_or_traced_ = false;
};

/// The bodies of a task of a dynamic run, or of a phased run.
template <class List>
__device__ __forceinline__ void run_bodies(Command what, std::uint32_t slot) {
  ExecutorShared& shared = executor_shared();
  const auto run = [&]() -> RunState& { return *shared.contexts[slot].run; };
  if constexpr (GpuBlock<List>::kLoadWarpLooksAhead) {
    if (what != Command::task && run().line.constants.flags & kPack) {
      GpuBlock<List> block = make_block<List>(slot);
      const PhasesEnd end = pack_operands<List>(shared.dev, run().line, block);
      if (block.leader()) shared.phases_end = end;
      return;
    }
    // One call for both kinds of runs: the kernel has the bodies once. Each task has a block of its own, and where the run is
    // lies in shared memory: what lives across a body that takes all registers is kept in local memory, which each acquire
    // sends to L2.
    const TaskRecord* record = &shared.task_slots[slot].record;
    if (what != Command::task) record = what == Command::phased ? begin_phased_tasks<List>(slot) : begin_traced_task(slot);
    while (record) {
      GpuBlock<List> block = make_block<List>(slot);
      run_dynamic<List>(*record, block);
      if (shared.commands[slot] == Command::task) break;
      record = shared.commands[slot] == Command::phased ? next_phased_task<List>(slot) : end_traced_task(slot);
    }
  } else {
    GpuBlock<List> block = make_block<List>(slot);
    if (what == Command::task) return run_dynamic<List>(shared.task_slots[slot].record, block);
    const PhasesEnd end = run_phases<List>(shared.dev, run().line, block);
    if (shared.commands[slot] == Command::traced) end_traced_alone(slot, block);
    else if (block.leader()) shared.phases_end = end;
  }
}

/// The compute warps' side: executes commands until the one to leave.
template <class List>
__device__ __forceinline__ void compute_loop() {
  ExecutorShared& shared = executor_shared();
  for (std::uint32_t turn = 0;; ++turn) {
    const std::uint32_t slot = turn & 1;
    // Acquire, block scope: pairs with start_task(), GpuExecutor::dismiss() and collective.cuh. The control thread has limits.
    while (!ptx::mbarrier_test(shared.full[slot], turn >> 1 & 1)) {}
    const Command what = shared.commands[slot];
    if (what == Command::leave) return;
    const bool has_pages = List::kHasOperands && what != Command::compiled;  // as scratch memory
    if (what == Command::compiled) {
      if (roles_shared().run.warps) follow_on_warp<List>(shared.dev);
      else if (roles_shared().bare) compute_bare<List>(shared.dev, shared.block);
      else compute_role<List>(roles_shared(), shared.dev, shared.block);
    } else {
      run_bodies<List>(what, slot);
    }
    // Orders what the task did with the pages before the next copies into them.
    if (has_pages) ptx::fence_shared_for_bulk_copies();
    ComputeThreads::sync();  // all threads have ended their use of scratch memory and record
    // Release, block scope: pairs with GpuExecutor::is_done() and the test in control_compiled_run().
    if (arrives(ComputeThreads::rank())) ptx::mbarrier_arrive(shared.done[slot]);
  }
}

}  // namespace flywheel::detail
