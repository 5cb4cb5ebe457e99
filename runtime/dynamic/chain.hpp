// A chain of runs: a worker that ends a run goes on with its follower, run after run, in a loop of its own. The worker's loop
// (worker.hpp) includes it.
//
// While the last task of a run runs, the first task of the run's only follower is fetched. It is started when the list of
// followers is closed. The host is told of several ends at once, while a task runs.
//
// The loop is out of line: a GPU has no register to spare
// in the worker's own, where the same code cost 5% of a hop and 8% of the rate of empty tasks.
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
      if (!slots_.has_ended() || !is_plain(slots_.outcome())) return turn(kEmptyMailbox, true);
      slots_.take_end();
      ++ended_;
      if (expects && !is_due() && ends_with_follower()) continue;
      const std::uint64_t root = end();
      if (root == kEmptyMailbox || is_due()) return turn(root);
      if (!slots_.fetch(dev_, Item::unpack(root))) return turn(root);
      start(Item::unpack(root));
    }
  }

 private:
  FLYWHEEL_TASK ChainTurn<Slots> turn(std::uint64_t item, bool started = false) {
    tell();
    return {slots_, item, ended_, started};
  }
  FLYWHEEL_TASK static bool is_plain(const Outcome& outcome) { return !(outcome.code | outcome.spawned | outcome.stop); }

  /// Starts the task that was fetched. `ahead` is what the worker's loop needs if it has to take over.
  FLYWHEEL_TASK void start(Item item) {
    slots_.start(dev_, item);
    ahead_.item = item;
    ahead_.slot = slots_.running();
    ahead_.task_slot = &slots_.task();
    ahead_.claim.wanted = 0;
    ahead_.runs = true;
    ahead_.failed = false;
    ahead_.outcome = {};
    Finisher<P>::prepare(dev_, ahead_);
  }

  /// While the last task of a run runs: fetches the task of the follower that the run has by now, if it is the only one.
  FLYWHEEL_TASK bool expect() {
    // Acquire, with the fence in expect_follower(): pairs with Enlistment::put_in_front().
    if (!known_) list_ = P::device(dev_.runs[ahead_.item.run].line.followers).load(P::kBeforeAcquire);
    known_ = false;
    RunConstants constants;
    const auto generation = static_cast<std::uint32_t>(ahead_.done >> 32);
    if (!dev_.keep_successor || !expect_follower<P>(dev_, list_, generation, constants, followers_)) return false;
    expected_ = Item::unpack(only_root(dev_, constants));
    level_ = constants.priority;
    slots_.fetch_expected(dev_, expected_, constants);
    return true;
  }

  /// True if all workers may be wanted, see Worker::kept(): where reads are cheap the worker looks each time.
  FLYWHEEL_TASK bool is_due() const {
    constexpr std::uint32_t kLinksOneIn = 64;
    return (P::kNearMemory || ended_ % kLinksOneIn == 0) && is_wanted<P>(dev_, work_);
  }

  /// Ends the run, and starts the follower's task; the host is told later. False if others have come by now, the follower was
  /// cancelled, or more urgent work waits: then the list is closed, and nothing else was done.
  FLYWHEEL_TASK bool ends_with_follower() {
    P::release_fence();  // for close_followers()
    const std::uint64_t done = ahead_.done;
    const std::uint32_t run = ahead_.item.run;
    const Followers followers = close_followers<P>(dev_, run, static_cast<std::uint32_t>(done >> 32), false);
    // Relaxed: a hint, as in copy_line(). It is on its way beside the exchange, and so is what most_urgent_queued() loads.
    const std::uint32_t cancelled = P::device(dev_.runs[expected_.run].line.cancelled).load(Order::relaxed);
    const std::uint32_t waits_at = most_urgent_queued<P>(dev_);
    const bool goes = followers.list == list_ && !cancelled && level_ <= waits_at;
    if (goes) start(expected_);
    else left_ = followers;
    work_.untold[untold_++] = {done, run};
    if (!goes || untold_ == kMostUntold) tell();
    known_ = goes;
    list_ = followers_;
    return goes;
  }

  /// Tells the host of the runs that have ended and that it does not know of. One fence for all: it waits for whatever crosses
  /// PCIe, so one for each run would wait for the word of the run before.
  FLYWHEEL_TASK void tell() {
    if (!untold_) return;
    P::release_fence_of_system();  // for report_end()
    for (std::uint32_t i = 0; i < untold_; ++i) report_end<P>(dev_, work_.untold[i].slot, work_.untold[i].word);
    note_end();
    count_ends<P>(dev_, untold_);
    untold_ = 0;
  }

  /// Ends the run, if ends_with_follower() has not, and lets its followers in. Returns the root of one that this worker keeps.
  FLYWHEEL_TASK std::uint64_t end() {
    const Followers followers = left_.first() ? left_ : end_run<P>(dev_, ahead_.item.run, ahead_.done, [this] { note_end(); });
    left_ = {};
    return followers.first() ? go_on_with<P>(dev_, worker_, followers, kEmptyMailbox) : kEmptyMailbox;
  }

  /// Relaxed: as in IdleSlot::note_end().
  FLYWHEEL_TASK void note_end() const {
    if (direct_slot_) P::block(direct_slot_->ended).store(1, Order::relaxed);
  }

  static constexpr std::uint32_t kMostUntold = sizeof(LocalWork::untold) / sizeof(EndedRun);

  const DeviceState& dev_;
  const std::uint32_t worker_;
  LocalWork& work_;
  PrefetchedTask& ahead_;
  DirectSlot* const direct_slot_;
  Slots slots_;
  std::uint32_t ended_ = 0;
  std::uint32_t untold_ = 0;     // ends of which the host is not told, in LocalWork::untold
  Item expected_{};              // the task that was fetched
  std::uint32_t level_ = 0;      // its run's priority
  std::uint64_t followers_ = 0;  // its run's list
  std::uint64_t list_ = 0;       // of the run whose task runs, if `known_`
  bool known_ = false;
  Followers left_{};  // of a run that has ended, to be let in
};

template <class P, class Slots>
FLYWHEEL_COLD ChainTurn<Slots> serve_chain(const DeviceState& dev, std::uint32_t worker, LocalWork& work, PrefetchedTask& ahead,
                                           DirectSlot* direct_slot, Item item, Slots slots) {
  return Chain<P, Slots>(dev, worker, work, ahead, direct_slot, slots)(item);
}

}  // namespace flywheel::detail
