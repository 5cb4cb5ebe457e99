// The warp roles of a compiled run, and what they tell each other through shared memory.
//
//   fetches instructions,
//   waits for predecessors                      handed, computed
//   control ----- ready, coming, before ----> compute ---------> store  stores, tells successors
//      ^                                      ^    |  <---------  |
//      |                        landed (page) |    |     taken    |
//      |                                      load <              |
//      |                                        returned (page)   |
//      +------------------------- stored -------------------------+
//
// Each arrow is an array of mbarriers: arrive() releases and test() acquires, at block scope.
#pragma once

#include "block.cuh"
#include "../runtime/records/trace.hpp"

namespace flywheel {

inline constexpr std::uint32_t kRoleSlots = 4;  // instructions in hand: one stored, one computed, two ahead

/// `nothing`: an instruction without a task. `skip`: its task is not run, because one before it failed.
enum class RoleCommand : std::uint32_t { run, skip, nothing, leave };

struct RoleSlot {
  Instruction instruction;
  TaskContext context;
  RoleCommand command;
  std::uint32_t handoffs;  // of its compute part, once that is over
  bool called_off;     // by the control role, before `coming`: a task before this one has failed
  bool before_failed;  // the same before `before`, when all of them are known
  bool stored_failed;  // by the store role, before `stored`: this task has failed or was not run
};

// What a compute warp keeps from task to task is in shared memory. Bodies need the registers, and what the compiler would
// put into local memory comes back from L2: acquires empty the L1 cache.

/// One compute warp between tasks.
struct alignas(16) WarpCursor {
  std::uint32_t number;  // of its next instruction
  std::uint32_t page;    // slot of its next page of operands
  std::uint32_t parity;  // of the phase in which that lands
  std::uint32_t turn;    // of GpuBlock::reduce()
};
/// Where it stands among the places of handoffs.
struct alignas(16) WarpHandoffs {
  std::uint32_t place;
  std::uint32_t parity;
  std::uint32_t used;         // places used at least once
  std::uint32_t count;        // handoffs of this task
};

/// What parts have done that no barrier tells. For checked runs, see checked.cuh.
struct PartNotes {
  std::uint32_t handing[kComputeWarps];  // 1: has a place and has not passed it on; 2: has borrowed the places
  std::uint32_t told[kRoleSlots];        // how often the slot's task has said sent()
};

/// The control role's clock for the task before the one in hand.
struct TaskWatch {
  std::uint64_t number;  // of the instruction in hand; another, or 0: the clock does not run
  std::uint64_t begin, told;
};

struct RolesShared {
  const DeviceState* dev;
  std::uint64_t* abort;
  std::uint32_t handoffs_at;  // in dynamic shared memory: their places
  WarpCursor places[kComputeWarps];
  WarpHandoffs handoffs[kComputeWarps];
  TraceWriter<ThreadPlatform> writer;  // of the first compute thread
  std::uint64_t body_began;
  RoleSlot slots[kRoleSlots];
  CompiledRun run;
  std::uint64_t ready[kRoleSlots];    // the command is there
  std::uint64_t coming[kRoleSlots];   // the tasks before have sent their results, or are done
  std::uint64_t before[kRoleSlots];   // they are done
  std::uint64_t computed[kRoleSlots];
  std::uint64_t stored[kRoleSlots];
  std::uint64_t handed[kHandoffs];
  std::uint64_t taken[kHandoffs];
  std::uint64_t landed[kMostPages];
  std::uint64_t returned[kMostPages];
  std::uint64_t begin;  // control -> load, store: a run begins, or the kernel ends
  std::uint64_t left;   // load, store -> control: nothing of the run is touched any more
  std::uint32_t announced;  // instructions whose commands are there; by the control role
  std::uint32_t stop_loading;
  std::uint32_t kernel_ends;
  std::uint32_t stepping, storing;  // lower bits of the instruction that control and store are at; for reports
  TaskWatch watch;
  PartNotes notes;
};

/// The block's one copy; see executor_shared().
__device__ __forceinline__ RolesShared& roles_shared() {
  __shared__ RolesShared shared;
  return shared;
}

/// Dynamic shared memory: pages, then scratch, then the places of handoffs.
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

/// Where a role stands in a ring of slots that are used in turn: the slot, and the parity of the phase it will end.
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

namespace detail {
/// The load role is ahead of all tasks: what it waits for, it waits for from the compute warps.
__device__ inline std::uint64_t waiting_part() {
  const RolesShared& roles = roles_shared();
  const std::uint32_t warp = threadIdx.x / 32;
  const TraceRole role = warp == kLoadWarp ? TraceRole::load : warp == kStoreWarp ? TraceRole::store : TraceRole::control;
  std::uint32_t number = roles.places[0].number;
  if (role == TraceRole::store) number = roles.storing;
  if (role == TraceRole::control) number = roles.stepping;
  const TaskHeader& task = roles.slots[number % kRoleSlots].instruction.record.header;
  return WaitPart{task.local, static_cast<std::uint16_t>(roles.run.slot), static_cast<std::uint8_t>(role)}.pack();
}

/// Out of line: there are many waits, and the instruction cache is for those that are short. Twice as patient as the
/// control role: of a wait that never ends, its report says more.
[[gnu::noinline]] __device__ inline bool wait_phase_longer(std::uint64_t* barrier, std::uint32_t parity,
                                                           WaitReason reason) {
  const RolesShared& roles = roles_shared();
  WaitContext limit = Views<ThreadPlatform>{*roles.dev}.wait_for_phase(roles.run.worker);
  limit.budget_ns *= 2;
  return spin_until<ThreadPlatform>(limit, reason, barrier, parity,
                                    [&](std::uint64_t&) { return ptx::mbarrier_test(*barrier, parity); });
}
}  // namespace detail

/// Bounded wait for a phase of an mbarrier. False if the runtime was aborted.
__device__ __forceinline__ bool wait_phase(std::uint64_t& barrier, std::uint32_t parity, WaitReason reason) {
  return ptx::mbarrier_test(barrier, parity) || detail::wait_phase_longer(&barrier, parity, reason);
}

/// The same for compute warps, without a time limit: a call in their loops would cost them their registers, even if it
/// never came to it. What they wait for too long, the role that should bring it waits for, too, or the store role does.
__device__ __forceinline__ bool wait_phase_in_compute(std::uint64_t& barrier, std::uint32_t parity) {
  for (std::uint32_t spins = 1; !ptx::mbarrier_test(barrier, parity); ++spins)
    if (spins % 64 == 0 && ThreadPlatform::device(*roles_shared().abort).load(Order::relaxed)) return false;
  return true;
}

/// By the control thread, when no role is in a run: all rings begin at slot 0, parity 0.
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
    init(roles.handed[h], kComputeWarps * arrivals_of(32));
    init(roles.taken[h], arrivals_of(32));
  }
  const std::uint32_t copies = bulk ? 1 : 32;
  for (std::uint32_t p = 0; p < dev.page_count; ++p) {
    first ? ptx::mbarrier_init(roles.landed[p], copies) : restart(roles.landed[p], copies);  // LoadRole waits for all it began
    init(roles.returned[p], kComputeWarps * arrivals_of(32));
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

}  // namespace flywheel
