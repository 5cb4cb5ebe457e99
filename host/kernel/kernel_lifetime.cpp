#include "kernel_lifetime.hpp"

#include <algorithm>

#include "../base/log.hpp"

namespace flywheel::detail {

namespace {
/// Drain mode keeps no kernel beyond its work. CPU workers hold no device, and a debugger should keep its threads.
std::chrono::milliseconds yield_period(const Engine& engine, const Options& options) {
  const bool yields = !engine.drains() && (engine.is_gpu() || options.tuning.cpu_yields);
  return yields ? options.yield_every : std::chrono::milliseconds(0);
}
}  // namespace

KernelLifetime::KernelLifetime(Engine& engine, DeviceState& dev, const Watchdog& watchdog, InboxWriter& inbox,
                               const Options& options)
    : engine_(engine),
      dev_(dev),
      watchdog_(watchdog),
      inbox_(inbox),
      park_after_(options.park_after),
      start_timeout_(options.start_timeout),
      yield_every_(yield_period(engine, options)),
      yield_gap_(options.tuning.yield_gap) {}

bool KernelLifetime::ensure(const Lock&) {
  if (resident_ || aborted_) return false;
  if (is_put_off(Clock::now())) {
    wanted_ = true;
    return false;
  }
  if (engine_.drains()) inbox_.write(InboxOp::park);
  dev_.launch = static_cast<std::uint32_t>(launches_ % kLaunchNumbers + 1);
  ++launches_;
  parking_ = engine_.drains();
  all_present_ = false;
  late_from_ = Clock::now();
  // A launch may wait for a call of the program that has the driver's lock, and other threads must not wait for that.
  launch_due_ = engine_.drains() || wanted_;
  wanted_ = false;
  if (!launch_due_) engine_.launch(dev_);
  resident_ = true;
  return launch_due_;
}

void KernelLifetime::launch_if_due(Lock& lock) {
  if (!launch_due_) return;
  const DeviceState dev = dev_;
  lock.unlock();
  engine_.launch(dev);
  lock.lock();
  launch_due_ = false;
}

void KernelLifetime::note_end(const Lock&) {
  if (suspending_) {
    ++yields_;
    setback_ = {};
    suspended_at_ = Clock::now();
    not_before_ = suspended_at_ + yield_gap_;
  }
  resident_ = parking_ = suspending_ = yield_asked_ = false;
  ++parks_;
}

void KernelLifetime::note_failure(const Lock& lock) {
  std::string why;
  resident_ = resident_ && check(lock, why) == EngineState::running;
  if (!resident_) parking_ = suspending_ = yield_asked_ = false;  // nobody waits for a kernel that is gone to yield
}

void KernelLifetime::park(const Lock&) {
  inbox_.write(InboxOp::park);
  parking_ = true;
  log::debug("idle: the kernel parks");
}

bool KernelLifetime::yield_due(const Lock&, Clock::time_point now) const {
  constexpr std::uint64_t kLongTaskNs = 50'000'000;
  if (!resident_ || launch_due_ || parking_ || suspending_ || aborted_) return false;
  if (watchdog_.longest_task_ns() >= kLongTaskNs) return false;  // the others go on meanwhile
  if (yield_asked_ || pauses_) return true;
  // The time begins when all workers are there: the launch may have waited for other kernels.
  return yield_every_.count() && all_present_ && now - present_from_ >= yield_every_ && now >= retry_from_;
}

void KernelLifetime::note_call_off(const Lock&, Clock::time_point now) {
  constexpr Clock::duration kLeast = std::chrono::seconds(1), kMost = std::chrono::seconds(32);
  // Relaxed: pairs with Announcer::call_off(); only the number counts.
  const std::uint64_t calls = CpuPlatform::system(*dev_.calls_off).load(Order::relaxed);
  if (calls == calls_off_) return;
  calls_off_ = calls;
  suspending_ = false;
  setback_ = std::clamp(2 * setback_, kLeast, kMost);
  retry_from_ = now + setback_;
}

void KernelLifetime::suspend(const Lock&, Clock::time_point now) {
  if (!inbox_.has_room(2)) return;  // one entry is left for a park message
  inbox_.write(InboxOp::suspend);
  suspending_ = true;
  suspended_at_ = now;
}

/// While another thread is in a call that waits for the device, such as cudaFree, the driver may keep a lock until the kernel
/// ends. The dispatcher must not wait for that lock, because it is the one that makes the kernel end. So it does not ask for
/// the state of a kernel that has workers and is about to yield. It asks again once the kernel is overdue, because a task
/// takes long or the device is lost.
bool KernelLifetime::must_not_ask() const {
  constexpr std::chrono::milliseconds kMostPeriod{1000}, kGrace{300};
  if (!resident_ || !yield_every_.count() || yield_every_ > kMostPeriod || !all_present_) return false;
  if (watchdog_.present() == 0) return false;
  return Clock::now() - present_from_ < yield_every_ + kGrace;
}

KernelLifetime::Clock::duration KernelLifetime::longest_sleep(const Lock&) const {
  return yield_every_.count() ? std::min<Clock::duration>(park_after_, yield_every_) : park_after_;
}

/// A cooperative launch starts all blocks or none: while other kernels hold the SMs it stays queued, so a late kernel
/// is not lost.
std::optional<std::string> KernelLifetime::missing_workers(const Lock&, bool waits) {
  all_present_ = watchdog_.present() == dev_.workers;
  const auto now = Clock::now();
  if (all_present_) present_from_ = now;
  if (!waits) late_from_ = now;  // the next run gets the full timeout
  if (all_present_ || now - late_from_ < start_timeout_) return std::nullopt;
  late_from_ = now;
  return std::to_string(watchdog_.present()) + " of " + std::to_string(dev_.workers) + " workers have started after " +
         std::to_string(start_timeout_.count()) + " ms";
}

void KernelLifetime::abort_workers(const Lock&) {
  const std::uint64_t yes = 1;
  aborted_ = true;
  wanted_ = false;  // ensure() launches none any more
  try {
    engine_.copy_to_device(&dev_.control->broadcast.abort, &yes, sizeof(yes));
  } catch (const std::exception& error) {
    log::error(std::string("the workers cannot be told to stop: ") + error.what());
  }
}

std::string KernelLifetime::what_stays(const Lock&) const {
  if (launch_due_) return "its launch has not returned";
  const std::uint32_t present = watchdog_.present();
  if (present == 0)
    return all_present_ ? "its workers have left, but the device does not report its end" : "it has not started";
  const std::string workers = std::to_string(present) + " of " + std::to_string(dev_.workers) + " workers are there";
  return workers + ", and the longest task has run for " + std::to_string(watchdog_.longest_task_ns() / 1'000'000) + " ms";
}

}  // namespace flywheel::detail
