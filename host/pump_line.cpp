// Who may leave the line and go in flight.
//
// What is promised: runs go by priority, and within one in the order of their submission; a run passes an earlier one of its
// own or a higher priority only if that cannot go yet, because its executable or all workers are taken or its tasks find too
// little room in the queues. For the last reason it is not passed without end, see host/reservation.hpp. Nothing is taken from
// a run in flight, so runs of lower priorities leave some slots and some room to higher ones, see left_to_higher(). Low runs
// wait for as long as higher ones keep coming and take all there is. A line that is full takes in nobody, of any priority.
#include <algorithm>

#include "host/pump.hpp"

namespace flywheel {

namespace {
/// Of all slots, or of all room in the queues, what runs of this priority leave to higher ones. One slot alone serves all.
std::uint64_t left_to_higher(std::uint32_t priority, std::uint64_t all) {
  if (priority == static_cast<std::uint32_t>(Priority::high)) return 0;
  if (priority == static_cast<std::uint32_t>(Priority::normal)) return all / 16;
  return all > 1 ? std::max<std::uint64_t>(all / 8, 1) : 0;
}
}  // namespace

void Pump::let_in(const Lock& lock) {
  if (holds_ || free_slots_.empty() || !inbox_.has_room(3)) return;
  bool asked = false, all_seen = true;
  for (std::size_t level = 0; level < kPriorities && all_seen; ++level)
    all_seen = let_in_level(lock, line_->levels[level], asked);
  line_->forget_empty_lanes();
  if (all_seen && !asked) reservation_.drop();
}

/// False if the slots that this priority may take are all taken; so are then those of lower ones.
bool Pump::let_in_level(const Lock& lock, Line::Lanes& lanes, bool& asked) {
  Line::Heads heads(lanes);
  while (Line::Lane* lane = heads.take()) {
    const RunRecord& first = *lane->front();
    if (!first.cancel_asked && !has_slot(first)) return false;
    if (!first.cancel_asked && !may_leave_line(first, asked)) continue;
    let_in_first(lock, *lane);
    heads.give_back(*lane);
  }
  return true;
}

/// `asked`: an earlier run has asked for room to be kept for it.
bool Pump::may_leave_line(const RunRecord& run, bool& asked) {
  if (is_behind_its_like(run)) return false;
  if (run.graph->kind != GraphKind::dynamic) return true;
  if (asked) return reservation_.lets_pass(run.graph->task_count) && has_room(run);
  if (has_room(run)) return true;
  reservation_.ask(run.place, run.graph->task_count, room_for(run), live_tasks_, Clock::now());
  asked = true;
  return false;
}

/// Out of the line before it goes in: whatever is thrown on the way, it is in one place.
void Pump::let_in_first(const Lock& lock, Line::Lane& lane) {
  const RunPtr run = std::move(lane.front());
  lane.pop_front();
  line_->length.fetch_sub(1, std::memory_order_relaxed);
  let_in(lock, run);
}

bool Pump::has_slot(const RunRecord& run) const {
  return !holds_ && !closed_ && free_slots_.size() > left_to_higher(run.priority, live_.size()) && inbox_.has_room(3);
}

/// Waits for a run of its executable to end or, if all workers take part in it, for another such run.
bool Pump::is_behind_its_like(const RunRecord& run) const {
  return run.graph->free_banks.empty() || (run.graph->kind != GraphKind::dynamic && all_workers_live_);
}

/// Every live task may be ready at once, and so may every spawned one: that many fit, so no queue ever overflows. A run that
/// needs more than its priority may take goes alone.
std::uint64_t Pump::room_for(const RunRecord& run) const {
  const std::uint64_t all = world_.queue_capacity - world_.spawn_capacity;
  return std::max<std::uint64_t>(all - left_to_higher(run.priority, all), run.graph->task_count);
}

bool Pump::has_room(const RunRecord& run) const { return live_tasks_ + run.graph->task_count <= room_for(run); }

bool Pump::can_let_in(const RunRecord& run) const {
  if (run.cancel_asked) return true;  // to be told so
  return has_slot(run) && !is_behind_its_like(run) && (run.graph->kind != GraphKind::dynamic || has_room(run));
}

}  // namespace flywheel
