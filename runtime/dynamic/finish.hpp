// Finishing a task: the worker arrives at the counters of its successors; the last predecessor to arrive makes a
// successor ready. The worker's loop calls it; chain.hpp includes this header. Finisher is the short way, for a task that
// nothing happened to and that has one simple successor or ends its run; LongFinish does the rest.
#pragma once

#include "control.hpp"

namespace flywheel::detail {

/// What finish_with_successors() returns in place of a successor when the awaiter has finished the task, and perhaps others
/// after it.
inline constexpr std::uint64_t kAwaitedEnd = kEmptyMailbox - 1;

/// Whether the worker may await a successor now, see awaited.hpp. One without another predecessor is not waited for, so it may
/// come before queued work as one that is kept.
FLYWHEEL_TASK inline bool may_await(const LocalWork& work, const PrefetchedTask& task, const TaskSlot* behind,
                                    std::uint64_t kept) {
  const TaskHeader& header = task.task_slot->record.header;
  if (!header.awaits() || !task.runs || !task.outcome.is_plain() || behind || kept != kEmptyMailbox) return false;
  if (has_tasks(work) || work.roots_open || task.claim.taken()) return false;
  return (header.predecessors_of_edge() == 1 ? task.level : kPriorities - 1) <= task.waits_at;
}

// The two functions are separate because a sink needs few registers, and each that is saved around the call is read back from
// L2: the arrival empties L1. `Awaiter`: of the executor, finishes the task and those that the worker awaits behind it; false
// if it has finished none.
template <class P, class Awaiter>
FLYWHEEL_COLD std::uint64_t finish_with_successors(const DeviceState& dev, std::uint32_t id, LocalWork& work,
                                                   const PrefetchedTask& task, const TaskSlot* behind, std::uint64_t kept,
                                                   Awaiter awaiter) {
  if (may_await(work, task, behind, kept) && awaiter(task)) return kAwaitedEnd;
  return LongFinish<P>(dev, id, work, task, behind, kept)();
}
template <class P>
FLYWHEEL_COLD std::uint64_t finish_sink(const DeviceState& dev, std::uint32_t id, LocalWork& work, const PrefetchedTask& task,
                                        const TaskSlot* behind, std::uint64_t kept) {
  return LongFinish<P>(dev, id, work, task, behind, kept).of_sink();
}

/// What finishing a task has brought besides a kept successor.
enum class FinishEnd { nothing, followers, awaited };

/// Finishes the tasks of one worker. For each task: expect() and prepare() ahead of its end, let_go() if the body takes
/// long, then the call operator.
template <class P>
class Finisher {
 public:
  FLYWHEEL_TASK Finisher(const DeviceState& dev, std::uint32_t id, LocalWork& work)
      : dev_(dev),
        work_(work),
        views_{dev},
        ready_(dev, id),
        id_(id) {
    work_.planned = {};
  }

  /// When the body has been started: a worker that last gave a successor to another worker expects to do so again, and claims
  /// an idle worker now. The claim's trip to L2 overlaps the body and is off the path from task to task. Before the record is
  /// fetched it would be on it (0.08 us a hop), and while the record is on its way more so (0.12 us): tuning.md.
  /// `idle`: there is time for it, since the task was fetched; else the planned claim is dropped.
  FLYWHEEL_TASK void expect(PrefetchedTask& task, bool idle) {
    if (!idle) work_.planned.wanted = 0;
    task.claim = ready_.claim_planned(work_.planned);
    work_.planned.wanted = 0;
  }

  /// Releases the claimed worker for other work: the body takes longer than a delivery, or the claim was not used.
  FLYWHEEL_TASK void let_go(PrefetchedTask& task) const {
    if (task.claim.taken()) ready_.release_claimed(task.claim);
    task.claim.wanted = 0;
  }

  /// While the body runs: works out what the short way will need.
  FLYWHEEL_TASK static void prepare(const DeviceState& dev, PrefetchedTask& task) {
    const TaskHeader& header = task.task_slot->record.header;
    const RunConstants& run = task.task_slot->run.constants;
    const bool shares_place = header.shares_place();
    task.waits_at = kPriorities - 1;
    task.next = kEmptyMailbox;
    task.ends_run = header.edge_count == 0 && run.sinks == 1 && run.repeat == 1 && !shares_place;
    task.done = completion_word(run.generation, 0);
    task.level = level_of(header.edge_priority, run.priority);
    if (header.edge_count == 0) return;
    if (header.edge_count == 1 && header.edge_predecessors == 1 && !shares_place)
      task.next = Item{run.first_record + header.edge_task, task.item.run, false}.pack();
    if (dev.keep_successor) task.waits_at = most_urgent_queued<P>(dev);
  }

