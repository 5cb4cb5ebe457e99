// The backlog: runs that could not go in flight at once. A lock-free queue takes them in; behind it are the lanes, one for each
// executable and priority. Admission owns it and decides who leaves it.
//
// Runs go by priority, and in the order of their arrival within one. Those of one lane wait for each other: they need the same
// counters, or all workers, and the same room in the queues. So if the first of a lane cannot go, none of it can.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "run_record.hpp"

namespace flywheel {

class Backlog {
 public:
  using RunPtr = std::shared_ptr<RunRecord>;
  using Lane = std::deque<RunPtr>;  // in the order of arrival
  using Lanes = std::map<const LoadedGraph*, Lane>;  // nullptr: all runs that need all workers

  /// The lanes of one priority, by the arrival of their first runs.
  class Heads {
   public:
    explicit Heads(Lanes& lanes);
    /// The lane whose first run came first; nullptr if none is left. It is out of the heads until it is given back.
    Lane* take();
    /// An empty lane is forgotten.
    void give_back(Lane& lane);

   private:
    std::vector<Lane*> heap_;
  };

  Backlog();
  ~Backlog();

  // Any thread.
  void enqueue(RunPtr run);
  /// Runs in all parts. Relaxed: whoever finds 0 looks again under the mutex, or sleeps by Dispatcher::asleep_.
  std::uint32_t size() const { return length_.load(std::memory_order_relaxed); }
  bool fresh_empty() const;

  // The caller holds the dispatcher's mutex.
  /// Moves what came to the ends of its lanes. False if nothing did.
  bool drain();
  /// Lanes that are empty are of no use any more.
  void forget_empty_lanes();
  Lanes& lanes(std::size_t level) { return levels_[level]; }
  /// Takes the first run out of a lane.
  RunPtr take_first(Lane& lane);
  /// Out of the backlog. False if it is not in it.
  bool remove(const RunPtr& run);
  /// Everybody, by priority.
  std::vector<RunPtr> take_all();

 private:
  struct Fresh;
  std::unique_ptr<Fresh> fresh_;
  std::atomic<std::uint32_t> length_{0};

  // Guarded by the dispatcher's mutex.
  std::array<Lanes, kPriorities> levels_;
  std::uint64_t arrived_ = 0;
};

}  // namespace flywheel
