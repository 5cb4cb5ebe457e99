// Awaited successors: from one level of a graph to the next without queues. A worker goes from task to task in a loop of its
// own; the worker's loop (worker.hpp) calls it through the executor.
//
// Of the predecessors of a task at most one has it as the successor that its worker may await (host/load/graph_links). The
// worker says so as it arrives (kIsAwaited), while little else is to be done: then the last predecessor publishes the task to
// nobody, and the worker that awaits it sees the counter. Its record was fetched while the body before it ran. If other work
// stays queued the worker gives the wait up, and whoever arrives last publishes the task, as without it.
//
//   worker A           body | arrive, awaited | counter | counter: all there | body of the successor
//   worker B     body of the other predecessor | arrive: the last, but awaited
//
// On a GPU all lanes of the load warp take part, which has nothing else to do outside compiled runs: each reads a word of the
// record or of the broadcast words, and arrives at one successor. So a level has few instructions, and few requests to the
// words that all workers read: see tuning.md.
#pragma once

#include "chain.hpp"

namespace flywheel::detail {

/// Takes a successor that nobody awaits, by the arrival `now`, if that was the last one. `edge`: its index. One thread.
template <class P>
FLYWHEEL_COLD void publish_ready(const DeviceState& dev, std::uint32_t worker, const RunConstants& run, std::uint32_t edge,
                                 std::uint64_t now) {
  const Edge to = dev.edges[edge];
  const Arrival arrival =
      to.predecessors == 1 ? Arrival{true, false} : end_arrival<P>(run.bank()[to.task], now, to.predecessors);
  if (!arrival.last) return;
  P::acquire_fence();  // pairs with the release fences of the other predecessors; publish_items() passes on what they wrote
  const std::uint64_t item = Item{run.first_record + to.task, static_cast<std::uint16_t>(run.slot), arrival.failed}.pack();
  publish_items<P>(dev, worker, 1, level_of(to.priority, run.priority), &item);
}

/// The broadcast words as the lanes see them together, and a counter beside them. read() issues one load, decide() waits.
template <class P>
class LaneLook {
 public:
  FLYWHEEL_TASK void read(const DeviceState& dev, std::uint64_t* counter) {
    // Relaxed: the broadcast words are hints, as in read_broadcast(). The counter pairs with the arrivals of all predecessors;
    // the caller's fence acquires.
    if constexpr (P::lanes() == 1) {
      all_ = read_broadcast<P>(dev);
      word_ = counter ? P::device(*counter).load(P::kBeforeAcquire) : 1;
    } else {
      static_assert(sizeof(BroadcastWords) == kWords * sizeof(std::uint64_t));
      std::uint64_t* const words = reinterpret_cast<std::uint64_t*>(&dev.control->broadcast);
      word_ = 0;
      if (P::lane() < kWords || (P::lane() == kCounterLane && counter))
        word_ = P::device(P::lane() < kWords ? words[P::lane()] : *counter).load(P::kBeforeAcquire);
    }
  }
  /// `few`: so many queued tasks are none.
  FLYWHEEL_TASK void decide(std::uint32_t epoch, std::uint32_t few) {
    if constexpr (P::lanes() == 1) {
      level_ = all_.has_work() ? all_.level : kPriorities - 1;
      has_work_ = all_.has_work();
      has_roots_ = is_one_rooted(all_.count, few);
      has_much_ = all_.count > few && !has_roots_;
      is_wanted_ = all_.abort || announcement_epoch(all_.announcement) != epoch;
    } else {
      const auto count = static_cast<std::int64_t>(word_);
      const std::uint32_t queued = P::votes(P::lane() < kPriorities && count > 0);
      level_ = queued ? lowest_of_32(queued) : kPriorities - 1;
      has_work_ = queued != 0;
      has_roots_ = P::any(P::lane() < kPriorities && is_one_rooted(count, few));
      has_much_ = P::any(P::lane() < kPriorities && count > few && !is_one_rooted(count, few));
      is_wanted_ = P::any(P::lane() == kPriorities       ? announcement_epoch(word_) != epoch
                          : P::lane() == kPriorities + 1 ? word_ != 0
                                                         : false);
    }
  }
  /// Whether all predecessors have arrived at the counter, and whether one has failed.
  FLYWHEEL_TASK Arrival counter() const {
    const bool last = P::lane() == kCounterLane && is_complete(word_);
    return {P::any(last), P::any(last && has_failed(word_))};
  }
  FLYWHEEL_TASK std::uint32_t level() const { return level_; }  // the most urgent one at which work waits; else the lowest
  FLYWHEEL_TASK bool has_work() const { return has_work_; }
  FLYWHEEL_TASK bool has_much() const { return has_much_; }
  FLYWHEEL_TASK bool has_roots() const { return has_roots_; }  // of one run; besides these there is not much
  FLYWHEEL_TASK bool is_wanted() const { return is_wanted_; }

