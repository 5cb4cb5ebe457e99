#include "dispatcher.hpp"

#include <algorithm>
#include <iterator>

#include "../base/deferred_release.hpp"
#include "../base/error.hpp"
#include "../base/log.hpp"

namespace flywheel::detail {

Dispatcher::Dispatcher(Engine& engine, DeviceState& dev, const Options& options)
    : park_after_(options.park_after),
      shutdown_timeout_(options.shutdown_timeout),
      watchdog_(dev, options),
      inbox_(dev),
      singles_(dev, inbox_),
      admission_(dev, options, inbox_),
      kernel_(engine, dev, watchdog_, inbox_, options),
      ending_(engine, dev, options, watchdog_, inbox_, admission_, singles_) {
  thread_ = std::thread([this] { loop(); });
}

Dispatcher::~Dispatcher() {
  {
    Lock lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

// ---- submission ----

void Dispatcher::submit(RunPtr run) {
  for (std::uint32_t spins = 0; !try_submit(run); ++spins) cpu_pause(spins);
}

bool Dispatcher::try_submit(const RunPtr& run) {
  throw_if_closed();
  if (admission_.is_full()) return false;
  Lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !admission_.may_go_at_once(lock, *run)) {
    if (lock.owns_lock()) lock.unlock();
    join_backlog(run);
    return true;
  }
  or_fail_everything(lock, [&] { start(lock, run); });
  ++direct_;
  if (asleep_.load(std::memory_order_relaxed)) wake_.notify_one();  // relaxed: only written under the mutex, which is held
  return true;
}

std::shared_ptr<SingleTask> Dispatcher::submit(const TaskRecord& record, std::type_index type, Priority priority) {
  std::shared_ptr<SingleTask> task;
  for (std::uint32_t turn = 0; !task; ++turn) {
    throw_if_closed();
    const bool may_go = priority == Priority::high || !inbox_.is_crowded();
    // Relaxed: pairs with the stores in while_empty().
    if (may_go && !held_.load(std::memory_order_relaxed)) task = singles_.try_submit(record, type, priority);
    if (task) break;
    if (may_go) singles_.sweep();
    cpu_pause(turn);
  }
  // A seq_cst fence: pairs with the fences in note_attention() and shutdown(). This thread counts the task and
  // its message and then reads the two words, relaxed; the other thread writes one of them and then reads the counts. So at
  // least one of the two sees the other's write: if this thread does not, the kernel is launched again for the message.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (attentive_.load(std::memory_order_relaxed) && !closed_.load(std::memory_order_relaxed)) return task;
  Lock lock(mutex_);
  if (admission_.closed(lock)) singles_.fail_all(Status::aborted, "the runtime was shut down", true);
  else or_fail_everything(lock, [&] { ensure_kernel(lock); });
  wake_.notify_one();  // the dispatcher's thread may sleep until there is a kernel
  return task;
}

void Dispatcher::cancel(const SingleTask& task) {
  Lock lock(mutex_);
  // Relaxed: pairs with the stores in SingleTasks; a cancel that comes late does nothing.
  if (!task.done.load(std::memory_order_relaxed)) ending_.cancel_slot(lock, task.slot, task.generation);
}

void Dispatcher::expect(const RunPtr& run) {
  Lock lock(mutex_);
  if (admission_.closed(lock)) return ending_.reject(lock, *run);
  // Relaxed: the phase leaves `waiting` only under the mutex, which is held.
  if (run->phase.load(std::memory_order_relaxed) != RunPhase::waiting) return;
  admission_.expect(lock, run);
  wake_.notify_one();
}

void Dispatcher::submit_from_stream(RunPtr run) noexcept {
  join_backlog(std::move(run));  // the dispatcher's thread admits it or turns it away: no CUDA call here
}

void Dispatcher::throw_if_closed() const {
  // Acquire: pairs with the release stores in shutdown() and refuse_submissions(). `lost_` is written before them and
  // not after.
  if (!closed_.load(std::memory_order_acquire)) return;
  if (!lost_.empty()) throw DeviceError("cannot submit: " + lost_);
  throw UsageError("cannot submit: the runtime was shut down");
}

void Dispatcher::join_backlog(RunPtr run) {
  admission_.enqueue(std::move(run));
  // The fence pairs with the one in sleep(). This thread writes the backlog and then reads `asleep_`; the dispatcher's
  // thread writes `asleep_` and then reads the backlog. With seq_cst fences in between at least one of the two sees the
  // other's write, so no run is left in the backlog while the dispatcher's thread sleeps. The thread waits under the
  // mutex, so the notification cannot come too early.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!asleep_.load(std::memory_order_seq_cst)) return;
  Lock lock(mutex_);
  wake_.notify_one();
}

/// Admits the run, writes its message, and makes sure that a kernel reads it. Both paths end here.
void Dispatcher::start(const Lock& lock, const RunPtr& run) {
  // From here on the slots of the single tasks that the run follows stay theirs: those that are not pinned are done.
  std::vector<std::shared_ptr<SingleTask>> pinned;
  if (run->before)
    std::ranges::copy_if(run->before->singles, std::back_inserter(pinned), [&](const auto& one) { return singles_.pin(*one); });
  if (!admission_.admit(lock, run)) {
    for (const auto& one : pinned) singles_.unpin(*one);
    return admission_.let_followers_go(lock, *run, true);
  }
  if (run->before) run->before->pinned = std::move(pinned);
  inbox_.write(submission_of(*run));
  // Release: pairs with the acquire loads of `phase` in host/futures/run.cpp. The run's slot and generation are written
  // before it.
  run->phase.store(RunPhase::live, std::memory_order_release);
  admission_.let_followers_go(lock, *run, false);
  ensure_kernel(lock);
}

void Dispatcher::ensure_kernel(const Lock& lock) {
  if (kernel_.ensure(lock)) wake_.notify_all();  // its thread launches it
  note_attention(lock);
}

/// After each change of what the kernel does.
void Dispatcher::note_attention(const Lock& lock) {
  // Relaxed store before a seq_cst fence: pairs with the fence in submit(record), which explains it.
  attentive_.store(kernel_.resident(lock) && !kernel_.parking(lock), std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

/// True if a run or a single task is in flight.
bool Dispatcher::anything_live(const Lock& lock) const { return admission_.in_flight(lock).live() || singles_.in_flight(); }

// ---- the dispatcher's thread ----

void Dispatcher::loop() {
  const DeferredRelease here;  // the last reference to the core may be dropped on this thread, by a run
  Lock lock(mutex_);
  while (!stopping_) {
    or_fail_everything(lock, [&] {
      kernel_.launch_if_due(lock);
      if (!turn(lock)) sleep(lock);
    });
  }
}

/// One turn of the loop. False if there is nothing to do until the thread is notified or time passes.
bool Dispatcher::turn(Lock& lock) {
  const bool streamed = ending_.retire_some(lock);
  const bool arrived = admit_arrivals(lock);
  ending_.send_cancels(lock);
  const auto now = Clock::now();
  sweep_singles(lock, now);
  give_way(lock, now);
  const bool goes_on = (gets_on(lock, streamed || arrived, now) && admission_.waiting()) || is_about_to_change(lock, now);
  if (now - last_check_ > std::chrono::milliseconds(1)) {
    last_check_ = now;
    check_kernel(lock);
    park_if_idle(lock);
  }
  if (!goes_on) return false;
  lock.unlock();  // runs wait: continue at once, but give other threads a chance to take the mutex
  std::this_thread::yield();
  lock.lock();
  return true;
}

/// Admits what may go, from the backlog and of the runs that have arrived. False if none have. A run that starts lets its
/// followers go, which are arrivals then: so a chain of runs goes link by link.
bool Dispatcher::admit_arrivals(const Lock& lock) {
  constexpr std::uint32_t kMostLinks = 256;
  bool arrived = false;
  for (std::uint32_t link = 0; link < kMostLinks; ++link) {
    arrived |= admission_.sort_arrivals(lock);
    if (admission_.closed(lock)) ending_.reject(lock);
    else admission_.admit_waiting(lock, [&](const RunPtr& run) { start(lock, run); });
    if (!admission_.has_arrivals()) break;
  }
  return arrived;
}

/// Frees the slots of single tasks that no thread waits for. Not in each turn: their places lie on lines that submitting
/// threads write, and a thread that finds no slot sweeps itself.
void Dispatcher::sweep_singles(const Lock&, Clock::time_point now) {
  constexpr std::chrono::milliseconds kPeriod{1};
  if (!singles_.in_flight() || now - last_sweep_ < kPeriod) return;
  last_sweep_ = now;
  singles_.sweep();
}

/// True if a run has joined the backlog, was admitted, has streamed or has ended within the last 200 us: then more is
/// likely to happen soon.
bool Dispatcher::gets_on(const Lock& lock, bool moved, Clock::time_point now) {
  constexpr std::chrono::microseconds kMoment{200};
  const AdmissionCounters& counters = admission_.counters(lock);
  // A run may have been admitted and retired since the last turn, by the threads of the program.
  const std::uint64_t singles = singles_.submitted();
  const bool came = counters.admitted != seen_.admitted || singles != singles_seen_;
  singles_seen_ = singles;
  kernel_.note_work(lock, came || anything_live(lock) || admission_.waiting(), now);
  if (moved || came || counters.ended != seen_.ended) last_progress_ = now;
  seen_ = counters;
  return now - last_progress_ < kMoment;
}

void Dispatcher::sleep(Lock& lock) {
  if (kernel_.launch_due(lock)) return;
  if (kernel_.gives_way(lock)) return sleep_until_next_end(lock);
  if (!admission_.waiting() && anything_live(lock)) {
    // The threads that wait for runs poll the completion words themselves. This thread only frees the slots of runs
    // that no thread waits for.
    wake_.wait_for(lock, std::chrono::microseconds(200));
    return;
  }
  const bool others_wait = admission_.waiting();
  // The store, then a fence of seq_cst: pairs with the fence and the load in join_backlog(), which gives the reason.
  asleep_.store(true, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (others_wait) sleep_until_next_end(lock);
  else sleep_until_notified(lock);
  asleep_.store(false, std::memory_order_relaxed);  // relaxed: a thread that still reads true notifies in vain
}

/// Sleeps while runs wait in the backlog or the kernel gives way: until a run joins the backlog, a thread retires a run, or a
/// sixteenth of the time has passed for which nothing has happened (10 us to 1 ms). A run that no thread waits for frees its
/// slot that much late.
void Dispatcher::sleep_until_next_end(Lock& lock) {
  constexpr Clock::duration kShortest = std::chrono::microseconds(10), kLongest = std::chrono::milliseconds(1);
  if (admission_.has_arrivals() || stopping_) return;
  const auto now = Clock::now();
  const auto still = kernel_.gives_way(lock) ? kernel_.gives_way_for(lock, now) : now - last_progress_;
  wake_.wait_for(lock, std::clamp<Clock::duration>(still / 16, kShortest, kLongest));
}

void Dispatcher::sleep_until_notified(Lock& lock) {
  if (admission_.waiting() || stopping_) return;
  constexpr std::chrono::milliseconds kStreamCheck{20};  // between looks at the device, see check_kernel()
  const bool resident = kernel_.resident(lock);
  if (resident && kernel_.parking(lock)) wake_.wait_for(lock, std::chrono::milliseconds(1));
  else if (admission_.expects_any(lock))
    wake_.wait_for(lock, resident ? std::min<Clock::duration>(kStreamCheck, kernel_.longest_sleep(lock)) : kStreamCheck);
  else if (resident) wake_.wait_for(lock, kernel_.longest_sleep(lock));
  else wake_.wait(lock, [&] { return has_work(lock); });
}

bool Dispatcher::has_work(const Lock& lock) const {
  return kernel_.resident(lock) || kernel_.launch_due(lock) || admission_.expects_any(lock) || stopping_ ||
         anything_live(lock) || admission_.waiting() || kernel_.gives_way(lock);
}

// ---- the kernel ----

/// Looks whether the kernel has ended, is lost, did not start, or makes no progress. Called about once per millisecond.
void Dispatcher::check_kernel(const Lock& lock) {
  if (kernel_.launch_due(lock) || (!kernel_.resident(lock) && !admission_.expects_any(lock))) return;
  std::string why;
  const EngineState state = kernel_.check(lock, why);
  if (state == EngineState::lost) return fail_everything(lock, Status::device_lost, why);
  if (!kernel_.resident(lock)) return;
  if (state == EngineState::parked) return take_up_end(lock);
  check_start(lock);
  check_progress(lock);
}

void Dispatcher::check_start(const Lock& lock) {
  if (kernel_.all_present(lock)) return;
  const auto missing = kernel_.missing_workers(lock, ending_.anyone_waits(lock));
  if (!missing) return;
  log::error(explain(Status::workers_missing, *missing));
  ending_.fail_waiting(lock, Status::workers_missing, *missing);
}

void Dispatcher::check_progress(const Lock& lock) {
  ending_.fail_stalled(lock);
  const std::string report = ending_.wait_report(lock);
  if (!report.empty()) fail_everything(lock, Status::spin_budget_spent, report);
}

/// The kernel has ended: it was told to park or to suspend itself, or it has aborted.
void Dispatcher::take_up_end(const Lock& lock) {
  const bool was_suspended = kernel_.suspending(lock);
  kernel_.note_end(lock);
  note_attention(lock);
  ending_.forget_abandoned(lock);
  const std::string report = ending_.wait_report(lock);
  if (!report.empty()) return fail_everything(lock, Status::spin_budget_spent, report);
  ending_.retire_finished(lock);
  singles_.sweep();
  // A message was written while the kernel parked; or it goes on, as it would have done without the suspension.
  const bool goes_on = was_suspended && !kernel_.is_idle_for_long(lock);
  const bool wanted = anything_live(lock) || (!admission_.closed(lock) && (goes_on || !inbox_.all_read()));
  if (wanted && !gone_) ensure_kernel(lock);
}

void Dispatcher::park_if_idle(const Lock& lock) {
  const bool idle = kernel_.resident(lock) && !kernel_.parking(lock) && !kernel_.suspending(lock) && !anything_live(lock) &&
                    !admission_.waiting();
  if (!idle || !kernel_.is_idle_for_long(lock)) return;
  kernel_.park(lock);
  note_attention(lock);
}

// ---- retirement and cancellation ----

void Dispatcher::retire(const RunPtr& run) {
  Lock lock(mutex_);
  or_fail_everything(lock, [&] { ending_.retire(lock, run); });
  if (admission_.waiting()) wake_.notify_one();  // a slot has become free
}

const Trace* Dispatcher::trace_of(const TracedWork& batch) {
  Lock lock(mutex_);
  or_fail_everything(lock, [&] { ending_.end_trace(lock); });
  return batch.trace.get();
}

void Dispatcher::retire_finished() {
  throw_if_closed();
  Lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;  // the thread that holds it may be retiring runs
  or_fail_everything(lock, [&] { ending_.retire_finished(lock); });
  if (admission_.waiting()) wake_.notify_one();  // a slot may have become free
}

void Dispatcher::listen(const RunPtr& run, Listener listener) {
  Lock lock(mutex_);  // a waiting run stays so, or is announced with the listener, see Admission::admit()
  std::scoped_lock ends(run->mutex);
  // Relaxed, both loads: `live` is only stored under the dispatcher's mutex, `done` under the run's, which are held.
  if (run->phase.load(std::memory_order_relaxed) == RunPhase::done) return listener.end(run);
  if (run->phase.load(std::memory_order_relaxed) == RunPhase::live) admission_.watch(lock, run, listener);
  run->add_listener(std::move(listener));
  RunRecord::let_listen(run);
}

void Dispatcher::cancel(const RunPtr& run) {
  Lock lock(mutex_);
  if (ending_.cancel(lock, run)) wake_.notify_one();  // room may have been reserved for it
}

DispatcherCounters Dispatcher::counters() {
  Lock lock(mutex_);
  const AdmissionCounters& runs = admission_.counters(lock);
  return {runs.admitted,       runs.ended,           direct_,       kernel_.launches(lock),
          kernel_.parks(lock), kernel_.yields(lock), runs.peak_live};
}

}  // namespace flywheel::detail
