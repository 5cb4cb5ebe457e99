// The slots of runs in flight. A slot is a run's place in all arrays that host and device share: completions, results,
// parameters, streams. Admission gives slots out; ending looks through them.
#pragma once

#include <memory>
#include <vector>

#include "run_record.hpp"

namespace flywheel {

/// Guarded by the dispatcher's mutex.
class RunSlots {
 public:
  using RunPtr = std::shared_ptr<RunRecord>;

  explicit RunSlots(std::uint32_t count);

  std::uint32_t size() const { return static_cast<std::uint32_t>(live_.size()); }
  std::uint32_t free() const { return static_cast<std::uint32_t>(free_.size()); }
  std::uint32_t live() const { return live_count_; }
  /// Null where the slot is free.
  const RunPtr& operator[](std::uint32_t slot) const { return live_[slot]; }
  bool holds(const RunRecord& run) const { return live_[run.slot].get() == &run; }

  /// Gives the run a free slot, the slot's next generation, and the ticket of the first value that it will stream.
  void take(const RunPtr& run);
  /// The device is through with the run, and the host has taken all that it left in the slot.
  void give_back(const RunRecord& run);
  /// Empties all slots for good: they are not free, since workers may still write there.
  std::vector<RunPtr> abandon();

 private:
  std::vector<RunPtr> live_;  // by slot
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> generations_;
  std::vector<std::uint64_t> stream_next_;
  std::uint32_t live_count_ = 0;
};

/// The message that lets a run in, which has its slot.
RunConstants submission_of(const RunRecord& run);

}  // namespace flywheel
