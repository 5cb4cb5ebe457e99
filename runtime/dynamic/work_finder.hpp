// The work finder: where a worker finds its next task. The worker's loop (worker.hpp) owns one.
#pragma once

#include "local_work.hpp"
#include "suspend.hpp"

namespace flywheel::detail {

enum class Found { item, phased, stop };

/// What a worker counts in registers until show_stats(); see WorkerStats. 32 bits each, because a GPU has no registers to spare
/// in the worker's loop.
struct WorkerCounts {
  std::uint32_t tasks, skipped, kept, queued, handed, polls;
};

/// Polls the worker's idle slot and the broadcast words, and keeps the worker's local work.
template <class P>
class WorkFinder {
 public:
  FLYWHEEL_TASK WorkFinder(const DeviceState& dev, std::uint32_t id, DirectSlot* direct_slot, LocalWork& work)
      : dev_(dev),
        work_(work),
        views_{dev},
        idle_slot_{views_.idle(), id, direct_slot},
        polls_(direct_slot ? kPollsOfDirectSlot : kPollsOfMailbox) {
    work = {};
    work.epoch = dev.control->first_epoch[dev.launch % 2];  // plain: the previous launch wrote it
  }

  /// Waits for a task, a collective run or the stop sign. There is no time limit: being idle is no fault. `executor`: of a
  /// worker that has a direct slot; it may end tasks there itself.
  template <class Executor>
  FLYWHEEL_TASK Found wait_for_work(std::uint64_t& item, Executor& executor) {
    for (std::uint32_t spins = 0;; ++spins) {
      Found seen;
      if (check_broadcast(item, seen)) return seen;
      // The broadcast words are a trip to L2 away, and all workers read them. A worker that work is delivered to
      // therefore polls its idle slot most of the time.
      if (enrolled_) item = peek(executor, spins == 0);
      if (item != kEmptyMailbox && enrolled_) item = leave_idle_slot(item);
      if (item != kEmptyMailbox) return Found::item;
      ++stats_.polls;
      P::pause(spins * polls_);
    }
  }

  /// The next task of the local work, or kEmptyMailbox. Where reads are cheap the worker first gives way to more urgent
  /// work.
  FLYWHEEL_TASK std::uint64_t rest_of_batch() {
    if (!has_local_) return kEmptyMailbox;
    std::uint64_t item = kEmptyMailbox;
    if constexpr (P::kNearMemory) item = give_way<P>(dev_, work_, idle_slot_.worker);
    if (item == kEmptyMailbox) item = take_local<P>(dev_, work_);
    has_local_ = item != kEmptyMailbox;
    return item;
  }
  /// The same to prefetch a task. Of roots the worker takes no further ones in advance unless so many are left that each worker
  /// has one to run: a task that is prefetched stays behind the one that runs, however long that takes, while others idle.
  FLYWHEEL_TASK std::uint64_t rest_to_prefetch() {
    if (!has_local_) return kEmptyMailbox;
    if (!has_tasks(work_) && (!work_.roots_open || work_.roots_left < dev_.workers)) {
      has_local_ = work_.roots_open;
      return kEmptyMailbox;
    }
    return rest_of_batch();
  }
  /// A body takes long: the worker takes single tasks from now on, see take_singly(). So where reads are cheap or
  /// bodies are long, no worker begins a less urgent task while a more urgent one waits, except for a task that is
  /// prefetched already and the successor that it keeps of that. Elsewhere more urgent work waits for one
  /// share at most.
  FLYWHEEL_TASK void bodies_last() { take_singly<P>(dev_, work_, idle_slot_.worker); }

  /// Takes more work in advance, and returns its first task: only when so much is queued that no worker can be idle for
  /// want of it, and when no collective run waits.
  FLYWHEEL_TASK std::uint64_t batch_if_deep() {
    const Broadcast broadcast = read_broadcast<P>(dev_);
    if (Queue<P>::as_size(broadcast.count) < 2 * dev_.workers || broadcast.abort ||
        announcement_epoch(broadcast.announcement) != work_.epoch)
      return kEmptyMailbox;
    return pop(broadcast) ? rest_of_batch() : kEmptyMailbox;
  }

  /// True if the last pop gave more than one task, or was limited to one by take_singly().
  FLYWHEEL_TASK bool had_batch() const { return had_batch_; }

  /// True if all workers are wanted for a collective run, or the runtime was aborted: a kept successor then has to
  /// wait.
  FLYWHEEL_TASK bool is_wanted() const { return detail::is_wanted<P>(dev_, work_); }
  /// The constants of the last task's run if the task came over the direct slot, else null. Null when called again.
  FLYWHEEL_TASK const RunConstants* direct_run() {
    const RunConstants* run = came_directly_ ? &idle_slot_.direct_slot->run : nullptr;
    came_directly_ = false;
    return run;
  }

  FLYWHEEL_TASK DirectSlot* direct_slot() const { return idle_slot_.direct_slot; }
  /// This worker has ended a run.
  FLYWHEEL_TASK void note_end() const { idle_slot_.note_end(); }

  FLYWHEEL_TASK std::uint16_t phased_run() const { return phased_run_; }
  FLYWHEEL_TASK WorkerCounts& stats() { return stats_; }

