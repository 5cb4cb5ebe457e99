// Handoffs: what compute parts leave to the warp that stores, through a few places in shared memory used in turn.
#pragma once

#include "roles.cuh"

namespace flywheel {

namespace detail {
/// Looked up each time: what is kept over a task's body, the compiler may keep in local memory, which is a trip to L2 away
/// after each acquire.
__device__ __forceinline__ WarpHandoffs& warp_handoffs(RolesShared& roles) {
  return roles.handoffs[ptx::thread_of_block() / 32 - kFirstComputeWarp];
}

/// One compute warp's end. If the runtime was aborted, it does not matter what is written there.
__device__ inline void* hand_over_place() {
  RolesShared& roles = roles_shared();
  const WarpHandoffs& mine = warp_handoffs(roles);
  const std::uint32_t place = mine.place;
  if (mine.used == kHandoffs) wait_phase_in_compute(roles.taken[place], mine.parity ^ 1);
  return page_memory() + roles.handoffs_at + place * kHandoffBytes;
}

/// Until the store warp has read all that this warp has passed on: it takes in turn, so the last place tells it of all.
__device__ inline void await_taken() {
  RolesShared& roles = roles_shared();
  const WarpHandoffs& mine = warp_handoffs(roles);
  if (mine.used == 0) return;
  const bool wrapped = mine.place == 0;
  wait_phase_in_compute(roles.taken[wrapped ? kHandoffs - 1 : mine.place - 1], mine.parity ^ wrapped);  // pairs with HandoffConsumer::give_back()
}

__device__ inline void pass_on() {
  RolesShared& roles = roles_shared();
  WarpHandoffs& mine = warp_handoffs(roles);
  const WarpHandoffs now = mine;
  __syncwarp();  // all lanes have written
  if (threadIdx.x % 32 == 0) {
    const bool wraps = now.place + 1 == kHandoffs;
    mine = {wraps ? 0 : now.place + 1, now.parity ^ wraps, now.used < kHandoffs ? now.used + 1 : now.used, now.count + 1};
  }
  if (arrives(threadIdx.x % 32)) ptx::mbarrier_arrive(roles.handed[now.place]);  // pairs with HandoffConsumer::take()
  __syncwarp();
}

/// A part of instruction `number`: until the tasks before it have sent what they wrote, or have ended. False if one failed.
/// The control role has the time limits; when the runtime is aborted it calls the instruction off, for all lanes alike.
__device__ inline bool await_sent(std::uint32_t number) {
  RolesShared& roles = roles_shared();
  const std::uint32_t slot = number % kRoleSlots;
  while (!ptx::mbarrier_test(roles.coming[slot], number / kRoleSlots & 1)) {}
  return !roles.slots[slot].called_off;
}
/// Until they have ended.
__device__ inline bool await_before(std::uint32_t number) {
  RolesShared& roles = roles_shared();
  const std::uint32_t slot = number % kRoleSlots;
  while (!ptx::mbarrier_test(roles.before[slot], number / kRoleSlots & 1)) {}
  return !roles.slots[slot].before_failed;
}
/// Without waiting. It may be known later than what those tasks have sent is there.
__device__ inline bool has_come(std::uint32_t number) {
  return ptx::mbarrier_poll(roles_shared().coming[number % kRoleSlots], number / kRoleSlots & 1);
}
__device__ inline bool is_called_off(std::uint32_t number) {
  return has_come(number) && roles_shared().slots[number % kRoleSlots].called_off;
}
__device__ inline void signal_sent(std::uint32_t number) {
  RolesShared& roles = roles_shared();
  flywheel::signal_sent<ThreadPlatform>(sent_word(roles.run, roles.slots[number % kRoleSlots].instruction));
}

/// One lane of a warp that is through with a task: how often it has handed over.
__device__ inline std::uint32_t end_handoffs() {
  WarpHandoffs& mine = warp_handoffs(roles_shared());
  const std::uint32_t count = mine.count;
  mine.count = 0;
  return count;
}
}  // namespace detail

/// The store warp's end.
class HandoffConsumer {
 public:
  __device__ HandoffConsumer(RolesShared& roles, const TraceWriter<ThreadPlatform>& writer)
      : roles_(roles), writer_(writer), places_at_(roles.handoffs_at), place_(kHandoffs) {}

  /// Around each task. end() takes what the store part left, and waits until the compute part is over; false if the
  /// runtime was aborted.
  __device__ void begin(std::uint32_t n) {
    number_ = n;
    taken_ = 0;
    over_ = 0;
    last_taken_ = 0;
    sent_word_ = flywheel::sent_word(roles_.run, roles_.slots[n % kRoleSlots].instruction);
  }
  __device__ bool end() {
    if (held_) give_back();
    while (take_slowly()) give_back();
    __syncwarp();  // the leader's release covers what all lanes stored
    return over_;
  }

