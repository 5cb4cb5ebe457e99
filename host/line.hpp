// The line of runs that could not be let in at once: a lock-free queue in front, an ordered list behind it.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

#include "host/run_record.hpp"

namespace flywheel {

struct Line {
  Line();
  ~Line();

  /// Any thread.
  void enqueue(std::shared_ptr<RunRecord> run);
  bool fresh_empty() const;
  /// Moves what came to the end of `sorted`. The caller holds the pump's lock.
  void drain();

  std::deque<std::shared_ptr<RunRecord>> sorted;  // guarded by the pump's lock
  std::atomic<std::uint32_t> length{0};           // of both parts
  std::atomic<bool> asleep{false};                // the pump's thread waits to be woken
  std::atomic<bool> closed{false};

 private:
  struct Fresh;
  std::unique_ptr<Fresh> fresh_;
};

}  // namespace flywheel
