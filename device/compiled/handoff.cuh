// Handoffs: compute parts pass data to the store warp through a ring of kHandoffs places in shared memory. parts.cuh and
// checked.cuh include it. The store warp uses HandoffConsumer; GpuBlock (block.cuh) calls the functions in detail, which are
// the compute warps' side.
#pragma once

#include "roles.cuh"

namespace flywheel::detail {

/// The calling warp's position, looked up at each call: what the compiler keeps across a task's body it may put into local
/// memory, and that is read from L2 after each acquire.
__device__ __forceinline__ WarpHandoffs& warp_handoffs(RolesShared& roles) {
  return roles.handoffs[ptx::thread_of_block() / 32 - kFirstComputeWarp];
}

/// A compute warp: waits until the next place is free, and returns it. If the runtime was aborted, it returns at once; what
/// is written there is not used.
__device__ inline void* acquire_handoff() {
  RolesShared& roles = roles_shared();
  const WarpHandoffs& mine = warp_handoffs(roles);
  const std::uint32_t place = mine.place;
  // Acquire, block scope: pairs with HandoffConsumer::consumer_release(). The store warp has read what this place held before.
  if (mine.used == kHandoffs) wait_phase_in_compute(roles.handoff_empty[place], mine.parity ^ 1);
  return page_memory() + roles.handoffs_at + place * kHandoffBytes;
}

/// A compute warp: waits until the store warp has read all that this warp has passed on. The store warp takes the places in
/// turn, so the last place stands for all.
__device__ inline void await_taken() {
  RolesShared& roles = roles_shared();
  const WarpHandoffs& mine = warp_handoffs(roles);
  if (mine.used == 0) return;
  const bool wrapped = mine.place == 0;
  // Acquire, block scope: pairs with HandoffConsumer::consumer_release().
  wait_phase_in_compute(roles.handoff_empty[wrapped ? kHandoffs - 1 : mine.place - 1], mine.parity ^ wrapped);
}

/// A compute warp: passes the place that acquire_handoff() returned to the store warp.
__device__ inline void producer_commit() {
  RolesShared& roles = roles_shared();
  WarpHandoffs& mine = warp_handoffs(roles);
  const WarpHandoffs now = mine;
  __syncwarp();  // the one arrival releases what all lanes have written
  if (threadIdx.x % 32 == 0) {
    const bool wraps = now.place + 1 == kHandoffs;
    mine = {wraps ? 0 : now.place + 1, now.parity ^ wraps, now.used < kHandoffs ? now.used + 1 : now.used, now.count + 1};
  }
  // Release, block scope: pairs with the tests of `handoff_full` in HandoffConsumer::consumer_wait() and poll(); covers the
  // place.
  if (arrives(threadIdx.x % 32)) ptx::mbarrier_arrive(roles.handoff_full[now.place]);
  __syncwarp();  // all lanes see the new position
}

/// A part of instruction `number`: waits until the tasks before it have sent what they wrote, or have ended. False if one of
/// those known by then has failed, or the runtime was aborted. No time limit here: the control role has it, and on an abort
/// it calls the instruction off, with the same answer for all lanes.
__device__ inline bool await_sent(std::uint32_t number) {
  RolesShared& roles = roles_shared();
  const std::uint32_t slot = number % kRoleSlots;
  // Acquire, block scope: pairs with the arrivals on `coming` in ControlRole::begin(), begin_early() and call_off(); covers
  // `called_off`, and for a task that is not early what the control thread acquired in wait_before(). What an early task
  // reads of other workers here comes in stamped words.
  while (!ptx::mbarrier_test(roles.coming[slot], number / kRoleSlots & 1)) {}
  return !roles.slots[slot].called_off;
}
/// Waits until the tasks before instruction `number` have ended. False if one has failed, or the runtime was aborted. No time
/// limit, as in await_sent().
__device__ inline bool await_before(std::uint32_t number) {
  RolesShared& roles = roles_shared();
  const std::uint32_t slot = number % kRoleSlots;
  // Acquire, block scope: pairs with the arrivals on `before` in ControlRole::begin(), begin_early() and call_off(); covers
  // `before_failed` and what the control thread acquired in wait_before(), which is all that those tasks wrote.
  while (!ptx::mbarrier_test(roles.before[slot], number / kRoleSlots & 1)) {}
  return !roles.slots[slot].before_failed;
}
/// Whether the tasks before have sent, without waiting. May turn true later than the stamped words themselves arrive.
/// Acquire, block scope: pairs as in await_sent().
__device__ inline bool has_come(std::uint32_t number) {
  return ptx::mbarrier_poll(roles_shared().coming[number % kRoleSlots], number / kRoleSlots & 1);
}
/// Whether the control role has called instruction `number` off, without waiting. `called_off` is covered by has_come().
__device__ inline bool is_called_off(std::uint32_t number) {
  return has_come(number) && roles_shared().slots[number % kRoleSlots].called_off;
}
/// A compute thread: signals that instruction `number` has put all its stamped words, see flywheel::signal_sent().
__device__ inline void signal_sent(std::uint32_t number) {
  RolesShared& roles = roles_shared();
  detail::signal_sent<ThreadPlatform>(sent_word(roles.run, roles.slots[number % kRoleSlots].instruction));
}

/// One lane of a compute warp that has ended its task: returns the number of the task's handoffs, and resets it.
__device__ inline std::uint32_t end_handoffs() {
  WarpHandoffs& mine = warp_handoffs(roles_shared());
  const std::uint32_t count = mine.count;
  mine.count = 0;
  return count;
}

/// The store warp's side. Its methods are called by all lanes.
class HandoffConsumer {
 public:
  __device__ HandoffConsumer(RolesShared& roles, const TraceWriter<ThreadPlatform>& writer)
      : roles_(roles),
        writer_(writer),
        places_at_(roles.handoffs_at),
        place_(kHandoffs) {}

