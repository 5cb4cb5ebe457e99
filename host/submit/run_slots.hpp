// The slots of runs in flight. A slot is a run's index in all arrays that host and device share: completions, results,
// parameters and streams. Admission assigns slots; ending goes through them.
#pragma once

#include <memory>
#include <vector>

#include "../../runtime/records/inbox.hpp"
#include "run_record.hpp"

namespace flywheel::detail {

/// The caller holds the dispatcher's mutex.
class RunSlots {
 public:
  using RunPtr = std::shared_ptr<RunRecord>;

  explicit RunSlots(std::uint32_t count);

  std::uint32_t size() const { return static_cast<std::uint32_t>(live_.size()); }
  std::uint32_t free() const { return static_cast<std::uint32_t>(free_.size()); }
  std::uint32_t live() const { return live_count_; }
  /// The run in a slot; null if the slot is free.
  const RunPtr& operator[](std::uint32_t slot) const { return live_[slot]; }
  bool holds(const RunRecord& run) const { return live_[run.slot].get() == &run; }

  /// Gives the run a free slot, the slot's next generation, and the ticket of the first value that the run will stream.
  void take(const RunPtr& run);
  /// Frees the run's slot. The device has ended the run, and the host has collected everything from the slot.
  void give_back(const RunRecord& run);
  /// Removes and returns all runs in flight. Their slots do not become free, since workers may still write to them.
  std::vector<RunPtr> abandon();

 private:
  std::vector<RunPtr> live_;  // by slot
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> generations_;
  std::vector<std::uint64_t> stream_next_;
  std::uint32_t live_count_ = 0;
};

/// The GraphFlags of a run.
std::uint32_t flags_of(const RunRecord& run);
/// The inbox message that submits a run, which has its slot.
Message submission_of(const RunRecord& run);

}  // namespace flywheel::detail
