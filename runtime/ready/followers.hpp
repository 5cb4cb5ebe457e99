// Runs that wait for runs. A follower is in flight, but its tasks are not published before its predecessors, runs in flight
// too, have ended. completion.hpp lets followers in; the inbox poller enlists them.
//
// Each run slot has a list of followers, whose head, RunLine::followers, says also which generation has ended last:
//
//   the inbox poller   opens the follower's state, puts a link of it into the list of each predecessor, and then takes its
//                      own place among those waited for away, so that nobody lets the run in before it is in all lists
//   who ends a run     takes the list and closes it with one exchange, behind the completion word, and arrives at each
//                      follower of the list; the last arrival lets the follower in, or ends it if a predecessor has failed
//
// Both change the head by read-modify-writes, so either the poller finds the list closed, or the exchange finds the link. The
// host frees a slot when it sees the completion word, maybe before the exchange: then the next run of the slot finds the list
// of the one before still open. The poller waits for these few instructions before it enlists anybody there, and so does who
// ends that next run before its own exchange: the older one, coming later, would open the list again for a run that has ended.
//
// In a chain of runs a worker fetches the task of the next one while the last task of the run before runs. It then closes the
// list first, starts that task, and tells the host while it runs: see chain.hpp.
//
// The host keeps a follower back until its predecessors are in flight (host/submit/followers.hpp), and collective runs until
// they have ended. So whatever a follower waits for needs nothing but workers, and ends.
#pragma once

#include "roots.hpp"

namespace flywheel::detail {

/// One thread, the inbox poller: puts links of a follower into the lists of its predecessors.
template <class P>
class Enlistment {
 public:
  FLYWHEEL_TASK Enlistment(const DeviceState& dev, std::uint32_t slot) : dev_(dev), slot_(slot), own_(dev.runs[slot].follow) {}

  /// True if the run waits: a worker lets it in, maybe already has. False if all predecessors have ended: see failed().
  FLYWHEEL_TASK bool operator()(const FollowedRuns& all, bool takes_values) {
    std::uint32_t count = 0;
    for (std::uint32_t k = 0; k < kMostPredecessors; ++k) count += all.generations[k] != 0;
    for (std::uint32_t i = 0; takes_values && i < kMostValues; ++i) own_.values[i] = all.values[i];  // plain: enlist() releases
    if (count == 1) return follow_only(all.slots[0], all.generations[0]);
    begin(count + 1);
    std::uint32_t ended = 1;
    for (std::uint32_t k = 0; k < kMostPredecessors; ++k)
      if (all.generations[k]) ended += !enlist(all.slots[k], all.generations[k], k);
    // Release and acquire, like the arrivals in FollowerList: pairs with those of the predecessors that have ended meanwhile.
    return P::device(own_.waits).fetch_add(0u - ended, Order::acq_rel) != ended;
  }

  /// The same for a run with one predecessor: no other arrival can come before the last.
  FLYWHEEL_TASK bool follow_only(std::uint32_t slot, std::uint32_t generation) {
    begin(kOnePredecessor);
    return enlist(slot, generation, 0);
  }

  /// Once no predecessor is left: true if one has failed. Relaxed: pairs with enlist() and FollowerList::add(); the arrivals
  /// of all are acquired.
  FLYWHEEL_TASK bool failed() const { return P::device(own_.failed).load(Order::relaxed); }

 private:
  /// Relaxed, both: pair with FollowerList; enlist() releases them to the predecessor that finds the link.
  FLYWHEEL_TASK void begin(std::uint32_t waits) const {
    P::device(own_.failed).store(0, Order::relaxed);
    P::device(own_.waits).store(waits, Order::relaxed);
  }
  /// Puts the link in front of the predecessor's list. False if that run has ended; then what it wrote is acquired.
  FLYWHEEL_TASK bool enlist(std::uint32_t slot, std::uint32_t generation, std::uint32_t k) {
    std::uint64_t seen = followers_word(generation - 1, false, 0);  // a guess: most runs have one follower
    return put_in_front(slot, generation, k, seen) || enlist_again(slot, generation, k, seen);
  }

  /// One attempt, at a list that is as `seen`. If it is another, false, and `seen` is that.
  FLYWHEEL_TASK bool put_in_front(std::uint32_t slot, std::uint32_t generation, std::uint32_t k, std::uint64_t& seen) {
    // Relaxed: pairs with FollowerList::next(); the exchange behind it releases it.
    P::device(own_.next[k]).store(followers_link(seen), Order::relaxed);
    // Release: pairs with the exchange in close_followers(). The follower's line, state, parameters and record go with it.
    const std::uint64_t wanted = followers_word(generation - 1, followers_failed(seen), link_of(slot_, k));
    return P::device(dev_.runs[slot].line.followers).compare_exchange(seen, wanted, Order::release);
  }

