// The crew of a CPU worker: the thread itself.
//
// A crew is who runs the bodies. The worker's loop stages a task, starts it, and waits for it; on the GPU the compute
// warps run while the loop looks ahead, here the body runs inside wait().
#pragma once

#include "runtime/cpu/compiled.hpp"
#include "runtime/records/stage.hpp"

namespace flywheel {

template <class List, class P = CpuPlatform>
class CpuCrew {
 public:
  CpuCrew(const World& world, std::uint32_t worker, unsigned char* scratch)
      : world_(world), worker_(worker), scratch_(scratch) {}

  static constexpr bool kLooksAhead = false;  // nobody runs a body while this thread looks

  FLYWHEEL_TASK Desk& desk() { return desk_; }
  FLYWHEEL_TASK std::uint32_t next_slot() const { return next_; }

  FLYWHEEL_TASK const Stage& stage(std::uint32_t slot, const TaskRecord& record, RunState& run) {
    stages_[slot].record = record;
    copy_line<P>(stages_[slot].run, run.line);
    return stages_[slot];
  }

  /// The same for a run whose constants came over the porch: it has only just been let in.
  FLYWHEEL_TASK const Stage& stage_porch(std::uint32_t slot, const TaskRecord& record, std::uint32_t,
                                         const RunConstants& run) {
    stages_[slot].record = record;
    stages_[slot].run = {run, 0, 0, 0, 0, 0, 0, {}};
    return stages_[slot];
  }
  FLYWHEEL_TASK void keep_constants(std::uint32_t, const RunConstants&) const {}  // stage_porch() has

  /// Whether the run of what was staged last was cancelled by then.
  FLYWHEEL_TASK bool cancelled() const { return stages_[next_].run.cancelled != 0; }

  FLYWHEEL_TASK void start(std::uint32_t slot, Item item) {
    next_ = slot ^ 1;
    const Stage& stage = stages_[slot];
    contexts_[slot] = {&world_, &stage.record.header, world_.runs + item.run, item, worker_,
                       {0, 0, 0, stage.run.iteration}};
  }

  /// `slow(elapsed_ns)` is called while a long task runs, `settle()` once it has run for a few microseconds, where
  /// somebody can; here it is when it has ended.
  template <class Slow, class Settle, class Last>
  FLYWHEEL_TASK Asked wait(std::uint32_t slot, Slow&&, Settle&& settle, Last&&) {
    CpuBlock<List, P> block(contexts_[slot], scratch_);
    begin_body<P>(world_.heartbeats[worker_], contexts_[slot].item.pack());
    detail::CatchingList<List>::run(stages_[slot].record, block);
    end_body<P>(world_.heartbeats[worker_]);
    settle();
    return contexts_[slot].asked;
  }

  template <class Slow>
  FLYWHEEL_TASK PhasesEnd run_phased(std::uint16_t run_slot, Slow&&) {
    RunState& run = world_.runs[run_slot];
    TaskContext context{&world_, nullptr, &run, {0, run_slot, false}, worker_, {}};
    CpuBlock<List, P> block(context, scratch_);
    return run_phases<detail::CatchingList<List>>(world_, run.line.constants, block);
  }

  template <class Slow>
  FLYWHEEL_TASK void run_compiled(std::uint16_t run_slot, Slow&&) {
    CpuCompiled<List, P> part(world_, run_slot, worker_, scratch_);
    part();
  }

 private:
  const World& world_;
  std::uint32_t worker_;
  unsigned char* scratch_;
  std::uint32_t next_ = 0;
  Desk desk_;
  Stage stages_[2];
  TaskContext contexts_[2];
};

}  // namespace flywheel
