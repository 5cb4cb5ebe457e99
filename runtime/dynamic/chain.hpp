// A chain of runs: a worker that ends a run goes on with its follower, run after run, in a loop of its own. The worker's loop
// (worker.hpp) includes it.
//
// While the last task of a run runs, the first task of the run's only follower is fetched. It is started as soon as that task
// has ended. Several runs are ended together: their lists of followers are closed and the host is told behind one fence.
//
// The loop is out of line: a GPU has no register to spare in the worker's own, where the same code cost 5% of a hop and 8% of
// the rate of empty tasks.
#pragma once

#include "finish.hpp"
#include "local_work.hpp"

namespace flywheel::detail {

/// What a worker brings back from a chain.
template <class Slots>
struct ChainTurn {
  Slots slots;
  std::uint64_t item;   // what the worker keeps, or kEmptyMailbox
  std::uint32_t ended;  // tasks that have ended
  bool started;         // `ahead` was started; the worker waits for it and finishes it
};

/// Others have come to the list of a run, in front of the follower that it has gone on with: lets them in. Not a member of
/// Chain, whose own members then stay in registers.
template <class P>
FLYWHEEL_COLD void let_others_in(const DeviceState& dev, std::uint32_t worker, std::uint64_t list, std::uint32_t gone_on_with) {
  P::acquire_fence();  // with the exchange in close_followers(): pairs with the release in Enlistment::put_in_front()
  // Relaxed, all: as in read_follower(); only this thread uses these links now.
  std::uint32_t link = followers_link(list);
  const auto next = [&] { return P::device(next_of(dev, link)).load(Order::relaxed); };
  while (next() != gone_on_with) link = next();
  P::device(next_of(dev, link)).store(0, Order::relaxed);
  let_followers_in<P>(dev, worker, {list, false}, 0);
}

/// `Slots`: the task slots of the worker's executor.
template <class P, class Slots>
class Chain {
 public:
  FLYWHEEL_TASK Chain(const DeviceState& dev, std::uint32_t worker, LocalWork& work, PrefetchedTask& ahead,
                      DirectSlot* direct_slot, const Slots& slots)
      : dev_(dev),
        worker_(worker),
        work_(work),
        ahead_(ahead),
        direct_slot_(direct_slot),
        slots_(slots) {}

  /// Goes on with the task of `item`, until there is no follower that this worker may run at once, or something else happens:
  /// a task that does not end its run, takes long, fails or spawns. The worker's loop does the rest.
  FLYWHEEL_TASK ChainTurn<Slots> operator()(Item item) {
    if (item.skip || !slots_.fetch(dev_, item)) return turn(item.pack());
    start(item);
    for (;;) {
      if (!ahead_.ends_run) return turn(kEmptyMailbox, true);
      const bool expects = expect();
      if (!slots_.has_ended() || !slots_.outcome().is_plain()) return turn(kEmptyMailbox, true);
      slots_.take_end();
      ++ended_;
      if (expects && may_go_on()) {
        go_on();
        continue;
      }
      end_runs();
      const std::uint64_t root = end();
      if (root == kEmptyMailbox || is_due()) return turn(root);
      if (!slots_.fetch(dev_, Item::unpack(root))) return turn(root);
      start(Item::unpack(root));
    }
  }

 private:
  FLYWHEEL_TASK ChainTurn<Slots> turn(std::uint64_t item, bool started = false) {
    end_runs();
    return {slots_, item, ended_, started};
  }

  /// Starts the task that was fetched. `ahead` is what the worker's loop needs if it has to take over.
  FLYWHEEL_TASK void start(Item item) {
    slots_.start(dev_, item);
    if (known_) begin_look();
    note_started<P>(dev_, ahead_, item, slots_);
  }

  /// Begins to read the follower in the list of the run whose task runs. The trip to L2 goes on beside what the worker does
  /// until expect().
  FLYWHEEL_TASK void begin_look() {
    const std::uint32_t link = followers_link(list_);
    if (!link) return;
    // Acquire fence: with the load of the list it pairs with the release in Enlistment::put_in_front().
    P::acquire_fence();
    followers_ = P::device(follower_of(dev_, link).line.followers).load(P::kBeforeAcquire);  // pairs like that of `list_`
    follower_ = read_follower<P>(dev_, link);
    look(link);
  }
  /// While the last task of a run runs: fetches the task of the follower that the run has by now, if it is the only one, waits
  /// for nothing else, takes no values, is not traced, and begins with one task. Whether there are others by then shows when
  /// the list is closed. A follower stays in it until then, so what was read of it stays right.
  FLYWHEEL_TASK bool expect() {
    if (!known_) {
      // Acquire, with the fence in begin_look(): pairs with Enlistment::put_in_front().
      list_ = P::device(dev_.runs[ahead_.item.run].line.followers).load(P::kBeforeAcquire);
      begin_look();
    }
    known_ = false;
    const auto generation = static_cast<std::uint32_t>(ahead_.done >> 32);
    if (!dev_.keep_successor || !followers_link(list_) || followers_ended(list_) + 1 != generation) return false;
    const RunConstants& run = follower_.constants;
    if (follower_.next || follower_.waits != kOnePredecessor || run.flags & (kTakesValues | kTraced) ||
        !follower_.has_one_root())
      return false;
    expected_ = Item::unpack(only_root(dev_, run));
    slots_.fetch_expected(dev_, expected_, run);
    return true;
  }
  /// Looks whether the follower was cancelled, and what else is queued.
  FLYWHEEL_TASK void look(std::uint32_t link) {
    // Relaxed: a hint, as in copy_line(), and so is what most_urgent_queued() loads.
    cancelled_ = P::device(follower_of(dev_, link).line.cancelled).load(Order::relaxed);
    waits_at_ = most_urgent_queued<P>(dev_);
  }
  FLYWHEEL_TASK bool may_go_on() {
    if (P::kNearMemory) look(followers_link(list_));  // on a GPU it would be one more trip to L2
    return !cancelled_ && follower_.constants.priority <= waits_at_ && !is_due();
  }

