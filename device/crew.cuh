// The crew of a GPU worker: the compute warps, told what to do by the control thread through two stages.
//
// Stage s holds a record; `full[s]` says that it is there, `done[s]` that its body has ended. With both stages in use
// the compute warps go from one task to the next without waiting for the control thread.
#pragma once

#include <cstddef>

#include "device/block.cuh"
#include "runtime/cpu_crew.hpp"

namespace flywheel {

enum class Command : std::uint32_t { task, phased, leave };

struct CrewShared {
  World world;  // a copy for the bodies
  Stage stages[2];
  TaskContext contexts[2];
  Command commands[2];
  std::uint32_t last_pass;  // of the last phased run
  std::uint64_t full[2];
  std::uint64_t done[2];
  BlockShared block;
  Desk desk;
  Porch porch;
  RunConstants message;
};

/// The block's one copy. Found by name, not by reference, so that the compiler knows it is shared memory.
__device__ __forceinline__ CrewShared& crew_shared() {
  __shared__ CrewShared shared;
  return shared;
}

/// The control thread's end.
class GpuCrew {
 public:
  static constexpr bool kLooksAhead = true;

  __device__ GpuCrew(const World& world, std::uint32_t worker) : world_(world), worker_(worker) {}

  /// All loads are on their way before the first is waited for. Past L1: run lines change without this SM's doing.
  __device__ const Stage& stage(std::uint32_t slot, const TaskRecord& record, RunState& run) {
    constexpr std::uint32_t kRecord = sizeof(TaskRecord) / sizeof(uint4);
    constexpr std::uint32_t kLine = sizeof(RunConstants) / sizeof(uint4) + 1;
    static_assert(offsetof(RunLine, iteration) < kLine * sizeof(uint4));
    uint4 words[kRecord + kLine];
#pragma unroll
    for (std::uint32_t i = 0; i < kRecord; ++i) words[i] = __ldcg(reinterpret_cast<const uint4*>(&record) + i);
#pragma unroll
    for (std::uint32_t i = 0; i < kLine; ++i)
      words[kRecord + i] = __ldcg(reinterpret_cast<const uint4*>(&run.line) + i);
    Stage& stage = crew_shared().stages[slot];
#pragma unroll
    for (std::uint32_t i = 0; i < kRecord; ++i) reinterpret_cast<uint4*>(&stage.record)[i] = words[i];
#pragma unroll
    for (std::uint32_t i = 0; i < kLine; ++i) reinterpret_cast<uint4*>(&stage.run)[i] = words[kRecord + i];
    return stage;
  }

  __device__ void start(std::uint32_t slot, Item item) {
    const Stage& stage = crew_shared().stages[slot];
    crew_shared().contexts[slot] = {&crew_shared().world, world_.runs + item.run, item, stage.record.header,
                              worker_, 0, 0, 0, stage.run.iteration};
    command(slot, Command::task);
  }

  template <class Slow>
  __device__ Outcome wait(std::uint32_t slot, Slow&& slow) {
    wait_done(slot, slow);
    const TaskContext& context = crew_shared().contexts[slot];
    return {context.code, context.spawned != 0, context.stop != 0};
  }

  template <class Slow>
  __device__ std::uint32_t run_phased(std::uint16_t run_slot, Slow&& slow) {
    RunState* run = world_.runs + run_slot;
    const std::uint32_t slot = next_;
    crew_shared().contexts[slot] = {&crew_shared().world, run, {0, run_slot, false}, {}, worker_, 0, 0, 0, 0};
    crew_shared().block.clock = {run->line.barrier_base, 0, false, false, false};
    command(slot, Command::phased);
    wait_done(slot, slow);
    return crew_shared().last_pass;
  }

  __device__ Desk& desk() { return crew_shared().desk; }
  __device__ void dismiss() { command(next_, Command::leave); }
  /// The stage the compute warps will look at next.
  __device__ std::uint32_t next_slot() const { return next_; }

 private:
  __device__ void command(std::uint32_t slot, Command what) {
    crew_shared().commands[slot] = what;
    ptx::mbarrier_arrive(crew_shared().full[slot]);  // pairs with the compute warps' test in compute_loop()
    next_ = slot ^ 1;
  }

  template <class Slow>
  __device__ void wait_done(std::uint32_t slot, Slow&& slow) {
    std::uint64_t start = 0, reported = 0;
    for (std::uint32_t spins = 1; !ptx::mbarrier_test(crew_shared().done[slot], parity_ >> slot & 1); ++spins) {
      if (spins % 1024) continue;
      const std::uint64_t now = detail::global_timer_ns();
      if (!start) start = reported = now;
      if (now - reported < kSlowTaskNs) continue;
      slow(now - start);
      reported = now;
    }
    parity_ ^= 1u << slot;
  }

  const World& world_;
  std::uint32_t worker_;
  std::uint32_t next_ = 0;
  std::uint32_t parity_ = 0;  // bit s: the phase of done[s] that is awaited
};

/// The compute warps' end: run what is staged until told to leave.
template <class List>
__device__ void compute_loop(unsigned char* scratch) {
  CrewShared& shared = crew_shared();
  for (std::uint32_t turn = 0;; ++turn) {
    const std::uint32_t slot = turn & 1;
    while (!ptx::mbarrier_test(shared.full[slot], turn >> 1 & 1)) {}  // the control thread has the time limits
    const Command what = shared.commands[slot];
    if (what == Command::leave) return;
    GpuBlock<List> block(shared.contexts[slot], shared.block, scratch);
    if (what == Command::task) {
      List::run(shared.stages[slot].record, block);
    } else {
      const RunConstants& run = shared.contexts[slot].run->line.constants;
      const std::uint32_t last_pass = run_phases<List>(shared.world, run, block);
      if (block.leader()) shared.last_pass = last_pass;
    }
    block.sync();  // all threads are through with scratch and record
    if (block.leader()) ptx::mbarrier_arrive(shared.done[slot]);  // pairs with GpuCrew::wait_done()
  }
}

}  // namespace flywheel
