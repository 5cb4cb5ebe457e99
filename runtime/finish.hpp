// Finishing a task: its successors hear of it, the last one to tell a successor makes it ready.
#pragma once

#include "runtime/completion.hpp"
#include "runtime/counter.hpp"
#include "runtime/cpu_crew.hpp"
#include "runtime/spawn.hpp"

namespace flywheel {

/// A task between the queue and its end.
struct Staged {
  Item item;
  TaskHeader header;
  Edge edge;           // lane i holds edge i, fetched while the task runs
  std::uint32_t slot;  // which of the crew's two stages holds it
  Outcome outcome;
  bool runs;           // false: skipped, its successors only hear of it
  bool failed;
  bool live;
};

template <class P>
class Finisher {
 public:
  FLYWHEEL_TASK Finisher(const World& world, std::uint32_t id)
      : world_(world), ready_(world, id), wait_(Wires<P>{world}.wait(id)) {}

  /// Collective.
  FLYWHEEL_TASK void operator()(Staged task) {
    task.failed |= note_outcome(task);
    if (task.header.edge_count == 0) {
      const bool alone = !task.outcome.spawned && !(task.header.flags & kTaskSpawned);
      arrive_sink<P>(world_, ready_, task.item.run, alone);
    } else {
      tell_successors(task);
    }
    if (task.header.flags & kTaskSpawned) recycle_spawned<P>(world_, task.item.record, wait_);
  }

  /// The successor this worker kept for itself, or kEmptyMailbox.
  FLYWHEEL_TASK std::uint64_t take_kept() {
    const std::uint64_t item = kept_;
    kept_ = kEmptyMailbox;
    return item;
  }

  FLYWHEEL_TASK Edge fetch_edge(const TaskHeader& header, std::uint32_t e) const {
    return e < header.edge_count ? world_.edges[header.first_edge + e] : Edge{};
  }

 private:
  FLYWHEEL_TASK bool note_outcome(const Staged& task) const {
    RunState& run = world_.runs[task.item.run];
    if (task.runs && P::lane() == 0) {
      if (task.outcome.code) record_fault<P>(run, task.outcome.code, task.header.local);
      // Relaxed: this task's own arrival releases it to the finisher of the iteration.
      if (task.outcome.stop) P::device(run.stop).store(kStopRequested, Order::relaxed);
    }
    return task.runs && task.outcome.code != 0;
  }

  FLYWHEEL_TASK void tell_successors(const Staged& task) {
    RunState& run = world_.runs[task.item.run];
    P::converge();
    for (std::uint32_t base = 0; base < task.header.edge_count; base += P::lanes()) {
      const std::uint32_t e = base + P::lane();
      const Edge edge = base ? fetch_edge(task.header, e) : task.edge;
      Arrival arrival{false, false};
      if (e < task.header.edge_count) arrival = tell(run, task, edge);
      P::converge();  // what one lane acquired by arriving last goes out with every lane's publication
      publish(run, task.item.run, edge, arrival);
    }
  }

  /// One lane, one successor. A sole predecessor that spawned nothing needs no counter: nobody else ever touches it.
  FLYWHEEL_TASK Arrival tell(RunState& run, const Staged& task, const Edge& edge) const {
    const bool sole = edge.predecessors == 1 && !task.outcome.spawned && !(task.header.flags & kTaskSpawned);
    if (sole) return {true, task.failed};
    return arrive<P>(run.counters[edge.task], task.failed, edge.predecessors);
  }

  FLYWHEEL_TASK void publish(const RunState& run, std::uint16_t slot, const Edge& edge, Arrival arrival) {
    const std::uint32_t own = edge.priority;
    const std::uint32_t level = own == static_cast<std::uint32_t>(Priority::inherit) ? run.priority : own;
    const std::uint64_t item = Item{run.first_record + edge.task, slot, arrival.failed}.pack();
    bool have = arrival.last;
    const std::uint32_t ready = P::ballot(have);
    if (!ready) return;
    const std::uint32_t source = lowest_bit(ready);
    if (world_.keep_successor && kept_ == kEmptyMailbox && may_keep(P::broadcast(level, source))) {
      kept_ = P::broadcast(item, source);
      have = have && P::lane() != source;
    }
    if (P::ballot(have)) ready_.publish_lanes(have, item, level);
  }

  /// A kept successor overtakes the queue, so it must not be less urgent than anything waiting there.
  FLYWHEEL_TASK bool may_keep(std::uint32_t level) const { return !P::broadcast(ready_.anything_above(level)); }

  const World& world_;
  Ready<P> ready_;
  WaitContext wait_;
  std::uint64_t kept_ = kEmptyMailbox;
};

}  // namespace flywheel