  /// True if all workers may be wanted, see Worker::kept(): where reads are cheap the worker looks each time.
  FLYWHEEL_TASK bool is_due() const {
    constexpr std::uint32_t kLinksOneIn = 64;
    return (P::kNearMemory || ended_ % kLinksOneIn == 0) && is_wanted<P>(dev_, work_);
  }

  /// Starts the task of the run's follower. The run is ended later.
  FLYWHEEL_TASK void go_on() {
    const EndedRun ended{ahead_.done, list_, ahead_.item.run};
    known_ = true;
    list_ = followers_;
    start(expected_);
    work_.chain[count_++] = ended;
    if (count_ == kMostTogether) end_runs();
  }

  /// Ends the runs that have gone on with a follower: closes their lists, and tells the host. One fence for all: it waits for
  /// whatever crosses PCIe, so one for each run would wait for the word of the run before.
  FLYWHEEL_TASK void end_runs() {
    if (!count_) return;
    P::release_fence_of_system();  // for close_followers() and report_end()
    std::uint64_t lists[kMostTogether] = {};
    for_constants<kMostTogether>([&](auto i) {
      const EndedRun& run = work_.chain[i];
      const auto generation = static_cast<std::uint32_t>(run.word >> 32);
      if (i < count_) lists[i] = close_followers<P>(dev_, run.slot, generation, false, run.list).list;
    });
    for_constants<kMostTogether>([&](auto i) {
      const EndedRun& run = work_.chain[i];
      if (i < count_ && lists[i] != run.list) let_others_in<P>(dev_, worker_, lists[i], followers_link(run.list));
    });
    for (std::uint32_t i = 0; i < count_; ++i) report_end<P>(dev_, work_.chain[i].slot, work_.chain[i].word);
    note_end();
    count_ends<P>(dev_, count_);
    count_ = 0;
  }
  /// Ends the run and lets its followers in. Returns the root of one that this worker keeps.
  FLYWHEEL_TASK std::uint64_t end() {
    const auto list = [this] { return list_; };  // expect() has read it
    const Followers followers = end_run<P>(
        dev_, ahead_.item.run, ahead_.done, [this] { note_end(); }, list);
    return followers.first() ? go_on_with<P>(dev_, worker_, followers, kEmptyMailbox) : kEmptyMailbox;
  }

  /// Relaxed: as in IdleSlot::note_end().
  FLYWHEEL_TASK void note_end() const {
    if (direct_slot_) P::block(direct_slot_->ended).store(1, Order::relaxed);
  }

  static constexpr std::uint32_t kMostTogether = sizeof(LocalWork::chain) / sizeof(EndedRun);

  const DeviceState& dev_;
  const std::uint32_t worker_;
  LocalWork& work_;
  PrefetchedTask& ahead_;
  DirectSlot* const direct_slot_;
  Slots slots_;
  std::uint32_t ended_ = 0;
  std::uint32_t count_ = 0;  // runs in LocalWork::chain
  std::uint64_t list_ = 0;   // of the run whose task runs; before expect() only if `known_`
  bool known_ = false;
  Follower follower_{};          // in that list
  std::uint64_t followers_ = 0;  // its own list
  std::uint32_t cancelled_ = 0;  // whether it was cancelled, and the most urgent level with queued work, as last seen
  std::uint32_t waits_at_ = 0;
  Item expected_{};  // its task, which was fetched
};

template <class P, class Slots>
FLYWHEEL_COLD ChainTurn<Slots> serve_chain(const DeviceState& dev, std::uint32_t worker, LocalWork& work, PrefetchedTask& ahead,
                                           DirectSlot* direct_slot, Item item, Slots slots) {
  return Chain<P, Slots>(dev, worker, work, ahead, direct_slot, slots)(item);
}

}  // namespace flywheel::detail
