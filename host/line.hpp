// The line of runs that could not be let in at once: a lock-free queue in front, and behind it the lanes, one for each
// executable and priority.
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

#include "host/run_record.hpp"

namespace flywheel {

struct Line {
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

  Line();
  ~Line();

  /// Any thread.
  void enqueue(RunPtr run);
  bool fresh_empty() const;

  // The caller holds the pump's lock.
  /// Moves what came to the ends of its lanes. False if nothing did.
  bool drain();
  /// Lanes that are empty are of no use any more.
  void forget_empty_lanes();
  /// Out of the line. False if it is not in it.
  bool remove(const RunPtr& run);
  /// Everybody, by priority.
  std::vector<RunPtr> take_all();

  std::array<Lanes, kPriorities> levels;

  std::atomic<std::uint32_t> length{0};  // of all parts; relaxed: whoever finds it 0 looks again under the lock, or sleeps by `asleep`
  std::atomic<bool> asleep{false};       // the pump's thread waits to be woken
  std::atomic<bool> closed{false};       // see Pump::throw_if_closed()

 private:
  struct Fresh;
  std::unique_ptr<Fresh> fresh_;
  std::uint64_t arrived_ = 0;
};

}  // namespace flywheel