  /// Publishes the counts when the worker becomes idle or leaves. All relaxed: the host copies the sums for Runtime::stats(),
  /// and nothing goes with them.
  FLYWHEEL_TASK void show_stats() {
    WorkerStats& shown = dev_.stats[idle_slot_.worker];
    P::device(shown.tasks).add(stats_.tasks + work_.tasks, Order::relaxed);
    P::device(shown.skipped).add(stats_.skipped, Order::relaxed);
    P::device(shown.kept).add(stats_.kept + work_.kept, Order::relaxed);
    P::device(shown.queued).add(stats_.queued + work_.urgent, Order::relaxed);
    P::device(shown.handed).add(stats_.handed, Order::relaxed);
    P::device(shown.polls).add(stats_.polls, Order::relaxed);
    stats_ = {};
    work_.urgent = work_.tasks = work_.kept = 0;
  }

 private:
  /// Polls the idle slot. The item that has come, for leave_idle_slot(), or if the worker is not enrolled any more a follower
  /// of a run that the executor has ended; or kEmptyMailbox.
  template <class Executor>
  FLYWHEEL_TASK std::uint64_t peek(Executor& executor, bool anew) {
    if constexpr (Executor::kStartsDirectly) {
      const auto turn = executor.serve_direct_slot(polls_);
      enrolled_ = !turn.kept;
      had_batch_ = false;
      stats_.tasks += turn.ended;
      stats_.handed += turn.ended;
      if (turn.ended && !turn.kept) show_stats();
      return turn.item;
    } else {
      return idle_slot_.peek(anew ? kPollsAnew : polls_);
    }
  }

  // Polls of the idle slot to one read of the broadcast words. Fewer cost time, and so do several under way at once: see
  // tuning.md.
  static constexpr std::uint32_t kPollsOfMailbox = 48;      // some 17 us
  static constexpr std::uint32_t kPollsAnew = 4;            // what was pushed while the worker enrolled waits no longer
  static constexpr std::uint32_t kPollsOfDirectSlot = 512;  // a poll of the direct slot is shorter: shared memory

  /// Reads the broadcast words. True if they decide what comes next: `seen` says what, `item` holds a task.
  FLYWHEEL_TASK bool check_broadcast(std::uint64_t& item, Found& seen) {
    const Broadcast broadcast = read_broadcast<P>(dev_);
    seen = Found::stop;
    // An item that is on its way to the direct slot arrives, and its task may have been started.
    if (broadcast.abort) return !idle_slot_.direct_slot || withdraw();
    // Before the queues: all workers must join, and a busy queue must not keep some of them away.
    if (announcement_epoch(broadcast.announcement) != work_.epoch) {
      return withdraw() && take_announcement(seen);
    }
    if (broadcast.has_work()) {
      seen = Found::item;
      if (withdraw() && pop(broadcast)) item = rest_of_batch();
      return item != kEmptyMailbox;
    }
    enroll();
    return false;
  }

  /// The item that was delivered; kEmptyMailbox if it was a wake-up, or a ticket and all roots are taken.
  FLYWHEEL_TASK std::uint64_t leave_idle_slot(std::uint64_t item) {
    idle_slot_.empty();  // the claim has withdrawn this worker already
    enrolled_ = false;
    had_batch_ = false;
    const std::uint32_t record = Item::unpack(item).record;
    if (record == Item::kWakeUp) return kEmptyMailbox;
    ++stats_.handed;
    if (record != Item::kRootTicket) {
      came_directly_ = idle_slot_.direct_slot != nullptr;
      return item;
    }
    keep_ticket(work_, Item::unpack(item).run, 0);
    has_local_ = true;
    return rest_of_batch();
  }

  /// Enrolls the worker as idle, if it is not: from now on items may be delivered to it.
  FLYWHEEL_TASK void enroll() {
    if (enrolled_) return;
    enrolled_ = true;
    idle_slot_.enroll();
    show_stats();
  }

  /// True once no item can arrive any more. False if one is on its way: the next poll of the idle slot finds it.
  FLYWHEEL_TASK bool withdraw() {
    if (enrolled_) enrolled_ = !idle_slot_.withdraw();
    return !enrolled_;
  }

  /// Notes what was announced: a collective run, or the end of this launch. The worker has no local work then. False if all
  /// are called together to leave, then another announcement follows; or if that is called off.
  FLYWHEEL_TASK bool take_announcement(Found& seen) {
    // Acquire: pairs with the release in Announcer::post(). The line and state of the run go with it.
    const std::uint64_t announcement = P::device(dev_.control->broadcast.announcement).load(Order::acquire);
    work_.epoch = announcement_epoch(announcement);
    phased_run_ = static_cast<std::uint16_t>(announcement_run(announcement));
    const bool stops = announcement_stop(announcement) == dev_.launch;
    seen = stops ? Found::stop : Found::phased;
    if (!announcement_assembles(announcement)) return true;
    if (stops) wait_for_assembly<P>(dev_, announcement);
    return false;
  }

  /// Takes work from where `broadcast` has it. False if other workers took it first.
  FLYWHEEL_TASK bool pop(const Broadcast& broadcast) {
    const bool singly = work_.single_shares != 0;
    const std::uint32_t popped = take_work<P>(dev_, work_, idle_slot_.worker, broadcast.level, broadcast.count);
    stats_.queued += popped;
    has_local_ = popped != 0;
    had_batch_ = popped > 1 || singly;
    return has_local_;
  }

  const DeviceState& dev_;
  LocalWork& work_;
  Views<P> views_;
  IdleSlot<P> idle_slot_;
  WorkerCounts stats_{};
  std::uint16_t phased_run_ = 0;
  bool has_local_ = false;  // there may be local work, see local_work.hpp
  bool had_batch_ = false;  // see had_batch()
  bool enrolled_ = false;
  bool came_directly_ = false;
  const std::uint32_t polls_;
};

}  // namespace flywheel::detail
