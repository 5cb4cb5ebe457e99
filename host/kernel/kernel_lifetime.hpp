// The kernel's time on the device: launch, park, launch again; whether all its workers came, and whether it is still there.
// The dispatcher owns it and decides what follows for the runs.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "../base/lock.hpp"
#include "../engine/engine.hpp"
#include "heartbeat.hpp"
#include "inbox.hpp"

namespace flywheel {

/// All but launch_if_due() is called with the dispatcher's mutex held all the time, and all fields are guarded by it.
class KernelLifetime {
 public:
  using Clock = std::chrono::steady_clock;

  KernelLifetime(Engine& engine, DeviceState& dev, const Watchdog& watchdog, InboxWriter& inbox, const Options& options);

  /// Launches the kernel unless it is resident. `ended_of_all`: phased and compiled runs that have ended so far. True if the
  /// launch is due, and the dispatcher's thread is to make it.
  bool ensure(const Lock&, std::uint32_t ended_of_all);
  /// In drain mode a launch may last as long as the kernel (CUDA_LAUNCH_BLOCKING), and others must get on meanwhile: this lets
  /// go of the mutex. Throws what Engine::launch() throws, and then may not have the mutex.
  void launch_if_due(Lock& lock);
  bool launch_due(const Lock&) const { return launch_due_; }
  void forget_launch(const Lock&) { launch_due_ = false; }

  /// Asks the engine; makes CUDA calls.
  EngineState look(const Lock&, std::string& why_lost) const { return engine_.state(why_lost); }
  /// Launched, and not yet seen to end.
  bool resident(const Lock&) const { return resident_; }
  bool parking(const Lock&) const { return parking_; }
  void note_end(const Lock&);
  /// The engine has refused a launch, or lost the device: there may still be a kernel.
  void note_failure(const Lock&);

  void park(const Lock&);
  /// `busy`: there is work, or there has been since the last call.
  void note_work(const Lock&, bool busy, Clock::time_point now) { last_busy_ = busy ? now : last_busy_; }
  bool is_idle_for_long(const Lock&) const { return Clock::now() - last_busy_ >= park_after_; }

  /// As far as the last missing_workers() saw.
  bool all_present(const Lock&) const { return all_present_; }
  /// In words, once the workers have not all come within Options::start_timeout, during which somebody `waits` for them.
  std::optional<std::string> missing_workers(const Lock&, bool waits);
  /// Workers that wait for each other, or for the host, stop. A task body goes on until it looks at block.cancelled().
  void abort_workers(const Lock&);

  std::uint64_t launches(const Lock&) const { return launches_; }
  std::uint64_t parks(const Lock&) const { return parks_; }

 private:
  Engine& engine_;
  DeviceState& dev_;
  const Watchdog& watchdog_;
  InboxWriter& inbox_;
  const std::chrono::milliseconds park_after_;
  const std::chrono::milliseconds start_timeout_;

  bool resident_ = false;
  bool parking_ = false;      // told to park
  bool launch_due_ = false;
  bool all_present_ = false;  // all workers have started
  Clock::time_point late_from_{};  // what Options::start_timeout counts from
  Clock::time_point last_busy_{};
  std::uint64_t launches_ = 0;
  std::uint64_t parks_ = 0;
};

}  // namespace flywheel