  /// Called around each task. end() takes and returns the handoffs that the store part left, and waits until the compute
  /// part has ended. False if the runtime was aborted.
  __device__ void begin(std::uint32_t n) {
    number_ = n;
    taken_ = 0;
    over_ = 0;
    last_taken_ = 0;
    sent_word_ = detail::sent_word(roles_.run, roles_.slots[n % kRoleSlots].instruction);
  }
  __device__ bool end() {
    if (held_) consumer_release();
    while (take_slowly()) consumer_release();
    __syncwarp();  // the leader's arrival on `stored` releases what all lanes stored
    return over_;
  }

  __device__ std::uint32_t number() const { return number_; }
  /// Whether the store part holds a place that it has not returned.
  __device__ bool holds() const { return held_; }
  /// For traces: the tick at which the task's last handoff was taken; `otherwise` if there was none.
  __device__ std::uint64_t last_taken(std::uint64_t otherwise) const { return last_taken_ ? last_taken_ : otherwise; }
  /// Signals that the task has put all its stamped words. One lane; relaxed, see flywheel::signal_sent().
  __device__ void signal_sent() const { detail::signal_sent<ThreadPlatform>(sent_word_); }

  /// Waits for the task's next handoff. Null once the compute part has ended and all its handoffs were taken.
  __device__ const void* consumer_wait() {
    // All lanes poll, as compute warps do, so that the hardware can suspend and wake the warp by this barrier. They decide
    // together, because each lane may see the phase complete at another time. Acquire, block scope: pairs with
    // producer_commit(); covers the place.
#pragma unroll 1
    for (std::uint32_t polls = 0; polls < ptx::kQuickPolls; ++polls) {
      const bool there = ptx::mbarrier_test(roles_.handoff_full[place_.slot()], place_.parity());
      const bool over = (there ? computed_after(there) : computed()) && taken_ == roles_.slots[number_ % kRoleSlots].handoffs;
      if (__any_sync(0xffffffffu, over)) break;  // any handoff that is there is the next task's
      if (__all_sync(0xffffffffu, there)) return hold();
    }
    return take_slowly();
  }

