// The backlog holds the runs that could not go in flight at once. A lock-free list of arrivals accepts them from any thread;
// the dispatcher sorts them into run queues, one for each executable and priority. Admission owns the backlog and decides
// which run leaves it.
//
// Runs leave by priority, and in the order of arrival within a priority. The runs of one run queue wait for each other: they
// need the same counters or all workers, and the same room on the device. So if the first run of a run queue cannot go, no
// run of it can.
//
// A follower is held back beside the run queues, with the predecessor that keeps it there: one that is not in flight yet, so
// that no follower has a slot for which its predecessor waits; or one that has to end first, see obstacle_of().
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "run_record.hpp"

namespace flywheel::detail {

/// What keeps a follower in the backlog.
struct Obstacle {
  bool there = false;
  bool until_end = false;          // the predecessor has to end; else to be in flight
  const RunRecord* run = nullptr;  // the predecessor; null: a single task, which nobody notes when it ends
};
/// Takes the values of predecessors that have ended well, forgets these, and returns an obstacle among the others. A collective
/// run waits until they have ended, because it keeps other collective runs out once it is in flight. A dynamic run waits on
/// the device for the last kMostPredecessors, and takes the last kMostValues there. Notes if a predecessor has failed: then
/// there is no obstacle. The caller holds the dispatcher's mutex.
Obstacle obstacle_of(RunRecord& run);

/// enqueue(), size() and no_arrivals() are thread-safe. All other functions need the dispatcher's mutex.
class Backlog {
 public:
  using RunPtr = std::shared_ptr<RunRecord>;
  using RunQueue = std::deque<RunPtr>;                       // in the order of arrival
  using RunQueues = std::map<const LoadedGraph*, RunQueue>;  // nullptr: all collective runs

  /// A heap of the run queues of one priority, by the arrival of their first runs.
  class Heads {
   public:
    explicit Heads(RunQueues& queues);
    /// Removes and returns the run queue whose first run arrived first; nullptr if none is left. give_back() puts it into
    /// the heap again.
    RunQueue* take();
    /// Puts a run queue back. An empty one is dropped.
    void give_back(RunQueue& queue);

   private:
    std::vector<RunQueue*> heap_;
  };

  Backlog();
  ~Backlog();

  // Any thread.
  void enqueue(RunPtr run);
  /// Runs among the arrivals and in the run queues. Relaxed: it is a hint. A caller that acts on 0 looks again under the mutex,
  /// and the dispatcher's thread, before it sleeps, orders this load with the fence in Dispatcher::sleep().
  std::uint32_t size() const { return length_.load(std::memory_order_relaxed); }
  /// True if there are no arrivals. A hint, like size().
  bool no_arrivals() const;

  // The caller holds the dispatcher's mutex.
  /// Moves all arrivals to the ends of their run queues, or holds them back. False if there were none.
  bool drain();
  /// Followers that are held back.
  std::uint32_t held() const { return held_count_; }
  /// Those that are held back for this run become arrivals again: it is in flight, or has ended.
  void let_go(const RunRecord& run, bool ended);
  /// Erases empty run queues.
  void forget_empty_queues();
  RunQueues& queues(std::size_t level) { return levels_[level]; }
  /// Removes and returns the first run of a run queue.
  RunPtr take_first(RunQueue& queue);
  /// Removes the run. False if it is not in the backlog.
  bool remove(const RunPtr& run);
  /// Removes and returns all runs, by priority.
  std::vector<RunPtr> take_all();

 private:
  struct Arrivals;
  struct Held {
    RunPtr run;
    bool until_end;
  };

  void sort(RunPtr run);
  void hold_back(RunPtr run, const Obstacle& obstacle);
  bool remove_held(const RunPtr& run);

  std::unique_ptr<Arrivals> arrivals_;
  std::atomic<std::uint32_t> length_{0};

  // Guarded by the dispatcher's mutex.
  std::array<RunQueues, kPriorities> levels_;
  std::unordered_map<const RunRecord*, std::vector<Held>> held_;  // by predecessor
  std::uint32_t held_count_ = 0;
  std::uint64_t arrived_ = 0;  // runs that drain() has sorted so far
};

}  // namespace flywheel::detail
