// What a run decides, apart from the obvious: noted, and followed again. Fewer of them are a shorter story of the same fault.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flywheel::simulate {

/// What there is to decide, and what is obvious. `next`: who goes on; the same thread, until it yields or waits or went on for
/// long, then its neighbour. `stale`: how many of the newest stores a load misses, or a store comes before; none. `wakes`:
/// whether a wait ends for no reason; no.
/// `leap`: by how many ns the clock leaps; 0.
enum class Choice : std::uint8_t { next, stale, wakes, leap };

/// The thread that was created as number `thread`, when it had been at `point` others of its choices of who goes on.
struct Decision {
  std::uint64_t point;
  std::uint64_t where;  // in the program's file, of its last step
  std::uint32_t value;
  std::uint32_t thread;
  std::uint32_t after;  // index + 1 of the same thread's next one; 0: none
  Choice choice;
};

/// Decisions in the order in which they were taken. Lies in memory that processes share, never in the program's heap.
struct DecisionList {
  static constexpr std::size_t kMost = std::size_t{1} << 22;
  std::uint64_t count;
  Decision at[kMost];
};

class Decisions {
 public:
  /// From the next run on: the ones taken go to `taken`, if it is not null, and those of `plan` are taken again.
  void use(DecisionList* taken, DecisionList* plan) { taken_ = taken, plan_ = plan; }
  void begin_run();

  /// The value of this choice, which draw() makes unless there is a plan.
  template <class Draw>
  std::uint32_t decide(Choice choice, std::uint32_t thread, std::uint64_t point, std::uint64_t where, std::uint32_t obvious,
                       Draw&& draw) {
    if (!taken_ && !plan_) return draw();
    const std::uint32_t value = plan_ ? planned(choice, thread, point, obvious) : draw();
    if (taken_ && value != obvious) note({point, where, value, thread, 0, choice});
    return value;
  }
  bool follows_plan() const { return plan_; }
  bool on() const { return plan_ || taken_; }

 private:
  static constexpr std::uint32_t kThreads = 256;  // later ones do the obvious
  std::uint32_t planned(Choice choice, std::uint32_t thread, std::uint64_t point, std::uint32_t obvious);
  void note(const Decision& decision) {
    if (taken_->count < DecisionList::kMost) taken_->at[taken_->count++] = decision;
  }

  DecisionList* taken_ = nullptr;
  DecisionList* plan_ = nullptr;
  std::uint32_t due_[kThreads] = {};  // of each thread, index + 1 of its next planned one
};

}  // namespace flywheel::simulate
