// Admission decides which run goes in flight, and when. It gives a run its slot, its bank of counters and its room in
// the ready queues. A run that cannot go yet waits in the backlog. The dispatcher owns admission, and writes the
// messages of admitted runs.
//
// Runs go by priority, and in the order of submission within a priority. A run passes an earlier one only if that one
// cannot go yet, and not for ever. host/submit/README.md gives the full rules.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "../base/lock.hpp"
#include "../base/options.hpp"
#include "../kernel/inbox.hpp"
#include "backlog.hpp"
#include "reservation.hpp"
#include "run_slots.hpp"

namespace flywheel::detail {

/// Counts since the start.
struct AdmissionCounters {
  std::uint64_t admitted = 0;
  std::uint64_t ended = 0;      // of the admitted runs
  std::uint64_t peak_live = 0;  // most runs in flight at once
};

/// The functions with a Lock need the dispatcher's mutex; it guards all fields except the backlog's arrivals and count.
class Admission {
 public:
  using RunPtr = std::shared_ptr<RunRecord>;
  using Start = std::function<void(const RunPtr&)>;

  Admission(const DeviceState& dev, const Options& options, const InboxWriter& inbox);

  // Any thread, without the mutex. The counts are hints, see Backlog::size().
  /// True if Options::max_waiting runs are in the backlog. Threads that submit at the same moment may exceed the limit
  /// by one run each.
  bool is_full() const { return backlog_.size() >= max_waiting_; }
  std::uint32_t waiting() const { return backlog_.size(); }
  /// True if a run has been enqueued that sort_arrivals() has not taken yet.
  bool has_arrivals() const { return !backlog_.no_arrivals(); }
  void enqueue(RunPtr run) { backlog_.enqueue(std::move(run)); }

  // Into flight.
  /// True if the run may go in flight without entering the backlog. Then the caller calls admit().
  bool may_go_at_once(const Lock&, RunRecord& run) const;
  /// Gives the run its slot, counters and room. False if the run was cancelled before: then it has ended.
  bool admit(const Lock&, const RunPtr& run);
  /// The run is in flight, or has ended: followers that the backlog has held back for that become arrivals again.
  void let_followers_go(const Lock&, const RunRecord& run, bool ended) {
    if (backlog_.held()) backlog_.let_go(run, ended);
  }
  /// Moves the runs that were enqueued into the run queues of the backlog. False if there were none.
  bool sort_arrivals(const Lock&) { return backlog_.drain(); }
  /// Takes all runs that may go out of the backlog and calls `start` for each. `start` admits the run and writes its
  /// message.
  void admit_waiting(const Lock&, const Start& start);

  /// Tells a listener where the end of a live run shows.
  void watch(const Lock&, const RunPtr& run, const Listener& listener) const {
    listener.watch(run, dev_.completions[run->slot].word, run->generation);
  }

  // Out of flight.
  const RunSlots& in_flight(const Lock&) const { return slots_; }
  /// The run has ended: frees its slot, counters and room.
  void give_back(const Lock&, const RunRecord& run);
  /// Removes and returns the runs in flight, none of which will end. Their slots stay taken.
  std::vector<RunPtr> abandon_all(const Lock&) { return slots_.abandon(); }
  /// Removes a run that has not started. True if it was in the backlog: other runs may then be able to go.
  bool remove(const Lock&, const RunPtr& run);
  /// Removes and returns all runs in the backlog.
  std::vector<RunPtr> empty_backlog(const Lock&) { return backlog_.take_all(); }

  /// The work whose trace the tracks hold, from the admission of its first run to end_tracing(); null: none. No other traced
  /// run goes in flight meanwhile, and of a batch all parts do.
  const std::shared_ptr<TracedWork>& tracing(const Lock&) const { return tracing_; }
  void end_tracing(const Lock&) { tracing_.reset(); }

  // Runs that CUDA streams will submit.
  void expect(const Lock&, const RunPtr& run) { expected_.push_back(run); }
  bool expects_any(const Lock&) const { return !expected_.empty(); }
  std::vector<RunPtr> forget_expected(const Lock&) { return std::exchange(expected_, {}); }

  // The gate. While hold() is in force no run goes in flight; each hold() needs a let_go().
  void hold(const Lock&) { ++holds_; }
  void let_go(const Lock&) { --holds_; }
  /// No run goes in flight any more.
  void close(const Lock&) { closed_ = true; }
  bool closed(const Lock&) const { return closed_; }

  const AdmissionCounters& counters(const Lock&) const { return counters_; }

 private:
  bool admit_level(Backlog::RunQueues& queues, const Start& start, bool& asked);
  bool may_leave(const RunRecord& run, bool& asked);
  bool has_slot(const RunRecord& run) const;
  bool is_behind_its_like(const RunRecord& run) const;
  std::uint64_t room_for(const RunRecord& run) const;
  bool has_room(const RunRecord& run) const;
  void take_room(RunRecord& run);

  const DeviceState& dev_;
  const std::uint32_t max_waiting_;
  Backlog backlog_;

  // Guarded by the dispatcher's mutex.
  const InboxWriter& inbox_;
  RunSlots slots_;
  Reservation reservation_;
  std::uint64_t live_tasks_ = 0;   // of dynamic runs
  bool all_workers_live_ = false;  // a phased or compiled run is in flight
  std::shared_ptr<TracedWork> tracing_;
  std::vector<RunPtr> expected_;
  std::uint32_t holds_ = 0;
  bool closed_ = false;
  AdmissionCounters counters_;
};

}  // namespace flywheel::detail
