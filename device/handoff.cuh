// Handoffs: what compute parts leave to the warp that stores, through a few places in shared memory used in turn.
#pragma once

#include "device/roles.cuh"

namespace flywheel {

/// One compute warp's end.
class Hander {
 public:
  __device__ Hander(RolesShared& roles, unsigned char* places, const World& world)
      : roles_(roles), places_(places), world_(world), place_(kHandoffs) {}

  __device__ void* hand() {
    if (used_ < kHandoffs) {
      ++used_;
    } else if (!wait_phase(roles_.taken[place_.slot()], place_.parity() ^ 1, world_, roles_.run.worker, WaitReason::role)) {
      return nullptr;
    }
    return places_ + std::size_t{place_.slot()} * kHandoffBytes;
  }

  __device__ void pass_on() {
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(roles_.handed[place_.slot()]);  // pairs with Taker::take()
    place_.advance();
    ++count_;
  }

  /// How often the task that ends here has handed over.
  __device__ std::uint32_t end_task() {
    const std::uint32_t count = count_;
    count_ = 0;
    return count;
  }

 private:
  RolesShared& roles_;
  unsigned char* places_;
  const World& world_;
  RingPlace place_;
  std::uint32_t used_ = 0;   // places used at least once
  std::uint32_t count_ = 0;  // handoffs of this task
};

/// The store warp's end.
class Taker {
 public:
  __device__ Taker(RolesShared& roles, unsigned char* places, const World& world)
      : roles_(roles), places_(places), world_(world), place_(kHandoffs) {}

  /// Around each task. end() takes what the store part left, and waits until the compute part is over; false if the
  /// runtime was aborted.
  __device__ void begin(std::uint32_t n) {
    number_ = n;
    taken_ = 0;
    over_ = false;
  }
  __device__ bool end() {
    if (held_) give_back();
    while (take()) give_back();
    __syncwarp();  // the leader's release covers what all lanes stored
    return over_;
  }

  /// Null once the compute part is over and all it handed over was taken.
  __device__ const void* take() {
    std::uint64_t& handed = roles_.handed[place_.slot()];
    std::uint64_t& computed = roles_.computed[number_ % kRoleSlots];
    WaitContext patience = Wires<ThreadPlatform>{world_}.wait_for_phase(roles_.run.worker);
    patience.budget_ns *= 2;
    bool there = false;
    spin_until<ThreadPlatform>(patience, WaitReason::role, &handed, place_.parity(), [&](std::uint64_t&) {
      there = ptx::mbarrier_test(handed, place_.parity());
      // After that: what is there may be the next task's, but not while the compute part of this one goes on.
      over_ = ptx::mbarrier_test(computed, number_ / kRoleSlots & 1);
      if (over_) there = taken_ < roles_.slots[number_ % kRoleSlots].handoffs;
      return there || over_;
    });
    there = __all_sync(0xffffffffu, there);
    held_ = there;
    taken_ += there;
    return there ? places_ + std::size_t{place_.slot()} * kHandoffBytes : nullptr;
  }

  __device__ void give_back() {
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(roles_.taken[place_.slot()]);  // pairs with Hander::hand()
    place_.advance();
    held_ = false;
  }

 private:
  RolesShared& roles_;
  unsigned char* places_;
  const World& world_;
  RingPlace place_;
  std::uint32_t number_ = 0;  // of the instruction
  std::uint32_t taken_ = 0;   // handoffs of it
  bool over_ = false;         // its compute part
  bool held_ = false;
};

}  // namespace flywheel