 private:
  FLYWHEEL_TASK static bool is_one_rooted(std::int64_t count, std::uint32_t few) {
    return count >= kRootedRun && count <= kRootedRun + few;
  }

  static constexpr std::uint32_t kWords = kPriorities + 2;
  static constexpr std::uint32_t kCounterLane = P::lanes() == 1 ? 0 : kWords;

  Broadcast all_{};         // of a lone thread
  std::uint64_t word_ = 0;  // of a lane: lanes 0 to kWords - 1 have a broadcast word each, the next one the counter
  std::uint32_t level_ = kPriorities - 1;
  bool has_work_ = false, has_much_ = false, has_roots_ = false, is_wanted_ = false;
};

/// Of an edge. No predecessors: there is none.
struct Successor {
  std::uint32_t task, predecessors;
};

/// All lanes of P have one. `Slots`: the task slots of the worker's executor.
template <class P, class Slots>
class AwaitedLoop {
  using Leader = typename P::Leader;

 public:
  FLYWHEEL_TASK AwaitedLoop(const DeviceState& dev, std::uint32_t worker, std::uint32_t epoch, PrefetchedTask& ahead,
                            Slots& slots)
      : dev_(dev),
        worker_(worker),
        epoch_(epoch),
        ahead_(ahead),
        slots_(slots) {}

  /// From the task that was started last, and has ended, to a task behind which none is to be awaited, or which takes long,
  /// fails or spawns. The worker's loop does the rest.
  FLYWHEEL_TASK AwaitedTurn operator()() {
    if (!look()) return {kEmptyMailbox, 0, false};
    for (;;) {
      arrive();
      ++ended_;
      Arrival arrival = own_arrival();
      if (!arrival.last) {
        publish_others();
        arrival = await();
      }
      if (!arrival.last) return {kEmptyMailbox, ended_, false};
      take(arrival);
      const Item item = next_;
      const bool starts = !item.skip && !cancelled_;
      if (starts) slots_.start(dev_, item);
      publish_others();
      if (!starts) return {item.pack(), ended_, false};
      if (!header().awaits() || !look()) return take_over(item);
      if (!slots_.has_ended() || !slots_.outcome().is_plain()) return take_over(item);
      slots_.take_end();
    }
  }

 private:
  static constexpr std::uint32_t kEdges = P::lanes() == 1 ? 8 : 1;  // of a lane; a task with more goes the long way

  FLYWHEEL_TASK const TaskSlot& task() const { return slots_.task(); }
  FLYWHEEL_TASK const TaskHeader& header() const { return task().record.header; }
  FLYWHEEL_TASK const RunConstants& run() const { return task().run.constants; }

  /// The worker's loop takes over the task that runs.
  FLYWHEEL_TASK AwaitedTurn take_over(Item item) {
    if (P::lane() == 0) note_started<Leader>(dev_, ahead_, item, slots_);
    return {kEmptyMailbox, ended_, true};
  }

  /// While the body runs, in one trip to L2: fetches the record of the successor, reads which tasks are successors, and looks
  /// for other work. False if that comes first.
  FLYWHEEL_TASK bool look() {
    const std::uint32_t count = header().edge_count, level = level_of(header().edge_priority, run().priority);
    if (count > kEdges * P::lanes()) return false;
    LaneLook<P> look;
    look.read(dev_, nullptr);
    first_edge_ = header().first_edge;
    awaited_ = {header().edge_task, header().predecessors_of_edge()};
    for_constants<kEdges>([&](auto i) {
      const std::uint32_t edge = i * P::lanes() + P::lane();
      successors_[i] = {};
      if (edge < count) successors_[i] = {dev_.edges[first_edge_ + edge].task, dev_.edges[first_edge_ + edge].predecessors};
    });
    next_ = {run().first_record + awaited_.task, static_cast<std::uint16_t>(run().slot), false};
    cancelled_ = P::any(!slots_.fetch(dev_, next_));  // lanes may have read it before and after a cancellation
    bool waits = false;
    for_constants<kEdges>([&](auto i) { waits |= successors_[i].predecessors > 1; });
    some_wait_ = P::any(waits);
    // A few tasks go to workers that find nothing to await: if all took them, most would look in vain. But one time in 64,
    // another for each worker, work that is queued comes first: all workers may have something to await for long.
    const bool yields = (ended_ + worker_) % 64 == 0;
    const std::uint32_t few = yields ? 0 : dev_.workers / 8;
    look.decide(epoch_, few);
    if (level > look.level() || look.is_wanted()) return false;
    if (awaited_.predecessors == 1 && !yields) return true;  // it is ready
    if (look.has_much() || !look.has_roots()) return !look.has_much();
    return P::any(roots_left<Leader>(dev_, run().slot) - 1 < few);  // a vote: others take roots between the loads of two lanes
  }

