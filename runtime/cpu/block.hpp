// The block of a CPU worker: one thread. The same bodies run here under gdb, AddressSanitizer and ThreadSanitizer.
#pragma once

#include "../compiled/phases.hpp"
#include "thrown.hpp"

namespace flywheel {

template <class List, class P = CpuPlatform>
class CpuBlock : public BlockCore<P, List> {
 public:
  FLYWHEEL_TASK CpuBlock(TaskContext& context, unsigned char* scratch)
      : BlockCore<P, List>(context), scratch_(scratch) {}

  static constexpr bool kOnGpu = false;  // no warps, and nobody to hand over to
  FLYWHEEL_TASK static constexpr int rank() { return 0; }
  FLYWHEEL_TASK static constexpr int size() { return 1; }
  FLYWHEEL_TASK static constexpr bool leader() { return true; }
  FLYWHEEL_TASK static void sync() {}

  /// f(i) for i = 0..n-1, shared out over the threads of the block.
  template <class F>
  FLYWHEEL_TASK void for_each(int n, F&& f) const {
    for (int i = 0; i < n; ++i) f(i);
  }

  /// Combines one value of each thread; every thread gets the result.
  template <class T, class Op>
  FLYWHEEL_TASK T reduce(T value, Op&&) const {
    return value;
  }

  /// Memory for n values, shared by the threads of the block until the body returns. Null (and the task fails) if
  /// Options::scratch_bytes is too small.
  template <class T>
  FLYWHEEL_TASK T* scratch(int n) {
    const std::size_t at = (used_ + 15) & ~std::size_t{15};
    used_ = at + sizeof(T) * static_cast<std::size_t>(n);
    if (used_ <= this->context_->dev->scratch_bytes) return reinterpret_cast<T*>(scratch_ + at);
    this->fail_with(static_cast<std::uint32_t>(Status::scratch_exhausted));
    return nullptr;
  }

  /// Nothing is handed over here: scratch() alone has to do.
  FLYWHEEL_TASK static void borrow_handoffs() {}

  /// Grid tasks: all workers meet. False if the run ends here: return from the body.
  FLYWHEEL_TASK bool grid_sync() {
    const bool go_on = meet_others(false);
    if (go_on) begin_step();
    told_ = !go_on;
    return go_on;
  }

  // Library use: see phases.hpp.
  FLYWHEEL_TASK void begin_phases() { clock_ = PhaseClock::of<P>(*this->context_); }
  /// When a run ends early, some may hear of it in grid_sync(): they come here once more, after their bodies. One whose body
  /// threw hears of it here. So whoever has not heard in grid_sync() comes once more, too, and all bodies are over then.
  FLYWHEEL_TASK bool boundary(bool end_of_pass) {
    const bool go_on = meet_others(end_of_pass);
    if (!go_on && !told_) meet_others(end_of_pass);
    return go_on && !told_;
  }
  /// Nobody tells that the run is over before all have seen that nothing had ended it: who looks late would take the votes of
  /// the next run for those of the last boundary, and come once more.
  FLYWHEEL_TASK void end_phases() { meet_others(true); }
  FLYWHEEL_TASK TaskContext& context() { return *this->context_; }
  FLYWHEEL_TASK void begin_pass(std::uint32_t pass) { this->context_->outcome.iteration = pass; }
  FLYWHEEL_TASK void get_on() const { show_progress<P>(*this->context_->dev, this->context_->worker); }
  FLYWHEEL_TASK const TaskRecord& load(const TaskRecord& record) {
    note_outcome<P>(*this->context_, clock_);
    clock_.local = record.header.local;
    this->context_->header = &record.header;
    used_ = 0;
    begin_step();
    return record;
  }

 private:
  FLYWHEEL_TASK bool meet_others(bool end_of_pass) {
    end_body<P>(this->context_->dev->heartbeats[this->context_->worker]);  // who waits for others does not stall
    return meet<P>(*this->context_, clock_, end_of_pass);
  }
  FLYWHEEL_TASK void begin_step() const {
    const TaskContext& context = *this->context_;
    begin_body<P>(context.dev->heartbeats[context.worker], Item{clock_.local, context.item.run, false}.pack());
  }

  PhaseClock clock_{};
  unsigned char* scratch_;
  std::size_t used_ = 0;
  bool told_ = false;  // by grid_sync(), that the run ends
};

}  // namespace flywheel