  /// The rest of enlist(), out of line, after a first attempt.
  FLYWHEEL_COLD bool enlist_again(std::uint32_t slot, std::uint32_t generation, std::uint32_t k, std::uint64_t seen) {
    std::uint64_t& head = dev_.runs[slot].line.followers;
    do {
      const bool open = spin_until<P>(Views<P>{dev_}.wait(dev_.workers), WaitReason::end_of_run, &head, generation - 1,
                                      [&](std::uint64_t& saw) {
                                        // Acquire: pairs with close_followers(). If the list is closed, the follower's tasks
                                        // see what the predecessor wrote.
                                        seen = saw = P::device(head).load(Order::acquire);
                                        return followers_ended(saw) + 1 - generation < 2;
                                      });
      if (!open) return true;  // aborted: nobody lets the run in
      if (followers_ended(seen) == generation) return note_ended(seen);
    } while (!put_in_front(slot, generation, k, seen));
    return true;
  }

  /// The predecessor has ended: false.
  FLYWHEEL_TASK bool note_ended(std::uint64_t seen) const {
    // Relaxed: pairs with failed() and FollowerList; the arrival in operator() releases it.
    if (followers_failed(seen)) P::device(own_.failed).store(1, Order::relaxed);
    return false;
  }

  const DeviceState& dev_;
  const std::uint32_t slot_;
  FollowState& own_;
};

/// Copies results of predecessors, in host memory, to the parameters of a follower: once all of them have ended, before it is
/// let in. Plain: the caller has acquired the ends of the predecessors, whose slots the host keeps until the follower has
/// ended; publishing the follower's roots releases the copies.
template <class P>
FLYWHEEL_COLD void take_values(const DeviceState& dev, RunState& run) {
  for (std::uint32_t i = 0; i < kMostValues; ++i) {
    const FollowedValue value = run.follow.values[i];
    const unsigned char* from = value.slot < dev.run_slots ? dev.results + std::size_t{value.slot} * dev.result_bytes
                                                           : dev.completions[value.slot].result;
    for (std::uint32_t b = 0; b < value.bytes; ++b) run.params[value.to + b] = from[value.from + b];
  }
}

/// The list of a slot, for close_followers(). Relaxed: pairs with the exchange there, on the thread that ends the run before.
/// Who has read the word of that one exchanges it for a later one.
template <class P>
FLYWHEEL_TASK std::uint64_t followers_in(const DeviceState& dev, std::uint32_t slot) {
  return P::device(dev.runs[slot].line.followers).load(Order::relaxed);
}

/// Waits until the list of the run before in this slot is closed.
template <class P>
FLYWHEEL_COLD void await_list_before(const DeviceState& dev, std::uint32_t slot, std::uint32_t generation) {
  spin_until<P>(Views<P>{dev}.wait(dev.workers), WaitReason::end_of_run, &dev.runs[slot].line.followers, generation - 1,
                [&](std::uint64_t& saw) {
                  saw = followers_in<P>(dev, slot);
                  return followers_ended(saw) + 1 == generation;
                });
}

/// By the thread that ends a run: closes the list of its followers and takes it. The caller has called release_fence(), or
/// release_fence_of_system(), for what followers see. `seen`: the list, as the thread has read it since the run began.
template <class P>
FLYWHEEL_TASK Followers close_followers(const DeviceState& dev, std::uint32_t slot, std::uint32_t generation, bool failed,
                                        std::uint64_t seen) {
  if (followers_ended(seen) + 1 != generation) await_list_before<P>(dev, slot, generation);
  // Acquire and release: pairs with both accesses in Enlistment::enlist(). FollowerList has the acquire fence, since most
  // lists are empty.
  const std::uint64_t closed = followers_word(generation, failed, 0);
  return {P::device(dev.runs[slot].line.followers).exchange(closed, P::kBetween), failed};
}

/// What is read of a follower in one trip to L2.
struct Follower {
  std::uint32_t next;  // link
  std::uint32_t waits, failed;
  RunConstants constants;