  /// Finishes the task, the short way if possible. `behind`: the prefetched task behind it, or null. Calls ended() once the
  /// host can see the end of a run. `awaiter`: see finish_with_successors().
  template <class Ended, class Awaiter>
  FLYWHEEL_TASK FinishEnd operator()(PrefetchedTask& task, const TaskSlot* behind, Ended&& ended, Awaiter awaiter) {
    Followers followers{};
    const bool plain = task.runs && task.outcome.is_plain();
    if (plain && task.ends_run) {
      followers = end_run<P>(dev_, task.item.run, task.done, ended);
    } else if (plain && task.next != kEmptyMailbox) {
      forward(task);
    } else if (plain && behind && LongFinish<P>::arrives_for_both(*behind, *task.task_slot)) {
      ++work_.sinks_done;
    } else {
      const PrefetchedTask copy = task;  // its address is passed on: `task` itself stays in registers
      if (is_controlled(copy)) {
        kept_ = finish_controlled<P>(dev_, id_, work_, copy, kept_);
        take_followers(followers);
      } else if (copy.task_slot->record.header.edge_count) {
        kept_ = finish_with_successors<P>(dev_, id_, work_, copy, behind, kept_, awaiter);
        if (kept_ == kAwaitedEnd) return FinishEnd::awaited;
      } else {
        kept_ = finish_sink<P>(dev_, id_, work_, copy, behind, kept_);
        take_followers(followers);
      }
      ended();
    }
    let_go(task);
    if (!followers.first()) return FinishEnd::nothing;
    kept_ = go_on_with<P>(dev_, id_, followers, kept_);
    return FinishEnd::followers;
  }

  /// Takes the successor that this worker kept, or kEmptyMailbox.
  FLYWHEEL_TASK std::uint64_t take_kept() {
    const std::uint64_t item = kept_;
    kept_ = kEmptyMailbox;
    return item;
  }
  FLYWHEEL_TASK bool has_kept() const { return kept_ != kEmptyMailbox; }
  FLYWHEEL_TASK void keep(std::uint64_t item) { kept_ = item; }

 private:
  /// Those of the run that the task has ended, if it has.
  FLYWHEEL_TASK void take_followers(Followers& followers) {
    followers = work_.followers;
    work_.followers = {};
  }

  /// The short way: the one successor has no other predecessor, and the task neither failed nor spawned. The worker
  /// keeps the successor, else delivers it to the worker that it claimed in advance, else publishes it.
  FLYWHEEL_TASK void forward(PrefetchedTask& task) {
    if (kept_ == kEmptyMailbox && may_keep(dev_, task, task.level)) {
      kept_ = task.next;
    } else if (task.claim.taken()) {
      ready_.deliver_to_claimed(task.claim, task.next);
      work_.planned = ready_.plan_claim_after(task.claim);
      task.claim.wanted = 0;
    } else {
      work_.ready[0][0] = task.next;
      publish_items<P>(dev_, id_, 1, task.level, work_.ready[0]);
      work_.planned = ready_.plan_claim();
    }
  }

  const DeviceState& dev_;
  LocalWork& work_;
  Views<P> views_;
  Ready<P> ready_;
  std::uint32_t id_;
  std::uint64_t kept_ = kEmptyMailbox;
};

/// Describes the task that a loop of its own (chain.hpp, awaited.hpp) has started last, for the worker's loop.
template <class P, class Slots>
FLYWHEEL_TASK void note_started(const DeviceState& dev, PrefetchedTask& ahead, Item item, const Slots& slots) {
  ahead.item = item;
  ahead.slot = slots.running();
  ahead.task_slot = &slots.task();
  ahead.claim.wanted = 0;
  ahead.runs = true;
  ahead.failed = false;
  ahead.outcome = {};
  Finisher<P>::prepare(dev, ahead);
}

}  // namespace flywheel::detail