  __device__ std::uint32_t number() const { return number_; }
  __device__ bool holds() const { return held_; }
  /// For traces: when the task's last handoff was taken; `otherwise` if there was none.
  __device__ std::uint64_t last_taken(std::uint64_t otherwise) const { return last_taken_ ? last_taken_ : otherwise; }
  __device__ void signal_sent() const { flywheel::signal_sent<ThreadPlatform>(sent_word_); }

  /// Null once the compute part is over and all it handed over was taken.
  __device__ const void* take() {
    // All lanes look, as compute warps do: who waits for one thing may be woken by it. They decide together, for each may
    // see it at another time.
#pragma unroll 1
    for (std::uint32_t looks = 0; looks < ptx::kQuickLooks; ++looks) {
      const bool there = ptx::mbarrier_test(roles_.handed[place_.slot()], place_.parity());
      const bool over = (there ? computed_after(there) : computed()) && taken_ == roles_.slots[number_ % kRoleSlots].handoffs;
      if (__any_sync(0xffffffffu, over)) break;  // what is there is the next task's
      if (__all_sync(0xffffffffu, there)) return hold();
    }
    return take_slowly();
  }

  __device__ void give_back() {
    __syncwarp();
    if (arrives(threadIdx.x % 32)) ptx::mbarrier_arrive(roles_.taken[place_.slot()]);  // pairs with hand_over_place()
    place_.advance();
    held_ = 0;
  }

 private:
  __device__ const void* hold() {
    __syncwarp();  // the lanes may have seen it one after the other
    ++taken_;
    held_ = 1;
    last_taken_ = writer_.now();
    return page_memory() + places_at_ + place_.slot() * kHandoffBytes;
  }
  /// Acquire: pairs with the compute warps' arrivals at the end of their part.
  __device__ bool computed() const {
    return ptx::mbarrier_poll(roles_.computed[number_ % kRoleSlots], number_ / kRoleSlots & 1);
  }
  /// When a handoff is there: only then does it tell whether that is the next task's.
  __device__ bool computed_after(bool there) const {
    return ptx::mbarrier_poll_if(there, roles_.computed[number_ % kRoleSlots], number_ / kRoleSlots & 1);
  }

  /// Looks out for the end of the compute part, too. By one lane: the others need the shared memory.
  __device__ const void* take_slowly() {
    __syncwarp();
    if (threadIdx.x % 32 == 0 && !look_for_a_while()) look_longer();
    const std::uint32_t seen = __shfl_sync(0xffffffffu, held_ | over_ << 1, 0);
    held_ = seen & 1;
    over_ = seen >> 1;
    if (held_) all_see(roles_.handed[place_.slot()], place_.parity());
    if (over_) all_see(roles_.computed[number_ % kRoleSlots], number_ / kRoleSlots & 1);
    return held_ ? hold() : nullptr;  // what the leader acquired, all see
  }

  /// Acquire: pairs with the compute warps' arrivals when they hand a place over.
  __device__ bool look() {
    held_ = ptx::mbarrier_poll(roles_.handed[place_.slot()], place_.parity());
    // After that: what is there may be the next task's, but not while the compute part of this one goes on.
    over_ = held_ ? computed_after(held_) : computed();
    if (over_) held_ = taken_ < roles_.slots[number_ % kRoleSlots].handoffs;
    return held_ || over_;
  }
  __device__ bool look_for_a_while() {
    bool seen = look();
    for (std::uint32_t looks = 0; !seen && looks < ptx::kQuickLooks; ++looks) seen = look();
    return seen;
  }
  __device__ void look_longer() {
    WaitContext limit = Views<ThreadPlatform>{*roles_.dev}.wait_for_phase(roles_.run.worker);
    limit.budget_ns *= 2;
    spin_until<ThreadPlatform>(limit, WaitReason::role, &roles_.handed[place_.slot()], place_.parity(),
                               [this](std::uint64_t&) { return look(); });
  }

  RolesShared& roles_;
  const TraceWriter<ThreadPlatform>& writer_;
  const std::uint32_t places_at_;
  RingCursor place_;
  std::uint32_t number_ = 0;  // of the instruction
  std::uint64_t* sent_word_ = nullptr;
  std::uint32_t taken_ = 0;   // handoffs of it
  std::uint32_t over_ = 0;    // 1: its compute part is
  std::uint32_t held_ = 0;
  std::uint64_t last_taken_ = 0;
};

}  // namespace flywheel
