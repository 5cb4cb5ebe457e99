// The parts of the dispatcher that park the kernel for other work, end everything at shutdown(), and fail all runs when
// the engine fails.
#include "../base/error.hpp"
#include "../base/log.hpp"
#include "dispatcher.hpp"

namespace flywheel::detail {

// ---- work while the kernel is parked ----

void Dispatcher::while_parked(const std::function<void()>& action) {
  Lock lock(mutex_);
  admission_.hold(lock);
  const auto let_go = [&] {
    admission_.let_go(lock);
    wake_.notify_all();
  };
  bool parked = false;
  try {
    parked = wait_until_parked(lock, Clock::now() + shutdown_timeout_);
    if (parked) action();
  } catch (...) {
    let_go();
    throw;
  }
  let_go();
  if (!parked)
    throw CapacityError(
        "device memory is used up, and taking more needs a parked kernel, but runs in flight did not "
        "end in time: raise Options::heap_bytes, or allocate before submitting");
}

bool Dispatcher::wait_until_parked(Lock& lock, Clock::time_point limit) {
  while (kernel_.resident(lock)) {
    if (Clock::now() > limit) return false;
    or_fail_everything(lock, [&] {
      ending_.retire_finished(lock);
      ending_.send_cancels(lock);
      if (singles_.in_flight()) singles_.sweep();
      if (!anything_live(lock) && !kernel_.parking(lock) && !gone_) kernel_.park(lock);
      note_attention(lock);
      check_kernel(lock);
    });
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    lock.lock();
  }
  return true;
}

// ---- shutdown ----

bool Dispatcher::shutdown(std::chrono::milliseconds limit) {
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
  fail_everything(lock, Status::aborted, "the runtime was shut down");
  return parked;
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
