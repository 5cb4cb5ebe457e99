// What the pump looks after now and then: a kernel that ended, died, did not start, or does not get on.
#include "host/completion.hpp"
#include "host/error.hpp"
#include "host/log.hpp"
#include "host/pump.hpp"

namespace flywheel {

void Pump::check_kernel(const Lock& lock) {
  if (!resident_ || launch_due_) return;
  std::string why;
  const EngineState state = engine_.state(why);
  if (state == EngineState::lost) return fail_everything(lock, Status::device_lost, why);
  if (state == EngineState::running) {
    check_start(lock);
    return check_stalls(lock);
  }
  resident_ = parking_ = false;
  ++counters_.parks;
  const std::string report = watchdog_.wait_report();
  if (!report.empty()) return fail_everything(lock, Status::spin_budget_spent, report);
  take_finished(lock);
  if (!inbox_.all_read() && !closed_) launch();  // a message crossed the door's parking
}

void Pump::check_start(const Lock& lock) {
  if (all_present_) return;
  all_present_ = watchdog_.present() == world_.workers;
  if (all_present_ || Clock::now() - launched_ < options_.start_timeout) return;
  const std::string cause = std::to_string(watchdog_.present()) + " of " + std::to_string(world_.workers) +
                            " workers have started after " + std::to_string(options_.start_timeout.count()) + " ms";
  fail_everything(lock, Status::workers_missing, cause);
}

void Pump::check_stalls(const Lock& lock) {
  for (const Stall& stall : watchdog_.new_stalls()) {
    const RunPtr run = live_[stall.item.run];
    if (!run) continue;
    const bool phased = run->graph->kind == GraphKind::phased || run->packs;
    const bool compiled = run->graph->kind == GraphKind::compiled;
    const bool spawned = stall.item.record >= world_.spawn_base;
    const std::string task = phased     ? "a phase"
                             : compiled ? run->graph->task_name(stall.item.record)
                             : spawned ? "a spawned task"
                                       : run->graph->task_name(stall.item.record - run->graph->first_record);
    const std::string cause = task + " has run on worker " + std::to_string(stall.worker) + " for " +
                              std::to_string(stall.elapsed_ns / 1000000) + " ms";
    log::error(cause + ": its run fails and is cancelled. Remedy: " + describe(Status::worker_stalled).remedy);
    if (!run->cancel_asked) send_cancel(*run);
    run->cancel_asked = true;
    // The slot stays taken until the device lets go of it; only the program is told already.
    if (run->phase.load(std::memory_order_relaxed) == RunPhase::live)
      finish(*run, static_cast<std::uint32_t>(Status::worker_stalled), cause);
  }
  const std::string report = watchdog_.wait_report();
  if (!report.empty()) fail_everything(lock, Status::spin_budget_spent, report);
}

void Pump::fail_everything(const Lock&, Status status, const std::string& cause) {
  if (status != Status::aborted) {
    if (!lost_.empty()) return;  // told already; submitters may be reading it
    lost_ = std::string(describe(status).what) + " (" + cause + "). Remedy: " + describe(status).remedy;
    log::error(lost_);
    closed_ = true;
    line_->closed.store(true, std::memory_order_release);
  }
  if (status == Status::device_lost) resident_ = false;
  else if (status != Status::aborted && resident_) abort_workers();  // those that did start must not spin for ever
  line_->drain();
  for (RunPtr& run : line_->sorted) finish(*run, static_cast<std::uint32_t>(status), cause);
  line_->length.store(0, std::memory_order_relaxed);
  line_->sorted.clear();
  for (RunPtr& run : live_) {
    if (run && run->phase.load(std::memory_order_relaxed) != RunPhase::done)
      finish(*run, static_cast<std::uint32_t>(status), cause);
    run.reset();
  }
  live_count_ = 0;
}

void Pump::finish(RunRecord& run, std::uint32_t code, const std::string& cause) {
  {
    std::scoped_lock lock(run.mutex);
    run.code = code;
    run.cause = cause;
  }
  run.phase.store(RunPhase::done, std::memory_order_release);
}

}  // namespace flywheel
