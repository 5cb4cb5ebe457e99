// The warp roles of a compiled run, and the shared memory through which they synchronise. page.cuh, handoff.cuh and
// control.cuh include it.
//
//   fetches instructions,
//   waits for predecessors                   handoff_full, computed
//   control ----- ready, coming, before ----> compute ---------> store  stores results, signals that they are sent
//      ^                                      ^    |  <---------  |
//      |                            page_full |    | handoff_empty |
//      |                                      load <              |
//      |                                           page_empty     |
//      +------------------------- stored -------------------------+
//
// Each arrow is an array of mbarriers. An arrival releases and a test acquires, at block scope, so whatever a role wrote
// before it arrives is visible to the role that sees the phase complete.
#pragma once

#include "../../runtime/compiled/compiled.hpp"
#include "../../runtime/records/trace.hpp"
#include "../block.cuh"

namespace flywheel::detail {

inline constexpr std::uint32_t kRoleSlots = 4;  // instructions under way: one stored, one computed, two ahead

/// What the roles do with an instruction. `nothing`: it has no task. `skip`: its task is not run, because one before it
/// failed. `leave`: it ends the run for the roles.
enum class RoleCommand : std::uint32_t { run, skip, nothing, leave };

/// One instruction under way. The control role writes a slot before it arrives at `ready`, unless a member says otherwise.
struct RoleSlot {
  Instruction instruction;
  TaskContext context;
  RoleCommand command;
  std::uint32_t handoffs;  // made by its compute part; by compute warp 0, before `computed`
  bool called_off;         // by the control role, before `coming`: a task before this one has failed
  bool before_failed;      // by the control role, before `before`: the same, when all of those tasks have ended
  bool stored_failed;      // by the store role, before `stored`: this task has failed or was not run
  std::uint32_t bare;      // bare runs: the command, in bits, see bare.cuh
  std::uint64_t* signal;   // likewise: the counter at which the task arrives; null: it is a sink, or nothing waits for it

