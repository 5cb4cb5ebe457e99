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
  Porch porch;
  RunConstants desk;
};

/// The control thread's end.
class GpuCrew {
 public:
  static constexpr bool kLooksAhead = true;

  __device__ GpuCrew(const World& world, std::uint32_t worker, CrewShared& shared)
      : world_(world), worker_(worker), shared_(shared) {}

  __device__ const Stage& stage(std::uint32_t slot, const TaskRecord& record, RunState& run) {
    constexpr std::uint32_t kVectors = sizeof(TaskRecord) / sizeof(uint4);
    Stage& stage = shared_.stages[slot];
    uint4 words[kVectors];
#pragma unroll
    for (std::uint32_t i = 0; i < kVectors; ++i) words[i] = __ldcg(reinterpret_cast<const uint4*>(&record) + i);
    copy_line_vectors(stage.run, run.line);
#pragma unroll
    for (std::uint32_t i = 0; i < kVectors; ++i) reinterpret_cast<uint4*>(&stage.record)[i] = words[i];
    return stage;
  }

  __device__ void start(std::uint32_t slot, Item item) {
    const Stage& stage = shared_.stages[slot];
    shared_.contexts[slot] = {&shared_.world, world_.runs + item.run, item, stage.record.header,
                              worker_, 0, 0, 0, stage.run.iteration};
    command(slot, Command::task);
  }

  template <class Slow>
  __device__ Outcome wait(std::uint32_t slot, Slow&& slow) {
    wait_done(slot, slow);
    const TaskContext& context = shared_.contexts[slot];
    return {context.code, context.spawned != 0, context.stop != 0};
  }

  template <class Slow>
  __device__ std::uint32_t run_phased(std::uint16_t run_slot, Slow&& slow) {
    RunState* run = world_.runs + run_slot;
    const std::uint32_t slot = next_;
    shared_.contexts[slot] = {&shared_.world, run, {0, run_slot, false}, {}, worker_, 0, 0, 0, 0};
    shared_.block.clock = {run->line.barrier_base, 0, false, false, false};
    command(slot, Command::phased);
    wait_done(slot, slow);
    return shared_.last_pass;
  }

  __device__ void dismiss() { command(next_, Command::leave); }
  /// The stage the compute warps will look at next.
  __device__ std::uint32_t next_slot() const { return next_; }

 private:
  /// The constants and the words behind them that a task looks at, past L1: they change without this SM's doing.
  __device__ static void copy_line_vectors(RunLine& to, const RunLine& from) {
    constexpr std::uint32_t kVectors = sizeof(RunConstants) / sizeof(uint4) + 1;
    static_assert(offsetof(RunLine, iteration) < kVectors * sizeof(uint4));
#pragma unroll
    for (std::uint32_t i = 0; i < kVectors; ++i)
      reinterpret_cast<uint4*>(&to)[i] = __ldcg(reinterpret_cast<const uint4*>(&from) + i);
  }

  __device__ void command(std::uint32_t slot, Command what) {
    shared_.commands[slot] = what;
    ptx::mbarrier_arrive(shared_.full[slot]);  // pairs with the compute warps' test in compute_loop()
    next_ = slot ^ 1;
  }

  template <class Slow>
  __device__ void wait_done(std::uint32_t slot, Slow&& slow) {
    std::uint64_t start = 0, reported = 0;
    for (std::uint32_t spins = 1; !ptx::mbarrier_test(shared_.done[slot], parity_ >> slot & 1); ++spins) {
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
  CrewShared& shared_;
  std::uint32_t next_ = 0;
  std::uint32_t parity_ = 0;  // bit s: the phase of done[s] that is awaited
};

/// The compute warps' end: run what is staged until told to leave.
template <class List>
__device__ void compute_loop(const World& world, CrewShared& shared, unsigned char* scratch) {
  for (std::uint32_t turn = 0;; ++turn) {
    const std::uint32_t slot = turn & 1;
    while (!ptx::mbarrier_test(shared.full[slot], turn >> 1 & 1)) {}  // the control thread has the time limits
    const Command what = shared.commands[slot];
    if (what == Command::leave) return;
    GpuBlock<List> block(shared.contexts[slot], shared.block, scratch);
    if (what == Command::task) {
      List::run(shared.stages[slot].record, block);
    } else {
      const std::uint32_t last_pass = run_phases<List>(world, shared.contexts[slot].run->line.constants, block);
      if (block.leader()) shared.last_pass = last_pass;
    }
    block.sync();  // all threads are through with scratch and record
    if (block.leader()) ptx::mbarrier_arrive(shared.done[slot]);  // pairs with GpuCrew::wait_done()
  }
}

}  // namespace flywheel
