#include "admission.hpp"

#include <algorithm>

#include "completion.hpp"

namespace flywheel::detail {

namespace {
/// Free inbox entries that a submission needs: one for itself, and two for the cancel and park messages that may
/// follow.
constexpr std::uint32_t kInboxRoom = 3;

/// The part of `all` slots, or of all room in the queues, that runs of this priority leave to higher ones. Low runs
/// leave an eighth and at least one, unless there is only one.
std::uint64_t left_to_higher(std::uint32_t priority, std::uint64_t all) {
  if (priority == static_cast<std::uint32_t>(Priority::high)) return 0;
  if (priority == static_cast<std::uint32_t>(Priority::normal)) return all / 16;
  return all > 1 ? std::max<std::uint64_t>(all / 8, 1) : 0;
}
}  // namespace

Admission::Admission(const DeviceState& dev, const Options& options, const InboxWriter& inbox)
    : dev_(dev),
      max_waiting_(options.max_waiting),
      inbox_(inbox),
      slots_(dev.run_slots) {}

bool Admission::may_go_at_once(const Lock&, RunRecord& run) const {
  if (waiting() > backlog_.held()) return false;
  if (run.before && obstacle_of(run).there) return false;
  if (run.will_not_run()) return true;  // admit() ends it
  return has_slot(run) && !is_behind_its_like(run) && (run.graph->kind != GraphKind::dynamic || has_room(run));
}

bool Admission::admit(const Lock&, const RunPtr& run) {
  if (!expected_.empty()) std::erase(expected_, run);
  if (run->cancel_requested) {
    run->end_early(Status::cancelled, "it had not started");
    return false;
  }
  if (run->before) obstacle_of(*run);  // one may have ended since the run was sorted
  if (run->predecessor_failed) {
    run->end_early(Status::predecessor_failed, predecessor_failure(*run));
    return false;
  }
  if (run->before)
    for (const TakenValue& value : run->before->values)
      if (value.run) ++value.run->readers;
  slots_.take(run);
  take_room(*run);
  const std::size_t params = run->graph->params.size();
  // Shorter ones travel in the message.
  if (params > most_carried(flags_of(*run)))
    std::copy_n(run->params.begin(), params, dev_.params + std::size_t{run->slot} * kParamBytes);
  run->announce_flight(dev_.completions[run->slot].word);
  counters_.peak_live = std::max<std::uint64_t>(counters_.peak_live, slots_.live());
  ++counters_.admitted;
  return true;
}

void Admission::take_room(RunRecord& run) {
  if (run.tracing) tracing_ = run.tracing;
  LoadedGraph& graph = *run.graph;
  run.bank = graph.free_banks.back();
  graph.free_banks.pop_back();
  if (graph.kind != GraphKind::dynamic) {
    all_workers_live_ = true;
  } else {
    live_tasks_ += graph.task_count;
    run.entry = reservation_.entered(graph.task_count);
  }
}

void Admission::give_back(const Lock&, const RunRecord& run) {
  LoadedGraph& graph = *run.graph;
  graph.free_banks.push_back(run.bank);
  if (graph.kind != GraphKind::dynamic) {
    all_workers_live_ = false;
  } else {
    live_tasks_ -= graph.task_count;
    reservation_.left(run.entry, graph.task_count);
  }
  slots_.give_back(run);
  ++counters_.ended;
}

bool Admission::remove(const Lock&, const RunPtr& run) {
  std::erase(expected_, run);
  return backlog_.remove(run);
}

void Admission::admit_waiting(const Lock&, const Start& start) {
  if (holds_ || !slots_.free() || !inbox_.has_room(kInboxRoom)) return;
  bool asked = false, all_seen = true;
  for (std::size_t level = 0; level < kPriorities && all_seen; ++level)
    all_seen = admit_level(backlog_.queues(level), start, asked);
  backlog_.forget_empty_queues();
  if (all_seen && !asked) reservation_.drop();
}

/// Starts the runs of one priority that may go. False if no slot is left for this priority; then lower priorities have
/// none either. `asked` becomes true when a run has asked for a reservation of room.
bool Admission::admit_level(Backlog::RunQueues& queues, const Start& start, bool& asked) {
  Backlog::Heads heads(queues);
  while (Backlog::RunQueue* queue = heads.take()) {
    const RunRecord& first = *queue->front();
    if (!first.will_not_run() && !has_slot(first)) return false;
    if (!first.will_not_run() && !may_leave(first, asked)) continue;
    start(backlog_.take_first(*queue));
    heads.give_back(*queue);
  }
  return true;
}

/// True if the run may go, slots aside. `asked` is true if an earlier run in the backlog has asked for a reservation:
/// then this run may only go where the reservation lets it pass. If the run lacks room and is the first such run, it
/// asks for the reservation itself.
bool Admission::may_leave(const RunRecord& run, bool& asked) {
  if (is_behind_its_like(run)) return false;
  if (run.graph->kind != GraphKind::dynamic) return true;
  if (asked) return reservation_.lets_pass(run.graph->task_count) && has_room(run);
  if (has_room(run)) return true;
  reservation_.ask(run.place, run.graph->task_count, room_for(run), live_tasks_, Reservation::Clock::now());
  asked = true;
  return false;
}

bool Admission::has_slot(const RunRecord& run) const {
  return !holds_ && !closed_ && slots_.free() > left_to_higher(run.priority, slots_.size()) && inbox_.has_room(kInboxRoom);
}

/// True if the run must wait for another run of its executable to end, if it is a collective run for another collective run,
/// or if it is traced for another trace.
bool Admission::is_behind_its_like(const RunRecord& run) const {
  if (run.tracing && tracing_ && tracing_ != run.tracing) return true;
  return run.graph->free_banks.empty() || (run.graph->kind != GraphKind::dynamic && all_workers_live_);
}

/// The number of tasks that may be live when this run is in flight. All live and all spawned tasks may be ready at
/// once, and that many fit into a queue, so no queue ever overflows. A run that needs more than the share of its
/// priority gets as much as it needs, and so goes when no other dynamic run is in flight.
std::uint64_t Admission::room_for(const RunRecord& run) const {
  const std::uint64_t all = dev_.queue_room - dev_.spawn_capacity;
  return std::max<std::uint64_t>(all - left_to_higher(run.priority, all), run.graph->task_count);
}

bool Admission::has_room(const RunRecord& run) const { return live_tasks_ + run.graph->task_count <= room_for(run); }

}  // namespace flywheel::detail
