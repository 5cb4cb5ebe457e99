// The block of a CPU worker: one thread. Task bodies run on it as on a GPU, under gdb, AddressSanitizer and
// ThreadSanitizer. The CPU executor (executor.hpp) and CpuCompiled (compiled.hpp) make a CpuWorkerBlock for each body or
// phased run; a body gets a CpuBlock, which knows the list of task types as well (tasks.hpp).
#pragma once

#include "../compiled/phases.hpp"
#include "../records/one_thread.hpp"

namespace flywheel::detail {

template <class P>
struct CpuTasks;
struct NoTasks;  // a block that spawns nothing needs no list

/// The block as its worker has it, whatever the list of task types: the scratch memory, and the way through a phased run.
template <class P = CpuPlatform>
class CpuWorkerBlock : public BlockCore<P, NoTasks>, public OneThread {
 public:
  FLYWHEEL_TASK CpuWorkerBlock(const CpuTasks<P>& tasks, TaskContext& context, unsigned char* scratch)
      : BlockCore<P, NoTasks>(context),
        tasks_(&tasks),
        scratch_(scratch) {}

  static constexpr bool kOnGpu = false;

  FLYWHEEL_TASK const CpuTasks<P>& tasks() const { return *tasks_; }
  FLYWHEEL_TASK TaskContext& context() { return *this->context_; }

  /// `bytes` of scratch memory, aligned to 16; null and the task fails if there are not so many.
  FLYWHEEL_TASK unsigned char* scratch(std::size_t bytes) {
    const std::size_t at = (used_ + 15) & ~std::size_t{15}, limit = this->context_->dev->scratch_bytes / share_ / 16 * 16;
    if (at <= limit && bytes <= limit - at) {
      used_ = at + bytes;
      return scratch_ + at;
    }
    this->fail_with(static_cast<std::uint32_t>(Status::scratch_exhausted));
    return nullptr;
  }
  /// From now on a body has one of so many parts of the scratch memory.
  FLYWHEEL_TASK void share_scratch(std::uint32_t parts) { share_ = parts; }

  FLYWHEEL_TASK bool grid_sync() {
    // Plain: the constants are those of this task's run.
    if (!(this->context_->run->line.constants.flags & kPhased)) {
      this->fail_with(static_cast<std::uint32_t>(Status::grid_sync_alone));
      return false;
    }
    const bool go_on = cross(Boundary::grid_sync);
    if (go_on) begin_step();
    saw_end_ = !go_on;
    return go_on;
  }

  // Library use: see phases.hpp.
  FLYWHEEL_TASK void begin_phases() { clock_ = PhaseClock::of<P>(*this->context_); }
  /// Crosses a boundary. When a run ends early, workers learn it here or in grid_sync(), and come here once more then, after
  /// their bodies. A worker whose body threw is here already, and waits for them.
  FLYWHEEL_TASK bool boundary(Boundary kind) {
    const bool go_on = cross(kind);
    return go_on && !saw_end_;
  }
  /// One more boundary after the last: the run is reported as over only when all workers have seen that nothing had
  /// ended it. Otherwise a late worker would take the votes of the next run for those of the last boundary, and cross
  /// one more.
  FLYWHEEL_TASK void end_phases() { cross(Boundary::pass); }
  FLYWHEEL_TASK void begin_pass(std::uint32_t pass) { this->context_->outcome.iteration = pass; }
  /// Between two tasks of a phase: shows progress to the workers that wait at the boundary.
  FLYWHEEL_TASK void get_on() const { show_progress<P>(*this->context_->dev, this->context_->worker); }
  /// Prepares the block for the body of `record`, and notes what the last body asked for.
  FLYWHEEL_TASK const TaskRecord& load(const TaskRecord& record, bool /*is_read*/ = false) {
    note_outcome<P>(*this->context_, clock_);
    clock_.local = record.header.local;
    this->context_->header = &record.header;
    used_ = 0;
    share_ = 1;
    begin_step();
    return record;
  }

