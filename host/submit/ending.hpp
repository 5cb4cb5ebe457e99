// Ending: how a run ends and what it leaves behind. It takes finished runs out of their slots, cancels, fails those that stall,
// and turns away those that can no longer succeed. The dispatcher owns it; what ended runs had goes back to admission.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "../engine/engine.hpp"
#include "../kernel/heartbeat.hpp"
#include "admission.hpp"

namespace flywheel {

/// What happened, why, and what to do about it.
std::string explain(Status status, const std::string& cause);

/// The caller holds the dispatcher's mutex, which guards all fields.
class Ending {
 public:
  using RunPtr = std::shared_ptr<RunRecord>;

  Ending(Engine& engine, const DeviceState& dev, const Options& options, Watchdog& watchdog, InboxWriter& inbox,
         Admission& admission);

  // By themselves.
  /// Takes out all runs that have ended, and what the others have streamed. True if values came.
  bool retire_finished(const Lock& lock);
  /// Takes out a run whose completion word is there, unless another thread has done so.
  void retire(const Lock& lock, const RunPtr& run);

  // One by one.
  /// True if the run was in the backlog, so that others may go.
  bool cancel(const Lock& lock, const RunPtr& run);
  /// What the inbox had no room for before.
  void send_cancels(const Lock&);
  /// Runs of tasks that take longer than Options::stall_limit.
  void fail_stalled(const Lock& lock);
  /// Which worker waited for what, if one has spent its budget; else empty.
  std::string wait_report(const Lock& lock) const;

  // All.
  /// True if somebody waits for the kernel.
  bool anyone_waits(const Lock& lock) const;
  /// All that wait for the kernel. Only the program is told: live runs are in the inbox, and keep their slots until the kernel
  /// has read and ended them.
  void fail_waiting(const Lock& lock, Status status, const std::string& cause);
  /// Live runs are cancelled; those in the backlog end.
  void cancel_all(const Lock& lock);
  /// All end now, and so do those who come later, see turn_away(). `workers_go_on`: they may be at the runs' graphs until
  /// forget_abandoned().
  void end_all(const Lock& lock, Status status, const std::string& cause, bool workers_go_on);
  void forget_abandoned(const Lock&) { abandoned_.clear(); }
  /// Runs that have come to the backlog after all had ended.
  void turn_away(const Lock& lock);
  void turn_away(const Lock&, RunRecord& run) { run.end_early(end_status_, end_cause_); }

 private:
  struct Cancel {
    std::uint32_t slot, generation;
  };

  bool drain(RunRecord& run);
  void fetch_trace(RunRecord& run);
  void fail_live(const Lock& lock, RunRecord& run, Status status, const std::string& cause);
  void ask_to_cancel(const Lock& lock, RunRecord& run);
  void abandon(RunRecord& run, Status status, const std::string& cause);

  Engine& engine_;
  const DeviceState& dev_;
  const std::size_t most_unread_;
  Watchdog& watchdog_;
  InboxWriter& inbox_;
  Admission& admission_;

  std::vector<Cancel> cancels_due_;  // messages the inbox had no room for
  std::vector<RunPtr> abandoned_;    // their programs were told; workers may be at their graphs
  Status end_status_ = Status::aborted;  // of runs that come too late
  std::string end_cause_ = "the runtime was shut down";
};

}  // namespace flywheel