  FLYWHEEL_TASK bool has_one_root() const {
    const bool one = (constants.flags & kInlineRoot) || constants.root_count == 1;
    return one && (constants.flags & kRootsUniform);
  }
};
FLYWHEEL_TASK inline RunState& follower_of(const DeviceState& dev, std::uint32_t link) {
  return dev.runs[(link - 1) / kMostPredecessors];
}
FLYWHEEL_TASK inline std::uint32_t& next_of(const DeviceState& dev, std::uint32_t link) {
  return follower_of(dev, link).follow.next[(link - 1) % kMostPredecessors];
}
/// By a thread that has acquired the list in which the link is.
template <class P>
FLYWHEEL_TASK Follower read_follower(const DeviceState& dev, std::uint32_t link) {
  RunState& run = follower_of(dev, link);
  Follower follower;
  // Relaxed, all: pair with the stores in Enlistment, which the thread has acquired, `next` and `failed` also with note_all()
  // on this thread. No other thread changes them if the follower has one predecessor.
  follower.next = P::device(next_of(dev, link)).load(Order::relaxed);
  follower.waits = P::device(run.follow.waits).load(Order::relaxed);
  follower.failed = P::device(run.follow.failed).load(Order::relaxed);
  copy_constants<P>(follower.constants, run.line);
  return follower;
}

/// The followers of a run that has ended, on the thread that ended it.
template <class P>
class FollowerList {
 public:
  /// `levels`: of so many of the most urgent priorities the caller takes one root itself, in place of publishing it.
  FLYWHEEL_TASK FollowerList(const DeviceState& dev, std::uint32_t worker, std::uint32_t levels)
      : dev_(dev),
        worker_(worker),
        levels_(levels) {}

  /// Takes over the list of a run that has ended.
  FLYWHEEL_TASK void add(Followers list) {
    if (!list.first()) return;
    // Acquire fence: with the exchange in close_followers() it pairs with the release in Enlistment::enlist().
    P::acquire_fence();
    if (list.failed || first_) note_all(list);
    first_ = list.first();
  }

  /// Arrives at all followers and lets those in that wait for nothing more. end(constants) ends one whose predecessor has
  /// failed, and returns its own followers: so a long chain fails without recursion. Returns
  /// the root for the caller, or kEmptyMailbox.
  template <class End>
  FLYWHEEL_TASK std::uint64_t operator()(End&& end) {
    while (first_) {
      RunState& run = follower_of(dev_, first_);
      const Follower follower = read_follower<P>(dev_, first_);
      first_ = follower.next;  // read before the arrival: then the run may go, end, and its slot be used again
      bool failed = follower.failed;
      if (follower.waits != kOnePredecessor) {
        if (!arrive(run.follow)) continue;
        failed = P::device(run.follow.failed).load(Order::relaxed);  // relaxed: arrive() has acquired it
      }
      if (failed) add(end(follower.constants));
      else publish(follower);
    }
    return kept_;
  }

 private:
  /// Notes in the followers of a list that their predecessor has failed, if it has, and puts the list in front of the one here.
  FLYWHEEL_TASK void note_all(Followers list) {
    std::uint32_t last = list.first();
    // Relaxed, all: `next` as in read_follower(); only this thread uses these links now. `failed` pairs with the loads in
    // read_follower() and operator(); this thread's arrival releases it to the last one.
    for (std::uint32_t link = list.first(); link; link = P::device(next_of(dev_, link)).load(Order::relaxed)) {
      last = link;
      if (list.failed) P::device(follower_of(dev_, link).follow.failed).store(1, Order::relaxed);
    }
    if (first_) P::device(next_of(dev_, last)).store(first_, Order::relaxed);
  }

  /// True if this is the last arrival: then all that the predecessors wrote is acquired.
  FLYWHEEL_TASK bool arrive(FollowState& follow) const {
    // Acquire: pairs with the arrivals below, on other threads. If only one is left, it is this one: no read-modify-write.
    if (P::device(follow.waits).load(Order::acquire) == 1) return true;
    // Release and acquire: pairs with this line on other threads and with the one in Enlistment. The last one passes on what
    // all predecessors wrote.
    return P::device(follow.waits).fetch_add(~0u, Order::acq_rel) == 1;
  }

  /// Publishes the roots of a follower, or keeps its only one.
  FLYWHEEL_TASK void publish(const Follower& follower) {
    const RunConstants& run = follower.constants;
    if (run.flags & kTakesValues) take_values<P>(dev_, dev_.runs[run.slot]);
    if (!follower.has_one_root()) return publish_roots<P>(dev_, worker_, run);
    const std::uint64_t root = only_root(dev_, run);
    if (kept_ == kEmptyMailbox && run.priority < levels_) kept_ = root;
    else publish_items<P>(dev_, worker_, 1, run.priority, &root);
  }

  const DeviceState& dev_;
  const std::uint32_t worker_;
  const std::uint32_t levels_;
  std::uint64_t kept_ = kEmptyMailbox;
  std::uint32_t first_ = 0;
};

}  // namespace flywheel::detail
