// Ending collects finished runs from their slots, cancels runs, fails those that stall, and turns away those that can
// no longer succeed. The dispatcher owns it. Slots, counters and room of ended runs go back to admission.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "../engine/engine.hpp"
#include "../kernel/heartbeat.hpp"
#include "../single/single_tasks.hpp"
#include "admission.hpp"

namespace flywheel::detail {

/// The text of an error: what happened, the cause, and the remedy.
std::string explain(Status status, const std::string& cause);

/// The caller holds the dispatcher's mutex, which guards all fields.
class Ending {
 public:
  using RunPtr = std::shared_ptr<RunRecord>;

  Ending(Engine& engine, const DeviceState& dev, const Options& options, Watchdog& watchdog, InboxWriter& inbox,
         Admission& admission, SingleTasks& singles);

  // Runs that end by themselves.
  /// Retires all runs that have ended, and reads what the other runs have streamed. True if there were streamed values.
  bool retire_finished(const Lock& lock);
  /// The same for some slots, others each time: with a thousand runs in flight a look at all takes as long as ten submissions.
  bool retire_some(const Lock& lock);
  /// Retires a run whose completion word is written, unless another thread has done so: collects its outcome and frees
  /// its slot.
  void retire(const Lock& lock, const RunPtr& run);

  /// If all runs of the work that is being traced have ended: copies its trace, unless that is done. Then another may begin.
  void end_trace(const Lock& lock) { end_trace(lock, nullptr); }

  // Single runs.
  /// Cancels a run. True if it was in the backlog: other runs may then be able to go.
  bool cancel(const Lock& lock, const RunPtr& run);
  /// The same for whatever is in a slot: a single task.
  void cancel_slot(const Lock& lock, std::uint32_t slot, std::uint32_t generation);
  /// Sends the cancel messages for which the inbox had no room before.
  void send_cancels(const Lock&);
  /// Fails and cancels the runs of tasks that have exceeded Options::stall_limit.
  void fail_stalled(const Lock& lock);
  /// The report of workers whose wait has exceeded its time budget; empty if there is none.
  std::string wait_report(const Lock& lock) const;

  // All runs.
  /// True if a run needs the kernel: one in the backlog, or a live one.
  bool anyone_waits(const Lock& lock) const;
  /// Fails all runs that need the kernel. Live runs are in the inbox: the program sees them fail, and they keep their
  /// slots until the kernel has read and ended them.
  void fail_waiting(const Lock& lock, Status status, const std::string& cause);
  /// Cancels live runs and ends those in the backlog.
  void cancel_all(const Lock& lock);
  /// Ends all runs now, and all later ones, see reject(). If `workers_go_on`, workers may still read the runs'
  /// graphs, which are then kept until forget_abandoned().
  void end_all(const Lock& lock, Status status, const std::string& cause, bool workers_go_on);
  /// The kernel has ended: drops the graphs of abandoned runs.
  void forget_abandoned(const Lock&) { abandoned_.clear(); }
  /// Ends runs that have entered the backlog after end_all().
  void reject(const Lock& lock);
  void reject(const Lock&, RunRecord& run) { run.end_early(end_status_, end_cause_); }

 private:
  struct Cancel {
    std::uint32_t slot, generation;
  };

  static constexpr std::uint32_t kSlotsAtOnce = 256;

  bool retire_in(const Lock& lock, std::uint32_t first, std::uint32_t end);
  void fail_stalled_single(const Lock& lock, const Stall& stall);
  void retire_predecessors(const Lock& lock, const RunPtr& run);
  void take_up(const Lock& lock, const RunPtr& run);
  void let_predecessors_go(const Lock& lock, RunRecord& run);
  bool drain(RunRecord& run);
  void end_trace(const Lock& lock, const RunRecord* run);
  void fail_live(const Lock& lock, RunRecord& run, Status status, const std::string& cause);
  void ask_to_cancel(const Lock& lock, RunRecord& run);
  void abandon(RunRecord& run, Status status, const std::string& cause);

  Engine& engine_;
  const DeviceState& dev_;
  const std::size_t most_unread_;
  Watchdog& watchdog_;
  InboxWriter& inbox_;
  Admission& admission_;
  SingleTasks& singles_;

  std::uint32_t next_slot_ = 0;          // where retire_some() goes on
  std::vector<Cancel> cancels_due_;      // messages for which the inbox had no room
  std::vector<RunPtr> abandoned_;        // ended for the program; workers may still use their graphs
  Status end_status_ = Status::aborted;  // of runs that come too late
  std::string end_cause_ = "the runtime was shut down";
};

}  // namespace flywheel::detail
