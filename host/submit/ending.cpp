#include "ending.hpp"

#include <algorithm>
#include <utility>

#include "../base/error.hpp"
#include "../base/log.hpp"
#include "completion.hpp"

namespace flywheel::detail {

namespace {
/// Relaxed: the phase becomes `live` under the dispatcher's mutex, which is held. Another thread may set it to `done`
/// under run.mutex at any time; end_early() and collect() check again under that mutex.
bool is_live(const RunRecord& run) { return run.phase.load(std::memory_order_relaxed) == RunPhase::live; }

std::string stalled_task(const DeviceState& dev, const RunRecord& run, const Stall& stall) {
  const bool of_all = run.graph->kind != GraphKind::dynamic;  // in collective runs the item is the task's index
  if (of_all) return run.graph->task_name(stall.item.record);
  if (run.root && stall.item.record == dev.inline_base + run.slot) return run.graph->task_name(run.root->header.local);
  if (stall.item.record - dev.spawn_base < dev.spawn_capacity) return "a spawned task";
  return run.graph->task_name(stall.item.record - run.graph->first_record + run.graph->first_local);
}

std::string stall_of(const std::string& task, const Stall& stall) {
  return task + " has run on worker " + std::to_string(stall.worker) + " for " + std::to_string(stall.elapsed_ns / 1000000) +
         " ms";
}
}  // namespace

std::string explain(Status status, const std::string& cause) {
  const StatusText text = describe(status);
  return std::string(text.what) + " (" + cause + "). Remedy: " + text.remedy;
}

Ending::Ending(Engine& engine, const DeviceState& dev, const Options& options, Watchdog& watchdog, InboxWriter& inbox,
               Admission& admission, SingleTasks& singles)
    : engine_(engine),
      dev_(dev),
      most_unread_(options.stream_unread),
      watchdog_(watchdog),
      inbox_(inbox),
      admission_(admission),
      singles_(singles) {}

// ---- runs that end by themselves ----

bool Ending::retire_finished(const Lock& lock) {
  const std::uint32_t slots = admission_.in_flight(lock).size();
  return retire_in(lock, 0, slots);
}

bool Ending::retire_some(const Lock& lock) {
  const std::uint32_t slots = admission_.in_flight(lock).size();
  const std::uint32_t first = next_slot_ < slots ? next_slot_ : 0, end = std::min(first + kSlotsAtOnce, slots);
  next_slot_ = end;
  return retire_in(lock, first, end);
}

bool Ending::retire_in(const Lock& lock, std::uint32_t first, std::uint32_t end) {
  const RunSlots& slots = admission_.in_flight(lock);
  end_trace(lock);
  if (!slots.live()) return false;
  bool streamed = false;
  for (std::uint32_t slot = first; slot < end; ++slot) {
    if (!slots[slot]) continue;
    if (is_complete(dev_, *slots[slot])) retire(lock, RunPtr(slots[slot]));
    else streamed |= drain(*slots[slot]);
  }
  return streamed;
}

void Ending::retire(const Lock& lock, const RunPtr& run) {
  if (!admission_.in_flight(lock).holds(*run) || run->keeps_slot) return;
  if (run->before) retire_predecessors(lock, run);
  take_up(lock, run);
}

/// Retires the predecessors that have ended too, and theirs before: a run that failed because of them names the first cause.
/// Without recursion, since chains may be long.
void Ending::retire_predecessors(const Lock& lock, const RunPtr& run) {
  std::vector<RunPtr> path{run};
  const auto has_ended = [&](const RunPtr& one) {
    return admission_.in_flight(lock).holds(*one) && !one->keeps_slot && is_complete(dev_, *one);
  };
  const auto next_of = [&](const RunRecord& one) -> RunPtr {
    if (!one.before) return nullptr;
    const auto ended = std::ranges::find_if(one.before->runs, has_ended);
    return ended == one.before->runs.end() ? nullptr : *ended;
  };
  for (;;) {
    if (RunPtr next = next_of(*path.back())) {
      path.push_back(std::move(next));
      continue;
    }
    const RunPtr last = std::move(path.back());
    path.pop_back();
    if (path.empty()) return;
    take_up(lock, last);
  }
}

/// Collects the outcome of a run in flight that has ended, and frees its slot.
void Ending::take_up(const Lock& lock, const RunPtr& run) {
  if (run->tracing) {
    --run->tracing->left;
    end_trace(lock, run.get());
  }
  if (run->before)
    for (const auto& one : run->before->singles) singles_.collect(*one);  // for the message of a failure
  // Acquire: pairs with the release in collect(), if the thread that waits for the run has collected it, see
  // Run::done(). The run's stream_next, the ticket of the slot's next value, is written before it.
  if (run->phase.load(std::memory_order_acquire) == RunPhase::live) collect(dev_, *run);  // now the program sees the end
  else if (run->ended_early) clear_slot(dev_, *run);
  let_predecessors_go(lock, *run);
  run->keeps_slot = run->readers != 0;
  if (!run->keeps_slot) admission_.give_back(lock, *run);
  admission_.let_followers_go(lock, *run, true);
}

/// The run has ended: what it has followed may give its slots back.
void Ending::let_predecessors_go(const Lock& lock, RunRecord& run) {
  const std::unique_ptr<RunsBefore> before = std::move(run.before);
  if (!before) return;
  for (const auto& one : before->pinned) singles_.unpin(*one);
  for (const TakenValue& value : before->values) {
    if (!value.run || --value.run->readers || !value.run->keeps_slot) continue;
    value.run->keeps_slot = false;
    admission_.give_back(lock, *value.run);
  }
}

/// Copies the trace before the run is done, and before another traced run can overwrite it. `run`: the last one, if it ends
/// now. That of a run which the host has ended early is dropped: the program may be looking at that there is none.
void Ending::end_trace(const Lock& lock, const RunRecord* run) {
  const std::shared_ptr<TracedWork> work = admission_.tracing(lock);
  if (!work || work->left) return;
  auto trace = std::make_unique<const Trace>(collect_trace(engine_, dev_, *work));
  if (work->of_batch || (run && is_live(*run))) work->trace = std::move(trace);
  admission_.end_tracing(lock);
}

/// Reads streamed values. True if there were any. A run that has ended early is drained too, because its tasks must not
/// wait for the program.
bool Ending::drain(RunRecord& run) {
  std::unique_lock stream(run.mutex, std::try_to_lock);
  if (!stream.owns_lock() || (!is_live(run) && !run.ended_early)) return false;
  const std::uint64_t before = run.stream_next;
  drain_stream(dev_, run, most_unread_);
  return run.stream_next != before;
}

// ---- single runs ----

bool Ending::cancel(const Lock& lock, const RunPtr& run) {
  // Relaxed: nothing that `done` publishes is read here.
  if (run->phase.load(std::memory_order_relaxed) == RunPhase::done || run->cancel_requested) return false;
  if (is_live(*run)) {
    ask_to_cancel(lock, *run);
    return false;
  }
  run->cancel_requested = true;
  const bool was_in_backlog = admission_.remove(lock, run);  // else a CUDA stream will submit it
  run->end_early(Status::cancelled, "it had not started");
  end_trace(lock);
  admission_.let_followers_go(lock, *run, true);
  return was_in_backlog;
}

/// Sends a cancel message. If the inbox has no room, a later turn sends it: the caller holds the mutex and must not
/// wait.
void Ending::ask_to_cancel(const Lock& lock, RunRecord& run) {
  if (std::exchange(run.cancel_requested, true)) return;
  cancels_due_.push_back({run.slot, run.generation});
  send_cancels(lock);
}

void Ending::cancel_slot(const Lock& lock, std::uint32_t slot, std::uint32_t generation) {
  cancels_due_.push_back({slot, generation});
  send_cancels(lock);
}

void Ending::send_cancels(const Lock&) {
  auto next = cancels_due_.begin();
  for (; next != cancels_due_.end() && inbox_.has_room(2); ++next) inbox_.write(InboxOp::cancel, next->slot, next->generation);
  cancels_due_.erase(cancels_due_.begin(), next);
}

void Ending::fail_live(const Lock& lock, RunRecord& run, Status status, const std::string& cause) {
  ask_to_cancel(lock, run);
  run.end_early(status, cause);
}

void Ending::fail_stalled(const Lock& lock) {
  const RunSlots& slots = admission_.in_flight(lock);
  const auto run_in = [&](std::uint16_t slot) -> WatchedRun {
    if (singles_.owns(slot)) return {singles_.generation_in(slot), nullptr};
    const RunPtr& run = slots[slot];
    if (!run) return {};
    return {run->generation, run->graph->kind == GraphKind::compiled ? &run->graph->in_gang : nullptr};
  };
  for (const Stall& stall : watchdog_.new_stalls(run_in)) {
    if (singles_.owns(stall.item.run)) {
      fail_stalled_single(lock, stall);
      continue;
    }
    const RunPtr run = slots[stall.item.run];
    // A run that has failed already keeps its slot until the device has ended it; its program has been told.
    if (!run || !is_live(*run)) continue;
    const std::string cause = stall_of(stalled_task(dev_, *run, stall), stall);
    log::error(cause + ": its run fails and is cancelled. Remedy: " + describe(Status::worker_stalled).remedy);
    fail_live(lock, *run, Status::worker_stalled, cause);
  }
}

void Ending::fail_stalled_single(const Lock& lock, const Stall& stall) {
  const std::string cause = stall_of(singles_.name_in(stall.item.run), stall);
  if (!singles_.fail(stall.item.run, Status::worker_stalled, cause)) return;
  log::error(cause + ": it fails and is cancelled. Remedy: " + describe(Status::worker_stalled).remedy);
  cancel_slot(lock, stall.item.run, singles_.generation_in(stall.item.run));
}

std::string Ending::wait_report(const Lock& lock) const {
  return watchdog_.wait_report([&](std::uint16_t slot, std::uint32_t task) {
    const RunSlots& slots = admission_.in_flight(lock);
    if (singles_.owns(slot)) return singles_.name_in(slot);
    const RunPtr& run = slots[slot];
    return run ? run->graph->task_name(task) : "task " + std::to_string(task);
  });
}

// ---- all runs ----

bool Ending::anyone_waits(const Lock& lock) const {
  if (admission_.waiting()) return true;
  if (singles_.in_flight()) return true;
  const RunSlots& slots = admission_.in_flight(lock);
  for (std::uint32_t slot = 0; slot < slots.size(); ++slot)
    if (slots[slot] && is_live(*slots[slot])) return true;
  return false;
}

void Ending::fail_waiting(const Lock& lock, Status status, const std::string& cause) {
  for (const RunPtr& run : admission_.empty_backlog(lock)) run->end_early(status, cause);
  singles_.fail_all(status, cause, false);
  const RunSlots& slots = admission_.in_flight(lock);
  for (std::uint32_t slot = 0; slot < slots.size(); ++slot)
    if (slots[slot] && is_live(*slots[slot])) fail_live(lock, *slots[slot], status, cause);
}

void Ending::cancel_all(const Lock& lock) {
  for (const RunPtr& run : admission_.empty_backlog(lock))
    run->end_early(Status::aborted, "the runtime was shut down before it started");
  const RunSlots& slots = admission_.in_flight(lock);
  for (std::uint32_t slot = 0; slot < slots.size(); ++slot)
    if (slots[slot]) ask_to_cancel(lock, *slots[slot]);
}

void Ending::end_all(const Lock& lock, Status status, const std::string& cause, bool workers_go_on) {
  end_status_ = status;
  end_cause_ = cause;
  for (const RunPtr& run : admission_.forget_expected(lock)) run->end_early(status, cause);
  reject(lock);
  if (!workers_go_on) abandoned_.clear();
  admission_.end_tracing(lock);
  for (RunPtr& run : admission_.abandon_all(lock)) {
    abandon(*run, status, cause);
    if (workers_go_on) abandoned_.push_back(std::move(run));
  }
}

/// Ends a live run that the kernel will not end. Streams that wait for the run wait for its completion word, so the
/// host writes it.
void Ending::abandon(RunRecord& run, Status status, const std::string& cause) {
  run.end_early(status, cause);
  run.before.reset();
  // Release: like end_run() in runtime/ready/completion.hpp; pairs with the acquire in is_complete(). The program's
  // own threads have seen the end through run.phase before. CUDA streams compare only the generation in the word.
  CpuPlatform::system(dev_.completions[run.slot].word)
      .store(completion_word(run.generation, static_cast<std::uint32_t>(status)), Order::release);
}

void Ending::reject(const Lock& lock) {
  for (const RunPtr& run : admission_.empty_backlog(lock)) reject(lock, *run);
}

}  // namespace flywheel::detail