  /// Arrives at all successors. Those without another predecessor are ready.
  FLYWHEEL_TASK void arrive() {
    P::converge();  // what all lanes have read of the run in look() comes before its end, and so before its memory is reused
    // Release fence: covers what the task wrote, for all arrivals below. Pairs with the acquire fence of the worker that goes
    // on: in take(), publish_ready() or LongFinish. arrive() in counter.hpp names the orders.
    if (some_wait_) P::release_fence();
    for_constants<kEdges>([&](auto i) {
      counters_[i] = successors_[i].predecessors == 1 ? 0 : kNoArrival;
      if (successors_[i].predecessors > 1)
        counters_[i] = begin_arrival<P>(counter_of(successors_[i]), is_awaited(i) ? kArrival + kIsAwaited : kArrival);
    });
  }
  FLYWHEEL_TASK std::uint64_t& counter_of(const Successor& to) const { return run().bank()[to.task]; }
  FLYWHEEL_TASK bool is_awaited(std::uint32_t i) const {
    return successors_[i].predecessors && successors_[i].task == awaited_.task;
  }
  /// What this worker's own arrival at the awaited successor has brought.
  FLYWHEEL_TASK Arrival own_arrival() const {
    bool last = false, failed = false;
    for_constants<kEdges>([&](auto i) {
      const bool own = is_awaited(i) && is_complete(counters_[i]);
      last |= own;
      failed |= own && has_failed(counters_[i]);
    });
    return {P::any(last), P::any(failed)};
  }
  /// Publishes the other successors that are ready and that nobody awaits: each lane its own. The first call does.
  FLYWHEEL_TASK void publish_others() {
    for_constants<kEdges>([&](auto i) {
      if (is_complete(counters_[i]) && !(counters_[i] & kIsAwaited) && !is_awaited(i))
        publish_ready<Leader>(dev_, worker_, run(), first_edge_ + i * P::lanes() + P::lane(), counters_[i]);
      counters_[i] = kNoArrival;
    });
  }

  /// Gives the wait up for work that stays queued, for a collective run, an abort, or after some 20 us: an idle worker sees
  /// more.
  FLYWHEEL_TASK Arrival await() const {
    constexpr std::uint32_t kPolls = 64, kBusyPolls = 16;
    std::uint64_t& counter = counter_of(awaited_);
    std::uint32_t busy = 0;
    for (std::uint32_t polls = 0; polls < kPolls && busy < kBusyPolls; ++polls) {
      LaneLook<P> look;
      look.read(dev_, &counter);
      if (const Arrival seen = look.counter(); seen.last) return seen;
      look.decide(epoch_, 0);
      if (look.is_wanted()) break;
      busy = look.has_work() ? busy + 1 : 0;
    }
    // Acquire, as in LaneLook: pairs with the arrivals before it; those after it find the successor not awaited. Release, of
    // nothing but this access: pairs with those, so that the run's end, and what then becomes of the counter, come later.
    std::uint64_t now = 1;
    if (P::lane() == 0) now = P::device(counter).fetch_and(~kIsAwaited, P::kBetween);
    return {P::any(is_complete(now)), P::any(is_complete(now) && has_failed(now))};
  }
  /// The awaited successor is this worker's.
  FLYWHEEL_TASK void take(const Arrival& arrival) {
    next_.skip = arrival.failed;
    if (awaited_.predecessors == 1) return;
    P::acquire_fence();  // acquire: pairs with the release fences of the other predecessors, whose arrivals the counter has
    if (P::lane() == 0) arm_again<Leader>(counter_of(awaited_), awaited_.predecessors);
  }

  static constexpr std::uint64_t kNoArrival = kIsAwaited;  // a counter that asks for nothing

  const DeviceState& dev_;
  const std::uint32_t worker_;
  const std::uint32_t epoch_;  // of the last announcement that the worker has followed
  PrefetchedTask& ahead_;
  Slots& slots_;
  // Of the task that runs, or has ended:
  std::uint32_t first_edge_ = 0;
  Successor awaited_{};
  Item next_{};                          // the same
  Successor successors_[kEdges] = {};    // this lane's
  std::uint64_t counters_[kEdges] = {};  // theirs, as its arrivals left them
  bool some_wait_ = false;               // some successors have several predecessors
  bool cancelled_ = false;               // its run was, when the successor was fetched
  std::uint32_t ended_ = 0;
};

/// Notes what the loop has brought. The first of the tasks was counted when its body ended.
FLYWHEEL_TASK inline void note_turn(LocalWork& work, const AwaitedTurn& turn) {
  work.awaited = turn;
  if (!turn.ended) return;
  work.tasks += turn.ended - 1;
  work.kept += turn.ended - !turn.has_next;
}

}  // namespace flywheel::detail
