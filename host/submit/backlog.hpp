// The backlog holds the runs that could not go in flight at once. A lock-free queue accepts them from any thread; the
// dispatcher sorts them into lanes, one for each executable and priority. Admission owns the backlog and decides which
// run leaves it.
//
// Runs leave by priority, and in the order of arrival within a priority. The runs of one lane wait for each other: they
// need the same counters or all workers, and the same room in the queues. So if the first run of a lane cannot go, no
// run of that lane can.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "run_record.hpp"

namespace flywheel::detail {

/// enqueue(), size() and fresh_empty() are thread-safe. All other functions need the dispatcher's mutex.
class Backlog {
 public:
  using RunPtr = std::shared_ptr<RunRecord>;
  using Lane = std::deque<RunPtr>;                   // in the order of arrival
  using Lanes = std::map<const LoadedGraph*, Lane>;  // nullptr: the lane of all collective runs

  /// A heap of the lanes of one priority, by the arrival of their first runs.
  class Heads {
   public:
    explicit Heads(Lanes& lanes);
    /// Removes and returns the lane whose first run arrived first; nullptr if none is left. give_back() puts it into
    /// the heap again.
    Lane* take();
    /// Puts a lane back. An empty lane is dropped.
    void give_back(Lane& lane);

   private:
    std::vector<Lane*> heap_;
  };

  Backlog();
  ~Backlog();

  // Any thread.
  void enqueue(RunPtr run);
  /// Runs in the queue and in the lanes. Relaxed: it is a hint. A caller that acts on 0 looks again under the mutex,
  /// and the dispatcher's thread, before it sleeps, orders this load with the fence in Dispatcher::sleep().
  std::uint32_t size() const { return length_.load(std::memory_order_relaxed); }
  /// True if the queue holds no run. A hint, like size().
  bool fresh_empty() const;

  // The caller holds the dispatcher's mutex.
  /// Moves all runs from the queue to the ends of their lanes. False if there were none.
  bool drain();
  /// Erases empty lanes.
  void forget_empty_lanes();
  Lanes& lanes(std::size_t level) { return levels_[level]; }
  /// Removes and returns the first run of a lane.
  RunPtr take_first(Lane& lane);
  /// Removes the run. False if it is not in the backlog.
  bool remove(const RunPtr& run);
  /// Removes and returns all runs, by priority.
  std::vector<RunPtr> take_all();

 private:
  struct Fresh;
  std::unique_ptr<Fresh> fresh_;
  std::atomic<std::uint32_t> length_{0};

  // Guarded by the dispatcher's mutex.
  std::array<Lanes, kPriorities> levels_;
  std::uint64_t arrived_ = 0;  // runs sorted into lanes so far
};

}  // namespace flywheel::detail