 private:
  FLYWHEEL_TASK bool cross(Boundary kind) {
    end_body<P>(this->context_->dev->heartbeats[this->context_->worker]);  // one that waits for others is not stalled
    const TaskContext& context = *this->context_;
    return cross_boundary<P>(*this->context_, clock_, kind, context.worker == 0 ? asked_of<P>(context.run->line) : 0);
  }
  FLYWHEEL_TASK void begin_step() const {
    const TaskContext& context = *this->context_;
    begin_body<P>(context.dev->heartbeats[context.worker], Item{clock_.local, context.item.run, false}.pack());
  }

  const CpuTasks<P>* tasks_;
  PhaseClock clock_{};
  unsigned char* scratch_;
  std::size_t used_ = 0;
  std::uint32_t share_ = 1;  // of scratch memory: the whole, or of a warp task one of so many parts
  bool saw_end_ = false;     // grid_sync() has returned false
};

/// The block as a body has it. See BlockCore for what all blocks have, and OneThread for what its one thread does alone.
template <class List, class P = CpuPlatform>
class CpuBlock : public BlockCore<P, List>, public OneThread {
 public:
  FLYWHEEL_TASK explicit CpuBlock(CpuWorkerBlock<P>& of_worker)
      : BlockCore<P, List>(of_worker.context()),
        of_worker_(&of_worker) {}

  static constexpr bool kOnGpu = false;  // no warps, and no store warp to hand over to
  using Lanes = P;                       // library use: the platform of a warp, and its threads
  using LaneThreads = OneThread;

  /// No lane has a neighbour here. A GPU's sum over 32 lanes would count the thread's value 32 times.
  template <class T>
  FLYWHEEL_TASK static T shuffle_xor(T value, int) {
    static_assert(sizeof(T) == 0,
                  "shuffle_xor() needs a warp, and a CPU worker has one thread: combine values with block.reduce(), or call it "
                  "behind `if constexpr (Block::kOnGpu)`");
    return value;
  }

  /// Memory for n values, aligned to 16 bytes, shared by the threads of the block until the body returns. Null, and the
  /// task fails with Status::scratch_exhausted, if Options::scratch_bytes is too small.
  template <class T>
  FLYWHEEL_TASK T* scratch(int n) {
    check_scratch<T>();
    return reinterpret_cast<T*>(of_worker_->scratch(sizeof(T) * std::size_t{static_cast<std::uint32_t>(n)}));
  }

  /// Collective. Adds n more tasks to this run at once: make(i), i = 0..n-1, gives the i-th, and is called by one thread. What
  /// spawn() says holds for each of them; a task sees what all threads of the block wrote before the call. Returns to every
  /// thread for how many the pool had room: the first so many. A CPU worker may have called make() for the next one, too. Do
  /// the work of the others here, or raise Options::spawn_capacity. Example, one child for each of `count` items:
  ///
  ///   const std::uint32_t spawned = block.spawn_n(count, [&](std::uint32_t i) { return Visit{first + i}; });
  ///   block.for_each(count - spawned, [&](int i) { visit_here(first + spawned + i); });
  template <class Make>
  [[nodiscard]] FLYWHEEL_TASK std::uint32_t spawn_n(std::uint32_t n, Make&& make, Priority priority = Priority::inherit) {
    return this->spawn_group(*this, n, make, priority);
  }

  /// Library use: calls f with the block of a warp task, which has the scratch memory that a warp has on a GPU.
  template <class F>
  FLYWHEEL_TASK void on_one_warp(F&& f) {
    of_worker_->share_scratch(kWorkerWarps);
    f(*this);
    of_worker_->share_scratch(1);
  }

  /// Grid tasks: waits until all workers have called it. False if the run ends here: return from the body.
  FLYWHEEL_TASK bool grid_sync() { return of_worker_->grid_sync(); }

 private:
  CpuWorkerBlock<P>* of_worker_;
};

}  // namespace flywheel::detail
