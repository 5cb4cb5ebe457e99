// The lifetime of the resident kernel: launch, park and relaunch, whether all workers have started, and whether the
// kernel still runs. The dispatcher owns it and decides what follows for the runs.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "../base/lock.hpp"
#include "../engine/engine.hpp"
#include "heartbeat.hpp"
#include "inbox.hpp"

namespace flywheel::detail {

/// The dispatcher's mutex guards all fields. It is held during every call; only launch_if_due() releases it for a
/// while.
class KernelLifetime {
 public:
  using Clock = std::chrono::steady_clock;

  KernelLifetime(Engine& engine, DeviceState& dev, const Watchdog& watchdog, InboxWriter& inbox, const Options& options);

  /// Launches the kernel unless it is resident. `ended_of_all`: the number of phased and compiled runs that have ended
  /// so far. True if the launch is due instead: then the dispatcher's thread must call launch_if_due().
  bool ensure(const Lock&, std::uint32_t ended_of_all);
  /// Makes the launch that ensure() has left to the dispatcher's thread, with the mutex released. In drain mode a
  /// launch may block until the kernel ends (CUDA_LAUNCH_BLOCKING), and other threads must not wait for that. Throws
  /// what Engine::launch() throws; the mutex may then be released.
  void launch_if_due(Lock& lock);
  bool launch_due(const Lock&) const { return launch_due_; }
  void forget_launch(const Lock&) { launch_due_ = false; }

  /// The state of the kernel as the engine reports it. Makes CUDA calls.
  EngineState check(const Lock&, std::string& why_lost) const { return engine_.state(why_lost); }
  /// True from the launch until note_end().
  bool resident(const Lock&) const { return resident_; }
  /// True if the kernel has been told to park.
  bool parking(const Lock&) const { return parking_; }
  /// The dispatcher has seen that the kernel has ended.
  void note_end(const Lock&);
  /// The engine has refused a launch or lost the device. The kernel counts as resident only if it still runs.
  void note_failure(const Lock&);

  /// Writes the park message: the kernel ends once it has no work.
  void park(const Lock&);
  /// Restarts the idle time if `busy`: there is work now, or there has been some since the last call.
  void note_work(const Lock&, bool busy, Clock::time_point now) { last_busy_ = busy ? now : last_busy_; }
  /// True if there has been no work for Options::park_after.
  bool is_idle_for_long(const Lock&) const { return Clock::now() - last_busy_ >= park_after_; }

  /// True if the last call of missing_workers() found all workers.
  bool all_present(const Lock&) const { return all_present_; }
  /// An error message if not all workers have started within Options::start_timeout, else nothing. The timeout runs
  /// only while some run `waits` for the kernel.
  std::optional<std::string> missing_workers(const Lock&, bool waits);
  /// Makes all workers that wait, for each other or for the host, give up. A task body continues until it looks at
  /// block.cancelled().
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
  bool parking_ = false;  // told to park
  bool launch_due_ = false;
  bool all_present_ = false;       // all workers have started
  Clock::time_point late_from_{};  // when Options::start_timeout began
  Clock::time_point last_busy_{};
  std::uint64_t launches_ = 0;
  std::uint64_t parks_ = 0;
};

}  // namespace flywheel::detail
