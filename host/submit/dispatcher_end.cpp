// The parts of the dispatcher that park the kernel or let it yield for other work, end everything at shutdown(), and fail all
// runs when the engine fails.
#include <string>

#include "../base/error.hpp"
#include "../base/log.hpp"
#include "dispatcher.hpp"

namespace flywheel::detail {

// ---- work while the kernel is parked ----

void Dispatcher::while_parked(const std::function<void()>& action) {
  Lock lock(mutex_);
  do_while_parked(lock, Clock::now() + shutdown_timeout_, action);
}

void Dispatcher::while_empty(const std::function<void()>& action) {
  Lock lock(mutex_);
  const auto limit = Clock::now() + shutdown_timeout_;
  admission_.hold(lock);
  // Relaxed: pairs with the load in submit(record). A single task that comes in between is waited for, or its thread waits
  // for the mutex before it launches a kernel.
  held_.store(true, std::memory_order_relaxed);
  const auto let_go = [&] {
    held_.store(false, std::memory_order_relaxed);  // relaxed: as above
    admission_.let_go(lock);
    wake_.notify_all();
  };
  try {
    require_parked(wait_until_empty(lock, limit));
    do_while_parked(lock, limit, action);
  } catch (...) {
    let_go();
    throw;
  }
  let_go();
}

void Dispatcher::do_while_parked(Lock& lock, Clock::time_point limit, const std::function<void()>& action) {
  kernel_.pause(lock);
  wake_.notify_all();
  const auto let_go = [&] {
    kernel_.unpause(lock);
    wake_.notify_all();
  };
  try {
    require_parked(wait_until_parked(lock, limit));
    action();
  } catch (...) {
    let_go();
    throw;
  }
  let_go();
}

void Dispatcher::require_parked(bool parked) const {
  if (!parked)
    throw CapacityError(
        "device memory is used up, and taking more needs a parked kernel, but runs in flight did not end or yield "
        "in time: raise Options::heap_bytes, or allocate before submitting");
}

bool Dispatcher::wait_until_empty(Lock& lock, Clock::time_point limit) {
  while (anything_live(lock) && !gone_) {
    if (Clock::now() > limit) return false;
    or_fail_everything(lock, [&] {
      ending_.retire_finished(lock);
      ending_.send_cancels(lock);
      if (singles_.in_flight()) singles_.sweep();
    });
    wake_.notify_all();  // the dispatcher's thread keeps the kernel going meanwhile
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    lock.lock();
  }
  return true;
}

bool Dispatcher::wait_until_parked(Lock& lock, Clock::time_point limit) {
  const auto goes_on = [&] { return kernel_.resident(lock) || kernel_.gives_way(lock); };
  while (goes_on()) {
    if (Clock::now() > limit) return !kernel_.resident(lock);
    or_fail_everything(lock, [&] {
      ending_.retire_finished(lock);
      ending_.send_cancels(lock);
      if (singles_.in_flight()) singles_.sweep();
      const bool stays = kernel_.resident(lock) && !kernel_.parking(lock) && !kernel_.suspending(lock);
      if (stays && !anything_live(lock) && !gone_) kernel_.park(lock);
      note_attention(lock);
      give_way(lock, Clock::now());  // the dispatcher's thread may sleep
      check_kernel(lock);
    });
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    lock.lock();
  }
  return true;
}

// ---- suspension: from time to time, and on demand ----

void Dispatcher::yield() {
  Lock lock(mutex_);
  kernel_.ask_to_yield(lock);
  wake_.notify_all();
}

void Dispatcher::pause() {
  Lock lock(mutex_);
  kernel_.pause(lock);
  wake_.notify_all();
  const auto limit = Clock::now() + shutdown_timeout_;
  while (kernel_.resident(lock)) {
    if (Clock::now() > limit) {
      kernel_.unpause(lock);
      throw DeviceError("the kernel did not end within Options::shutdown_timeout, " +
                        std::to_string(shutdown_timeout_.count()) +
                        " ms, for a Pause: a task, a pass of a compiled run or a phase takes longer, or a traced run is in "
                        "flight. Make them shorter, or wait for the run before the Pause");
    }
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    lock.lock();
  }
}

void Dispatcher::unpause() {
  Lock lock(mutex_);
  kernel_.unpause(lock);
  wake_.notify_all();
}

/// Takes the next step if the kernel is to give the GPU back: tells it, notes that it has ended, or launches it again.
void Dispatcher::give_way(const Lock& lock, Clock::time_point now) {
  if (kernel_.suspending(lock)) kernel_.note_call_off(lock, now);
  if (kernel_.yield_due(lock, now)) kernel_.suspend(lock, now);
  if (kernel_.has_left(lock)) check_kernel(lock);
  if (kernel_.relaunch_due(lock, now)) ensure_kernel(lock);
}

/// True if one of these steps is likely within a moment, so that the dispatcher's thread should not sleep. Workers leave
/// within some 20 us, unless bodies take longer.
bool Dispatcher::is_about_to_change(const Lock& lock, Clock::time_point now) const {
  constexpr std::chrono::microseconds kMoment{200};
  return kernel_.gives_way(lock) && kernel_.gives_way_for(lock, now) < kMoment;
}

// ---- shutdown ----

std::string Dispatcher::shutdown(std::chrono::milliseconds limit) {
  Lock lock(mutex_);
  // Release: pairs with the acquire in throw_if_closed(). `lost_` is not written after it.
  closed_.store(true, std::memory_order_release);
  // A seq_cst fence: pairs with the fence in submit(record), which explains it.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const auto end = Clock::now() + limit;
  while ((anything_live(lock) || admission_.waiting()) && Clock::now() < end && !gone_) {
    or_fail_everything(lock, [&] {
      if (!turn(lock)) wake_.wait_for(lock, std::chrono::microseconds(100));
    });
  }
  admission_.close(lock);
  ending_.cancel_all(lock);
  for (std::uint32_t slot = 0; slot < singles_.size(); ++slot) {
    const std::uint32_t at = singles_.first_slot() + slot;
    if (const std::uint32_t generation = singles_.generation_in(at)) ending_.cancel_slot(lock, at, generation);
  }
  const auto moment = limit / 4 + std::chrono::milliseconds(100);
  bool parked = wait_until_parked(lock, Clock::now() + moment);
  if (!parked) {
    kernel_.abort_workers(lock);
    parked = wait_until_parked(lock, Clock::now() + moment);
  }
  const std::string stays = parked ? "" : kernel_.what_stays(lock);
  fail_everything(lock, Status::aborted, "the runtime was shut down");
  return stays;
}

bool Dispatcher::let_go_if_stuck() {
  Lock lock(mutex_);
  if (!kernel_.launch_due(lock)) return false;
  stopping_ = true;
  if (thread_.joinable()) thread_.detach();
  return true;
}

// ---- no run can succeed any more ----

void Dispatcher::give_up(Lock& lock, Status status, const char* cause) {
  if (!lock.owns_lock()) lock.lock();
  kernel_.forget_launch(lock);
  fail_everything(lock, status, cause);
}

/// Fails all runs, now and later. Status::aborted means that the runtime was shut down; its kernel has been waited for
/// then.
void Dispatcher::fail_everything(const Lock& lock, Status status, const std::string& cause) {
  const bool lost = status != Status::aborted;
  admission_.close(lock);
  kernel_.want_none(lock);
  if (lost && gone_) return;  // done already
  if (lost) refuse_submissions(status, cause);
  if (status == Status::device_lost || status == Status::launch_refused) kernel_.note_failure(lock);
  const bool workers_go_on = lost && kernel_.resident(lock);
  if (workers_go_on) kernel_.abort_workers(lock);  // workers that have started must not spin for ever
  ending_.end_all(lock, status, cause, workers_go_on);
  singles_.fail_all(status, cause, true);
}

void Dispatcher::refuse_submissions(Status status, const std::string& cause) {
  gone_ = true;
  const std::string text = explain(status, cause);
  log::error(text);
  // Relaxed: `closed_` is only written under the mutex, which is held. If it is set already, other threads may be
  // reading `lost_`. Release: pairs with the acquire in throw_if_closed(); `lost_` is written before it.
  if (!closed_.load(std::memory_order_relaxed)) lost_ = text;
  closed_.store(true, std::memory_order_release);
}

}  // namespace flywheel::detail
