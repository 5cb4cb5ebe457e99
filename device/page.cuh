// Pages: how compute parts take operands from shared memory. load.cuh brings them there.
#pragma once

#include "device/roles.cuh"

namespace flywheel {

/// One compute warp's view of its task's operands. All compute warps go through the same pages.
class PageOperands {
 public:
  /// The next page: kPageBytes of the task's operands, or what is left of them. Waits until it has landed. Null after
  /// the task's last page.
  __device__ static const unsigned char* next() {
    const WarpPages now = mine();
    if (now.left == 0) return nullptr;
    // Pairs with the load role's copy: complete_tx (or the copying threads' arrivals) releases the bytes.
    const bool landed = wait_phase(roles_shared().landed[now.take], now.take_parity, WaitReason::page);
    const bool wraps = now.take + 1 == page_count();
    set({wraps ? 0 : now.take + 1, now.take_parity ^ wraps, now.held + 1, now.left - 1});
    return landed ? page_memory() + std::size_t{now.take} * kPageBytes : nullptr;
  }

  /// This warp has read the page that next() gave first, of those it holds. Pairs with the load role's wait.
  __device__ static void give_back() {
    const WarpPages now = mine();
    const std::uint32_t first = now.take >= now.held ? now.take - now.held : now.take + page_count() - now.held;
    set({now.take, now.take_parity, now.held - 1, now.left});
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(roles_shared().returned[first]);
  }

  // Library use: around each task. Whatever a body left is given back, so no page is ever lost.
  __device__ static void begin(const Instruction& instruction) {
    WarpPages now = mine();
    now.left = pages_of(instruction.operand_bytes) + instruction.dependent_pages;
    set(now);
  }
  __device__ static void end(const Instruction& instruction) {
    if (!instruction.operand_bytes && !instruction.dependent_pages) return;
    for (std::uint32_t held = mine().held; held; --held) give_back();
    while (next()) give_back();
  }

 private:
  __device__ static std::uint32_t page_count() { return roles_shared().page_count; }
  __device__ static WarpPages mine() { return roles_shared().pages[threadIdx.x / 32 - kFirstComputeWarp]; }
  __device__ static void set(const WarpPages& now) {
    __syncwarp();  // all lanes have read what was, and the page that is given back
    if (threadIdx.x % 32 == 0) roles_shared().pages[threadIdx.x / 32 - kFirstComputeWarp] = now;
    __syncwarp();
  }
};

}  // namespace flywheel