  /// Fills in the context of the slot's task, before its command.
  __device__ void prepare(const CompiledRun& run, std::uint32_t pass) {
    context = {
        run.dev,         &instruction.record.header, run.state, {0, static_cast<std::uint16_t>(run.slot), false}, run.worker,
        {0, 0, 0, pass}, stamp_of(run, pass),        nullptr};
  }
};

// A compute warp keeps its state between tasks in shared memory. Task bodies need the registers, and what the compiler
// would put into local memory is read from L2, because acquires empty L1.

/// One compute warp's position in the run, between two tasks.
struct alignas(16) WarpCursor {
  std::uint32_t number;  // of its next instruction
  std::uint32_t page;    // slot of its next page of operands
  std::uint32_t parity;  // of the phase in which that page lands
  std::uint32_t turn;    // of GpuBlock::reduce()
};
/// One compute warp's position in the ring of handoff places.
struct alignas(16) WarpHandoffs {
  std::uint32_t place;
  std::uint32_t parity;
  std::uint32_t used;   // places used at least once
  std::uint32_t count;  // handoffs of this task
};

/// What checked runs count about the parts of tasks, see checked.cuh. No barrier carries it.
struct PartNotes {
  std::uint32_t holding[kComputeWarps];  // 1: holds a place that it has not passed on; 2: has borrowed the places
  std::uint32_t sent_calls[kRoleSlots];  // how often the slot's task has called sent()
};

/// The control role's clock for the task before the current instruction, see watch_last_task().
struct TaskWatch {
  std::uint64_t number;       // of the current instruction when the clock was started; 0: not started
  std::uint64_t begin, told;  // in ns: when the clock was started; when it was started or last reported
};

/// All that the roles of one block share. Plain members are ordered by the barriers, unless a comment says otherwise.
struct RolesShared {
  const DeviceState* dev;
  std::uint64_t* abort;
  std::uint32_t handoffs_at;  // offset of the handoff places in dynamic shared memory
  WarpCursor places[kComputeWarps];
  WarpHandoffs handoffs[kComputeWarps];
  TraceWriter<ThreadPlatform> writer;  // of the first compute thread
  std::uint64_t body_began;            // in ticks; by the first compute thread, in traced runs
  std::uint32_t track_lock;            // of `writer`, where compute warps share it, see warps.cuh; atomic
  RoleSlot slots[kRoleSlots];
  CompiledRun run;
  std::uint64_t ready[kRoleSlots];         // control -> compute, store: the command is there
  std::uint64_t coming[kRoleSlots];        // control -> parts: the tasks before have sent their results, or have ended
  std::uint64_t before[kRoleSlots];        // control -> parts: the tasks before have ended
  std::uint64_t computed[kRoleSlots];      // compute -> store: the compute part has ended
  std::uint64_t stored[kRoleSlots];        // store -> control: both parts have ended
  std::uint64_t handoff_full[kHandoffs];   // compute -> store: the place is written
  std::uint64_t handoff_empty[kHandoffs];  // store -> compute: the place is read
  std::uint64_t page_full[kMostPages];     // load -> compute: the page is filled
  std::uint64_t page_empty[kMostPages];    // compute -> load: the page is read
  std::uint64_t begin;                     // control -> store: a run begins, or the kernel ends; compute -> store: a call
  void* beside;                            // of that call, see TaskList::serve_beside(); null: no call. Before `begin`
  std::uint64_t left;                      // load, store -> control: these roles access nothing of the run any more
  std::uint32_t announced;                 // number of commands given; by the control role, atomic
  std::uint32_t stop_loading;              // 1: the load role leaves; by the control role, atomic
  std::uint32_t kernel_ends;               // 1: no further run; before `begin`
  std::uint32_t stepping, storing;         // lower bits of the current instruction of control and store; for reports
  // Of bare runs, see bare.cuh.
  std::uint64_t bare_free[kRoleSlots];            // compute -> load warp: the task has ended and is signaled
  alignas(16) unsigned char params[kParamBytes];  // a copy; by the load warp, before the first command
  StreamEnd bare_end;                             // by the load warp, before `left`
  std::uint32_t bare_step;                        // odd while a body runs; by a compute thread, atomic
  std::uint32_t bare_task;                        // of that body: graph-local; likewise
  std::uint32_t bare;                             // 1: the run is a bare one; before `begin`
  TaskWatch watch;
  PartNotes notes;
};

/// The block's one copy, found by name for the reason given at executor_shared().
__device__ __forceinline__ RolesShared& roles_shared() {
  __shared__ RolesShared shared;
  return shared;
}

/// Dynamic shared memory: the pages, then scratch memory, then the handoff places.
__device__ __forceinline__ unsigned char* page_memory() {
  extern __shared__ __align__(128) unsigned char memory[];
  return memory;
}
__device__ __forceinline__ unsigned char* scratch_memory(const DeviceState& dev) {
  return page_memory() + std::size_t{dev.page_count} * kPageBytes;
}
__device__ __forceinline__ unsigned char* handoff_memory(const DeviceState& dev) {
  return scratch_memory(dev) + dev.scratch_bytes;
}
/// What tasks of dynamic and phased runs have as scratch memory begins with the pages, which no compiled run uses meanwhile:
/// the control thread joins one when its last body has ended, and compute warps go on when all roles have left it.
__device__ __forceinline__ unsigned char* page_scratch_memory() { return page_memory(); }

/// A role's position in a ring of slots used in turn: the slot, and the parity of the barrier phase that this use of the
/// slot completes.
class RingCursor {
 public:
  __device__ explicit RingCursor(std::uint32_t size) : size_(size) {}
  __device__ std::uint32_t slot() const { return slot_; }
  __device__ std::uint32_t parity() const { return parity_; }
  __device__ void advance() {
    if (++slot_ != size_) return;
    slot_ = 0;
    parity_ ^= 1;
  }

