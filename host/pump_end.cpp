// How the pump ends things: one run, the kernel's stay on the GPU, everything.
#include "host/error.hpp"
#include "host/log.hpp"
#include "host/pump.hpp"

namespace flywheel {

void Pump::cancel(const RunPtr& run) {
  Lock lock(mutex_);
  if (run->phase.load(std::memory_order_relaxed) == RunPhase::done || run->cancel_asked) return;
  run->cancel_asked = true;
  if (run->phase.load(std::memory_order_relaxed) == RunPhase::live) return send_cancel(*run);
  if (line_->remove(run)) wake_.notify_one();  // room may have been kept for it; else a stream is to submit it yet
  std::erase(expected_, run);
  finish(*run, Status::cancelled, "it had not started");
}

/// The caller does not wait for room, since it holds the lock: what finds none is sent by a later turn.
void Pump::send_cancel(const RunRecord& run) {
  RunConstants message{};
  message.op = static_cast<std::uint32_t>(InboxOp::cancel);
  message.slot = run.slot;
  message.generation = run.generation;
  cancels_due_.push_back(message);
  send_cancels();
}

void Pump::send_cancels() {
  auto next = cancels_due_.begin();
  for (; next != cancels_due_.end() && inbox_.has_room(2); ++next) inbox_.write(*next);
  cancels_due_.erase(cancels_due_.begin(), next);
}

void Pump::park_if_idle(const Lock&) {
  const bool idle = resident_ && !parking_ && !live_count_ && !line_->length.load(std::memory_order_relaxed);
  if (idle && Clock::now() - last_busy_ >= options_.park_after) park();
}

void Pump::park() {
  inbox_.write(InboxOp::park);
  parking_ = true;
  log::debug("idle: the kernel parks");
}

void Pump::while_parked(const std::function<void()>& action) {
  Lock lock(mutex_);
  ++holds_;
  const auto let_go = [&] {
    --holds_;
    wake_.notify_all();
  };
  bool parked = false;
  try {
    parked = wait_until_parked(lock, Clock::now() + options_.shutdown_timeout);
    if (parked) action();
  } catch (...) {
    let_go();
    throw;
  }
  let_go();
  if (!parked)
    throw CapacityError("device memory is used up, and taking more needs a parked kernel, but runs in flight did not "
                        "end in time: raise Options::heap_bytes, or allocate before submitting");
}

bool Pump::wait_until_parked(Lock& lock, Clock::time_point limit) {
  while (resident_) {
    if (Clock::now() > limit) return false;
    or_fail_everything(lock, [&] {
      take_finished(lock);
      send_cancels();
      if (!live_count_ && !parking_ && !gone_) park();
      check_kernel(lock);
    });
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    lock.lock();
  }
  return !resident_;
}

bool Pump::shutdown(std::chrono::milliseconds limit) {
  Lock lock(mutex_);
  line_->closed.store(true, std::memory_order_release);  // pairs with the acquire in throw_if_closed(); `lost_` stays empty
  const auto end = Clock::now() + limit;
  while ((live_count_ || line_->length.load(std::memory_order_relaxed)) && Clock::now() < end && !gone_) {
    or_fail_everything(lock, [&] {
      if (!turn(lock)) wake_.wait_for(lock, std::chrono::microseconds(100));
    });
  }
  closed_ = true;
  cancel_all(lock);
  bool parked = wait_until_parked(lock, Clock::now() + limit / 4 + std::chrono::milliseconds(100));
  if (!parked) {
    abort_workers();
    parked = wait_until_parked(lock, Clock::now() + limit / 4 + std::chrono::milliseconds(100));
  }
  fail_everything(lock, Status::aborted, "the runtime was shut down");
  return parked;
}

bool Pump::let_go_if_stuck() {
  Lock lock(mutex_);
  if (!launch_due_) return false;
  ending_ = true;
  if (thread_.joinable()) thread_.detach();
  return true;
}

void Pump::abort_workers() {
  const std::uint64_t yes = 1;
  try {
    engine_.copy_to_device(&world_.control->board.abort, &yes, sizeof(yes));
  } catch (const std::exception& error) {
    log::error(std::string("the workers cannot be told to stop: ") + error.what());
  }
}

void Pump::cancel_all(const Lock&) {
  for (const RunPtr& run : line_->take_all())
    finish(*run, Status::aborted, "the runtime was shut down before it started");
  for (const RunPtr& run : live_)
    if (run && !run->cancel_asked) {
      run->cancel_asked = true;
      send_cancel(*run);
    }
}

}  // namespace flywheel
