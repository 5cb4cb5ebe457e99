// Admission: which run goes in flight, and when. It gives a run its slot, its bank of counters and its room in the ready
// queues; what cannot go yet waits in the backlog. The dispatcher owns it, and writes the messages of the runs that may go.
//
// What is promised: runs go by priority, and within one in the order of their submission; a run passes an earlier one of its
// own or a higher priority only if that cannot go yet, because its executable or all workers are taken or its tasks find too
// little room in the queues. For the last reason it is not passed without end, see host/submit/reservation.hpp. Nothing is taken from
// a run in flight, so runs of lower priorities leave some slots and some room to higher ones, see left_to_higher(). Low runs
// wait for as long as higher ones keep coming and take all there is. A backlog that is full takes in nobody, of any priority.
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

namespace flywheel {

struct AdmissionCounters {
  std::uint64_t admitted = 0;
  std::uint64_t ended = 0;          // of those
  std::uint32_t ended_of_all = 0;   // of those, phased and compiled ones
  std::uint64_t peak_live = 0;      // most runs in flight at once
};

class Admission {
 public:
  using RunPtr = std::shared_ptr<RunRecord>;
  using Start = std::function<void(const RunPtr&)>;

  Admission(const DeviceState& dev, const Options& options, const InboxWriter& inbox);

  // Any thread, without the mutex.
  bool is_full() const { return backlog_.size() >= max_waiting_; }
  std::uint32_t waiting() const { return backlog_.size(); }
  bool has_arrivals() const { return !backlog_.fresh_empty(); }
  void enqueue(RunPtr run) { backlog_.enqueue(std::move(run)); }

  // In.
  /// True if the run may go in flight before it ever was in the backlog: then admit() it.
  bool may_go_at_once(const Lock&, const RunRecord& run) const;
  /// Gives a run that may go its place among those in flight. False if it had been cancelled: then it has ended.
  bool admit(const Lock&, const RunPtr& run);
  /// Sorts what has arrived into the backlog. False if nothing has.
  bool sort_arrivals(const Lock&) { return backlog_.drain(); }
  /// Takes all that may go out of the backlog, each into `start`, which admits it and writes its message.
  void admit_waiting(const Lock&, const Start& start);

  // Out.
  const RunSlots& in_flight(const Lock&) const { return slots_; }
  /// The run has ended: what it had is free for others.
  void give_back(const Lock&, const RunRecord& run);
  /// The runs in flight, none of which will end.
  std::vector<RunPtr> abandon_all(const Lock&) { return slots_.abandon(); }
  /// A run that has not started. True if it was in the backlog, so that others may go.
  bool remove(const Lock&, const RunPtr& run);
  std::vector<RunPtr> empty_backlog(const Lock&) { return backlog_.take_all(); }

  // Runs that CUDA streams are to submit.
  void expect(const Lock&, const RunPtr& run) { expected_.push_back(run); }
  bool expects_any(const Lock&) const { return !expected_.empty(); }
  std::vector<RunPtr> forget_expected(const Lock&) { return std::exchange(expected_, {}); }

  // The gate. Each hold() needs a let_go(); close() is for good.
  void hold(const Lock&) { ++holds_; }
  void let_go(const Lock&) { --holds_; }
  void close(const Lock&) { closed_ = true; }
  bool closed(const Lock&) const { return closed_; }

  const AdmissionCounters& counters(const Lock&) const { return counters_; }

 private:
  bool admit_level(Backlog::Lanes& lanes, const Start& start, bool& outcome);
  bool may_leave(const RunRecord& run, bool& outcome);
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
  std::vector<RunPtr> expected_;
  std::uint32_t holds_ = 0;
  bool closed_ = false;
  AdmissionCounters counters_;
};

}  // namespace flywheel
