// The lifetime of the resident kernel: launch, park, suspension and relaunch, whether all workers have started, and whether the
// kernel still runs. The dispatcher owns it and decides what follows for the runs.
//
// A kernel that is suspended ends with its work kept (runtime/dynamic/README.md). The next launch is then put off: for a gap,
// in which others get the GPU, and while a Pause lives. The dispatcher's thread makes a launch that was put off.
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

  /// Launches the kernel unless it is resident or the launch is put off. True if the launch is due instead: then the
  /// dispatcher's thread must call launch_if_due().
  bool ensure(const Lock&);
  /// Makes the launch that ensure() has left to the dispatcher's thread, with the mutex released. In drain mode a
  /// launch may block until the kernel ends (CUDA_LAUNCH_BLOCKING), and other threads must not wait for that. Throws
  /// what Engine::launch() throws; the mutex may then be released.
  void launch_if_due(Lock& lock);
  bool launch_due(const Lock&) const { return launch_due_; }
  void forget_launch(const Lock&) { launch_due_ = false; }
  /// A launch that was put off is not wanted any more.
  void want_none(const Lock&) { wanted_ = false; }

  /// The state of the kernel as the engine reports it. Makes CUDA calls, but while it is about to yield: then it counts as
  /// running, see must_not_ask().
  EngineState check(const Lock&, std::string& why_lost) const {
    return must_not_ask() ? EngineState::running : engine_.state(why_lost);
  }
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

  // Suspension.
  /// The kernel is to yield once, as soon as possible. No effect if it is not resident.
  void ask_to_yield(const Lock&) { yield_asked_ = resident_; }
  /// No kernel is to be resident until unpause(). Pauses nest.
  void pause(const Lock&) { ++pauses_; }
  void unpause(const Lock&) { --pauses_; }
  /// True if the kernel is to end because of one of these, or because it has had the GPU for Options::yield_every.
  bool yield_due(const Lock&, Clock::time_point now) const;
  /// Writes the suspend message, if the inbox has room: the kernel ends as soon as its workers can leave.
  void suspend(const Lock&, Clock::time_point now);
  bool suspending(const Lock&) const { return suspending_; }
  /// Notes whether the inbox poller has called the suspension off, because a task took too long. Then the next one waits: for
  /// such tasks to end and, unless someone asks, for a time that doubles as long as no suspension goes well.
  void note_call_off(const Lock&, Clock::time_point now);
  /// True if its workers have left, so that check() will soon say that it has ended.
  bool has_left(const Lock&) const { return suspending_ && watchdog_.present() == 0; }
  /// True if a launch that was put off may be made now.
  bool relaunch_due(const Lock&, Clock::time_point now) const { return wanted_ && !resident_ && !is_put_off(now); }
  /// True while the dispatcher's thread waits for the kernel's workers to leave, or for the end of the gap.
  bool gives_way(const Lock&) const { return suspending_ || (wanted_ && !pauses_); }
  /// How long that has lasted.
  Clock::duration gives_way_for(const Lock&, Clock::time_point now) const { return now - suspended_at_; }
  /// How long the dispatcher's thread may sleep beside a kernel without work.
  Clock::duration longest_sleep(const Lock&) const;
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

  /// What keeps a kernel that should have ended, for a message.
  std::string what_stays(const Lock&) const;

  std::uint64_t launches(const Lock&) const { return launches_; }
  std::uint64_t parks(const Lock&) const { return parks_; }
  std::uint64_t yields(const Lock&) const { return yields_; }

 private:
  bool must_not_ask() const;
  bool is_put_off(Clock::time_point now) const { return pauses_ || now < not_before_; }

  Engine& engine_;
  DeviceState& dev_;
  const Watchdog& watchdog_;
  InboxWriter& inbox_;
  const std::chrono::milliseconds park_after_;
  const std::chrono::milliseconds start_timeout_;
  const std::chrono::milliseconds yield_every_;  // 0: only on demand
  const std::chrono::microseconds yield_gap_;

  bool resident_ = false;
  bool parking_ = false;  // told to park
  bool launch_due_ = false;
  bool all_present_ = false;       // all workers have started
  Clock::time_point late_from_{};  // when Options::start_timeout began
  Clock::time_point last_busy_{};
  std::uint64_t launches_ = 0;
  std::uint64_t parks_ = 0;

  bool suspending_ = false;   // told to suspend
  bool yield_asked_ = false;  // by ask_to_yield()
  bool wanted_ = false;       // a launch was put off
  bool aborted_ = false;      // a kernel would end at once
  std::uint32_t pauses_ = 0;
  std::uint64_t calls_off_ = 0;       // seen so far
  Clock::duration setback_{};         // after the last one
  Clock::time_point retry_from_{};    // the end of that time
  Clock::time_point present_from_{};  // when all workers of this launch had started
  Clock::time_point suspended_at_{};  // when the kernel was told to suspend, or has ended since
  Clock::time_point not_before_{};    // the end of the gap
  std::uint64_t yields_ = 0;
};

}  // namespace flywheel::detail
