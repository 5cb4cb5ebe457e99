// The kernel's launches, and what the pump looks after now and then: one that ended, died, did not start, or does not get on.
#include <algorithm>

#include "host/completion.hpp"
#include "host/error.hpp"
#include "host/log.hpp"
#include "host/pump.hpp"

namespace flywheel {

void Pump::ensure_kernel() {
  if (!resident_) launch();
}

void Pump::launch() {
  if (engine_.drains()) inbox_.write(InboxOp::park);
  world_.launch = static_cast<std::uint32_t>(counters_.launches % 65535 + 1);
  world_.phased_before = phased_done_;
  ++counters_.launches;
  parking_ = engine_.drains();
  all_present_ = false;
  late_from_ = Clock::now();
  launch_due_ = engine_.drains();
  if (!launch_due_) engine_.launch(world_);
  resident_ = true;
  if (launch_due_) wake_.notify_all();
}

/// In drain mode a launch may last as long as the kernel (CUDA_LAUNCH_BLOCKING), and others must get on meanwhile.
void Pump::launch_if_due(Lock& lock) {
  if (!launch_due_) return;
  const World world = world_;
  lock.unlock();
  engine_.launch(world);
  lock.lock();
  launch_due_ = false;
}

void Pump::check_kernel(const Lock& lock) {
  if (launch_due_ || (!resident_ && expected_.empty())) return;
  std::string why;
  const EngineState state = engine_.state(why);
  if (state == EngineState::lost) return fail_everything(lock, Status::device_lost, why);
  if (!resident_) return;
  if (state == EngineState::running) {
    check_start(lock);
    return check_stalls(lock);
  }
  resident_ = parking_ = false;
  abandoned_.clear();
  ++counters_.parks;
  const std::string report = wait_report();
  if (!report.empty()) return fail_everything(lock, Status::spin_budget_spent, report);
  take_finished(lock);
  if (!inbox_.all_read() && !closed_) launch();  // a message crossed the door's parking
}

/// A cooperative launch starts all blocks or, while others hold the SMs, none: a late kernel is queued and not lost.
void Pump::check_start(const Lock& lock) {
  if (all_present_) return;
  all_present_ = watchdog_.present() == world_.workers;
  const auto now = Clock::now();
  if (!anyone_waits()) late_from_ = now;  // the next run to come gets the whole time
  if (all_present_ || now - late_from_ < options_.start_timeout) return;
  const std::string cause = std::to_string(watchdog_.present()) + " of " + std::to_string(world_.workers) +
                            " workers have started after " + std::to_string(options_.start_timeout.count()) + " ms";
  const StatusText text = describe(Status::workers_missing);
  log::error(std::string(text.what) + " (" + cause + "). Remedy: " + text.remedy);
  fail_waiting(lock, Status::workers_missing, cause);
  late_from_ = now;
}

bool Pump::anyone_waits() const {
  const auto waits = [](const RunPtr& run) { return run && run->phase.load(std::memory_order_relaxed) == RunPhase::live; };
  return line_->length.load(std::memory_order_relaxed) || std::any_of(live_.begin(), live_.end(), waits);
}

/// Only the program is told: live runs are in the inbox, and keep their slots until the kernel has read and ended them.
void Pump::fail_waiting(const Lock&, Status status, const std::string& cause) {
  for (const RunPtr& run : line_->take_all()) finish(*run, status, cause);
  for (const RunPtr& run : live_) {
    if (!run || run->phase.load(std::memory_order_relaxed) != RunPhase::live) continue;
    if (!run->cancel_asked) send_cancel(*run);
    run->cancel_asked = true;
    finish(*run, status, cause);
  }
}

void Pump::check_stalls(const Lock& lock) {
  const auto run_in = [this](std::uint16_t slot) -> WatchedRun {
    const RunPtr& run = live_[slot];
    if (!run) return {};
    return {run->generation, run->graph->kind == GraphKind::compiled ? &run->graph->in_gang : nullptr};
  };
  for (const Stall& stall : watchdog_.new_stalls(run_in)) {
    const RunPtr run = live_[stall.item.run];
    // The slot stays taken until the device lets go of it: of a run that failed already the program has been told.
    if (!run || run->phase.load(std::memory_order_relaxed) != RunPhase::live) continue;
    const bool of_all = run->graph->kind != GraphKind::dynamic;  // then the item tells the task itself
    const bool spawned = !of_all && stall.item.record >= world_.spawn_base;
    const std::string task =
        spawned ? "a spawned task" : run->graph->task_name(stall.item.record - (of_all ? 0 : run->graph->first_record));
    const std::string cause = task + " has run on worker " + std::to_string(stall.worker) + " for " +
                              std::to_string(stall.elapsed_ns / 1000000) + " ms";
    log::error(cause + ": its run fails and is cancelled. Remedy: " + describe(Status::worker_stalled).remedy);
    if (!run->cancel_asked) send_cancel(*run);
    run->cancel_asked = true;
    finish(*run, Status::worker_stalled, cause);
  }
  const std::string report = wait_report();
  if (!report.empty()) fail_everything(lock, Status::spin_budget_spent, report);
}

std::string Pump::wait_report() const {
  return watchdog_.wait_report([this](std::uint16_t slot, std::uint32_t task) {
    const RunPtr& run = live_[slot];
    return run ? run->graph->task_name(task) : "task " + std::to_string(task);
  });
}

void Pump::give_up(Lock& lock, Status status, const char* cause) {
  if (!lock.owns_lock()) lock.lock();
  launch_due_ = false;
  fail_everything(lock, status, cause);
}

void Pump::fail_everything(const Lock& lock, Status status, const std::string& cause) {
  closed_ = true;
  if (status != Status::aborted) {
    if (gone_) return;  // told already
    gone_ = true;
    const std::string text = std::string(describe(status).what) + " (" + cause + "). Remedy: " + describe(status).remedy;
    log::error(text);
    // Release: pairs with the acquire in throw_if_closed(). After a shutdown() somebody may be reading `lost_` already.
    if (!line_->closed.load(std::memory_order_relaxed)) lost_ = text;
    line_->closed.store(true, std::memory_order_release);
  }
  end_status_ = status, end_cause_ = cause;
  std::string why;
  if (status == Status::device_lost || status == Status::launch_refused) resident_ = resident_ && engine_.state(why) == EngineState::running;
  if (status != Status::aborted && resident_) abort_workers();  // those that did start must not spin for ever
  for (const RunPtr& run : expected_) finish(*run, status, cause);
  expected_.clear();
  turn_away(lock);
  const bool workers_go_on = resident_ && status != Status::aborted;
  if (!workers_go_on) abandoned_.clear();
  for (RunPtr& run : live_) {
    if (run) abandon(*run, status, cause);
    if (run && workers_go_on) abandoned_.push_back(std::move(run));
    run.reset();
  }
  live_count_ = 0;
}

/// A live run that nobody waits for any more. Streams that wait for it wait for its completion word.
void Pump::abandon(RunRecord& run, Status status, const std::string& cause) {
  finish(run, status, cause);
  CpuPlatform::system(world_.completions[run.slot].word)
      .store(completion_word(run.generation, static_cast<std::uint32_t>(status)), Order::release);
}

/// Who came too late to be told by throw_if_closed().
void Pump::turn_away(const Lock&) {
  for (const RunPtr& run : line_->take_all()) finish(*run, end_status_, end_cause_);
}

/// Unless it is done.
void Pump::finish(RunRecord& run, Status status, const std::string& cause) {
  std::scoped_lock lock(run.mutex);
  if (run.phase.load(std::memory_order_relaxed) == RunPhase::done) return;
  run.code = static_cast<std::uint32_t>(status);
  run.cause = cause;
  // Release: pairs with the acquire in poll().
  run.phase.store(RunPhase::done, std::memory_order_release);
}

}  // namespace flywheel