 private:
  std::uint32_t size_;
  std::uint32_t slot_ = 0;
  std::uint32_t parity_ = 0;
};

/// The same of a compute warp that follows a stream of its own; defined in warps.cuh.
__device__ std::uint64_t waiting_warp_part(std::uint32_t warp);

/// The caller's role and instruction as a packed WaitPart, for wait reports. The load role reports the instruction of compute
/// warp 0, for it waits for the compute warps to return pages.
__device__ inline std::uint64_t waiting_part() {
  const RolesShared& roles = roles_shared();
  const std::uint32_t warp = threadIdx.x / 32;
  TraceRole role = warp == kLoadWarp ? TraceRole::load : warp == kStoreWarp ? TraceRole::store : TraceRole::control;
  std::uint32_t number = roles.places[0].number;
  if (roles.run.warps) return waiting_warp_part(warp);
  if (roles.bare) role = TraceRole::control;  // which the load warp plays there
  if (role == TraceRole::store) number = roles.storing;
  if (role == TraceRole::control) number = roles.stepping;
  const TaskHeader& task = roles.slots[number % kRoleSlots].instruction.record.header;
  return WaitPart{task.local, static_cast<std::uint16_t>(roles.run.slot), static_cast<std::uint8_t>(role)}.pack();
}

/// The slow path of wait_phase(). It is out of line because there are many waits, and the instruction cache is kept for
/// those that end at once. Its budget is twice that of the control role, whose report of a wait that never ends says more.
/// Acquire: see wait_phase().
[[gnu::noinline]] __device__ inline bool wait_phase_longer(std::uint64_t* barrier, std::uint32_t parity, WaitReason reason) {
  const RolesShared& roles = roles_shared();
  WaitContext limit = Views<ThreadPlatform>{*roles.dev}.wait_for_phase(roles.run.worker);
  limit.budget_ns *= 2;
  return spin_until<ThreadPlatform>(limit, reason, barrier, parity,
                                    [&](std::uint64_t&) { return ptx::mbarrier_test(*barrier, parity); });
}

/// Waits for a phase of an mbarrier, within the time limit of phases. False if the runtime was aborted or the limit has
/// passed. Acquire at block scope: pairs with the arrivals in that phase, which the caller names.
__device__ __forceinline__ bool wait_phase(std::uint64_t& barrier, std::uint32_t parity, WaitReason reason) {
  return ptx::mbarrier_test(barrier, parity) || detail::wait_phase_longer(&barrier, parity, reason);
}

/// The same for compute warps, acquire too, without a time limit: a call in their loops would cost them registers, even if it
/// were never executed. A phase that does not complete is reported all the same, because the role that should complete it, or
/// the store role, waits under a limit. The abort word is read relaxed: pairs with report_wait() or the host's copy, and a
/// warp that sees it only leaves.
__device__ __forceinline__ bool wait_phase_in_compute(std::uint64_t& barrier, std::uint32_t parity) {
  for (std::uint32_t spins = 1; !ptx::mbarrier_test(barrier, parity); ++spins)
    if (spins % 64 == 0 && ThreadPlatform::device(*roles_shared().abort).load(Order::relaxed)) return false;
  return true;
}

/// Initialises all barriers and rings for a run: every ring begins at slot 0, parity 0. Called by one thread of the block
/// while no role is in a run. The other threads see the plain stores through __syncthreads() in prepare() (`first`), or
/// through the arrivals on `full` and `begin` in control_compiled_run().
__device__ inline void init_roles(RolesShared& roles, const DeviceState& dev, bool first) {
  const bool bulk = ptx::kHopper && dev.bulk_copies;
  const auto init = [&](std::uint64_t& barrier, std::uint32_t arrivals) {
    if (!first) ptx::mbarrier_invalidate(barrier);
    ptx::mbarrier_init(barrier, arrivals);
  };
  for (std::uint32_t s = 0; s < kRoleSlots; ++s) {
    for (auto* by_one : {roles.ready, roles.coming, roles.before}) init(by_one[s], 1);
    init(roles.computed[s], kComputeWarps * arrivals_of(32));
    init(roles.stored[s], arrivals_of(32));
  }
  for (std::uint32_t h = 0; h < kHandoffs; ++h) {
    init(roles.handoff_full[h], kComputeWarps * arrivals_of(32));
    init(roles.handoff_empty[h], arrivals_of(32));
  }
  const std::uint32_t copies = bulk ? 1 : 32;
  for (std::uint32_t p = 0; p < dev.page_count; ++p) {
    // No copy into the pages is under way: LoadRole waits for all that it began.
    first ? ptx::mbarrier_init(roles.page_full[p], copies) : restart(roles.page_full[p], copies);
    init(roles.page_empty[p], kComputeWarps * arrivals_of(32));
  }
  ptx::publish_mbarriers();
  for (std::uint32_t w = 0; w < kComputeWarps; ++w) roles.places[w] = {}, roles.handoffs[w] = {};
  roles.dev = &dev;
  roles.abort = &dev.control->broadcast.abort;
  roles.handoffs_at = static_cast<std::uint32_t>(handoff_memory(dev) - page_memory());
  roles.announced = 0;
  roles.watch = {};
  roles.stop_loading = 0;
  roles.notes = {};
}

}  // namespace flywheel::detail
