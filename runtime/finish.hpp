// Finishing a task: its successors hear of it, the last one to tell a successor makes it ready.
#pragma once

#include "runtime/completion.hpp"
#include "runtime/counter.hpp"
#include "runtime/cpu_crew.hpp"
#include "runtime/spawn.hpp"

namespace flywheel {

/// A task between the queue and its end, with what lane i fetched in advance for finishing it.
struct Staged {
  Item item;
  TaskHeader header;
  const RunLine* run;      // the worker's copy
  Edge edge;               // edge i
  std::uint32_t idle;      // word i of the idle set: whom to hand a successor to
  std::uint64_t waiting;   // tasks queued at priority i
  Outcome outcome;
  std::uint32_t slot;      // which of the crew's two stages holds it
  bool runs;               // false: skipped, its successors only hear of it
  bool failed;
  bool live;
};

template <class P>
class Finisher {
 public:
  FLYWHEEL_TASK Finisher(const World& world, std::uint32_t id)
      : world_(world), wires_{world}, ready_(world, id), wait_(wires_.wait(id)) {}

  /// Lane i: word i of the idle set, as of now.
  FLYWHEEL_TASK std::uint32_t glance() const {
    const IdleSet<P> idle = wires_.idle();
    return P::lanes() > 1 && P::lane() < idle.words() ? P::device(idle.bits[P::lane()]).load(Order::relaxed) : 0;
  }

  /// Collective. Fetches the edges that finishing will need; the loads are under way while the task runs.
  FLYWHEEL_TASK void prepare(Staged& task) const {
    const TaskHeader& header = task.header;
    if (P::lane() == 0) task.edge = {header.edge_task, header.edge_predecessors, header.edge_priority, 0};
    else if (header.edge_count > 1) task.edge = fetch_edge(header, P::lane());
  }

  /// Collective.
  FLYWHEEL_TASK void operator()(Staged& task) {
    task.failed |= note_outcome(task);
    const bool single = !task.outcome.spawned && !(task.header.flags & kTaskSpawned);
    if (task.header.edge_count == 0) {
      const RunConstants& run = task.run->constants;
      arrive_sink<P>(world_, ready_, run, single && run.sinks == 1, !task.failed);
    } else {
      tell_successors(task, single);
    }
    if (task.header.flags & kTaskSpawned) recycle_spawned<P>(world_, task.item.record, wait_);
  }

  /// The successor this worker kept for itself, or kEmptyMailbox.
  FLYWHEEL_TASK std::uint64_t take_kept() {
    const std::uint64_t item = kept_;
    kept_ = kEmptyMailbox;
    return item;
  }

 private:
  FLYWHEEL_TASK Edge fetch_edge(const TaskHeader& header, std::uint32_t e) const {
    return e < header.edge_count ? world_.edges[header.first_edge + e] : Edge{};
  }

  FLYWHEEL_TASK bool note_outcome(const Staged& task) const {
    if (!task.runs) return true;
    if (P::lane() == 0) {
      RunState& run = world_.runs[task.item.run];
      if (task.outcome.code) record_fault<P>(run, task.outcome.code, task.header.local);
      // Relaxed: this task's own arrival releases it to the finisher of the iteration.
      if (task.outcome.stop) P::device(run.line.stop).store(1, Order::relaxed);
    }
    return task.outcome.code != 0;
  }

  FLYWHEEL_TASK void tell_successors(const Staged& task, bool single) {
    P::converge();
    for (std::uint32_t base = 0; base < task.header.edge_count; base += P::lanes()) {
      const std::uint32_t e = base + P::lane();
      const Edge edge = base ? fetch_edge(task.header, e) : task.edge;
      Arrival arrival{false, false};
      if (e < task.header.edge_count) arrival = tell(task, edge, single);
      P::converge();  // what one lane acquired by arriving last goes out with every lane's publication
      publish(task, edge, arrival);
    }
  }

  /// One lane, one successor. A sole predecessor that spawned nothing needs no counter: nobody else ever touches it.
  FLYWHEEL_TASK Arrival tell(const Staged& task, const Edge& edge, bool single) const {
    if (single && edge.predecessors == 1) return {true, task.failed};
    return arrive<P>(task.run->constants.bank()[edge.task], task.failed, edge.predecessors);
  }

  FLYWHEEL_TASK void publish(const Staged& task, const Edge& edge, Arrival arrival) {
    const RunConstants& run = task.run->constants;
    const std::uint32_t level = level_of(edge.priority, run.priority);
    const std::uint64_t item = Item{run.first_record + edge.task, task.item.run, arrival.failed}.pack();
    bool have = arrival.last;
    const std::uint32_t ready = P::ballot(have);
    if (!ready) return;
    const std::uint32_t source = lowest_bit(ready);
    if (world_.keep_successor && kept_ == kEmptyMailbox && may_keep(task, P::broadcast(level, source))) {
      kept_ = P::broadcast(item, source);
      have = have && P::lane() != source;
    }
    if (P::ballot(have)) ready_.publish_lanes(have, item, level, task.idle);
  }

  /// A kept successor overtakes the queue, so nothing more urgent may have waited there when the task began.
  FLYWHEEL_TASK bool may_keep(const Staged& task, std::uint32_t level) const {
    if (P::lanes() > 1) return !P::ballot(P::lane() < level && task.waiting != 0);
    for (std::uint32_t above = 0; above < level; ++above)
      if (wires_.ready(above).size_hint()) return false;
    return true;
  }

  const World& world_;
  Wires<P> wires_;
  Ready<P> ready_;
  WaitContext wait_;
  std::uint64_t kept_ = kEmptyMailbox;
};

}  // namespace flywheel
