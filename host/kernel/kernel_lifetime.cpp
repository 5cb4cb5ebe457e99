#include "kernel_lifetime.hpp"

#include "../base/log.hpp"

namespace flywheel::detail {

KernelLifetime::KernelLifetime(Engine& engine, DeviceState& dev, const Watchdog& watchdog, InboxWriter& inbox,
                               const Options& options)
    : engine_(engine),
      dev_(dev),
      watchdog_(watchdog),
      inbox_(inbox),
      park_after_(options.park_after),
      start_timeout_(options.start_timeout) {}

bool KernelLifetime::ensure(const Lock&, std::uint32_t ended_of_all) {
  if (resident_) return false;
  if (engine_.drains()) inbox_.write(InboxOp::park);
  dev_.launch = static_cast<std::uint32_t>(launches_ % 65535 + 1);
  dev_.phased_before = ended_of_all;
  ++launches_;
  parking_ = engine_.drains();
  all_present_ = false;
  late_from_ = Clock::now();
  launch_due_ = engine_.drains();
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
  resident_ = parking_ = false;
  ++parks_;
}

void KernelLifetime::note_failure(const Lock& lock) {
  std::string why;
  resident_ = resident_ && check(lock, why) == EngineState::running;
}

void KernelLifetime::park(const Lock&) {
  inbox_.write(InboxOp::park);
  parking_ = true;
  log::debug("idle: the kernel parks");
}

/// A cooperative launch starts all blocks or none: while other kernels hold the SMs it stays queued, so a late kernel
/// is not lost.
std::optional<std::string> KernelLifetime::missing_workers(const Lock&, bool waits) {
  all_present_ = watchdog_.present() == dev_.workers;
  const auto now = Clock::now();
  if (!waits) late_from_ = now;  // the next run gets the full timeout
  if (all_present_ || now - late_from_ < start_timeout_) return std::nullopt;
  late_from_ = now;
  return std::to_string(watchdog_.present()) + " of " + std::to_string(dev_.workers) + " workers have started after " +
         std::to_string(start_timeout_.count()) + " ms";
}

void KernelLifetime::abort_workers(const Lock&) {
  const std::uint64_t yes = 1;
  try {
    engine_.copy_to_device(&dev_.control->broadcast.abort, &yes, sizeof(yes));
  } catch (const std::exception& error) {
    log::error(std::string("the workers cannot be told to stop: ") + error.what());
  }
}

}  // namespace flywheel::detail