  /// Returns the place that consumer_wait() gave.
  __device__ void consumer_release() {
    // Release after __syncwarp(), for the reads of all lanes: pairs with the acquires in acquire_handoff(), await_taken().
    __syncwarp();
    if (arrives(threadIdx.x % 32)) ptx::mbarrier_arrive(roles_.handoff_empty[place_.slot()]);
    place_.advance();
    held_ = 0;
  }

 private:
  __device__ const void* hold() {
    __syncwarp();  // the lanes may have seen the phase complete one after the other
    ++taken_;
    held_ = 1;
    last_taken_ = writer_.now();
    return page_memory() + places_at_ + place_.slot() * kHandoffBytes;
  }
  /// Acquire, block scope: pairs with the arrivals on `computed` in end_task(); covers `handoffs` and the task's outcome.
  __device__ bool computed() const {
    return ptx::mbarrier_poll(roles_.computed[number_ % kRoleSlots], number_ / kRoleSlots & 1);
  }
  /// The same, an acquire too, ordered after the test that saw a handoff. Only in that order does it tell whether the handoff
  /// is the next task's: a compute warp arrives on `computed` of one task before it hands over for the next.
  __device__ bool computed_after(bool there) const {
    return ptx::mbarrier_poll_if(there, roles_.computed[number_ % kRoleSlots], number_ / kRoleSlots & 1);
  }

  /// Polls for a handoff and for the end of the compute part, in one lane: the others leave shared memory to other warps.
  __device__ const void* take_slowly() {
    // All lanes have left the store part before lane 0 begins to poll; otherwise they would take turns with its polls. It
    // orders nothing that is needed, so no test finds it missing: what lane 0 learns goes to the others by the shuffle.
    __syncwarp();
    if (threadIdx.x % 32 == 0 && !poll_briefly()) poll_longer();
    const std::uint32_t seen = __shfl_sync(0xffffffffu, held_ | over_ << 1, 0);
    held_ = seen & 1;
    over_ = seen >> 1;
    __syncwarp();  // all lanes see what the leader acquired in poll()
    if (held_) all_see(roles_.handoff_full[place_.slot()], place_.parity());
    if (over_) all_see(roles_.computed[number_ % kRoleSlots], number_ / kRoleSlots & 1);
    return held_ ? hold() : nullptr;
  }

  /// True once there is a handoff or the compute part has ended. Acquire, block scope: pairs with producer_commit(); covers the
  /// place. computed() and computed_after() name their own pairs.
  __device__ bool poll() {
    held_ = ptx::mbarrier_poll(roles_.handoff_full[place_.slot()], place_.parity());
    // After the test of `handoff_full`: a handoff may be the next task's, but not before this task's compute part has ended.
    over_ = held_ ? computed_after(held_) : computed();
    if (over_) held_ = taken_ < roles_.slots[number_ % kRoleSlots].handoffs;
    return held_ || over_;
  }
  __device__ bool poll_briefly() {
    bool seen = poll();
    for (std::uint32_t polls = 0; !seen && polls < ptx::kQuickPolls; ++polls) seen = poll();
    return seen;
  }
  /// The slow path, under twice the time limit of the control role, as in wait_phase_longer().
  __device__ void poll_longer() {
    WaitContext limit = Views<ThreadPlatform>{*roles_.dev}.wait_for_phase(roles_.run.worker);
    limit.budget_ns *= 2;
    spin_until<ThreadPlatform>(limit, WaitReason::role, &roles_.handoff_full[place_.slot()], place_.parity(),
                               [this](std::uint64_t&) { return poll(); });
  }

  RolesShared& roles_;
  const TraceWriter<ThreadPlatform>& writer_;
  const std::uint32_t places_at_;
  RingCursor place_;
  std::uint32_t number_ = 0;  // of the current instruction
  std::uint64_t* sent_word_ = nullptr;
  std::uint32_t taken_ = 0;  // handoffs of that instruction
  std::uint32_t over_ = 0;   // 1: its compute part has ended
  std::uint32_t held_ = 0;   // 1: the store part holds a place
  std::uint64_t last_taken_ = 0;
};

}  // namespace flywheel::detail
