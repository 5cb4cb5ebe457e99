// The line of runs that could not be let in at once: a lock-free queue in front, an ordered list behind it.
#pragma once

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

  Line();
  ~Line();

  /// Any thread.
  void enqueue(RunPtr run);
  bool fresh_empty() const;

  // The caller holds the pump's lock.
  /// Moves what came to the end of `sorted`.
  void drain();
  /// Behind earlier runs of its executable that wait for one of theirs to end, or of all workers; nobody else waits for those.
  void hold_back(const RunPtr& run);
  /// True if one of these is.
  bool is_held_back(const RunRecord& run) const;
  /// Out of the line. False if it is not in it.
  bool remove(const RunPtr& run);
  /// Everybody.
  std::vector<RunPtr> take_all();

  std::deque<RunPtr> sorted;
  std::deque<RunPtr> of_all;  // held back: of all workers
  std::map<const LoadedGraph*, std::deque<RunPtr>> held_back;

  std::atomic<std::uint32_t> length{0};  // of all parts; relaxed: whoever finds it 0 looks again under the lock, or sleeps by `asleep`
  std::atomic<bool> asleep{false};       // the pump's thread waits to be woken
  std::atomic<bool> closed{false};       // see Pump::throw_if_closed()

 private:
  struct Fresh;
  std::unique_ptr<Fresh> fresh_;
};

}  // namespace flywheel
