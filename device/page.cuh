// Pages: how a worker's operand stream gets into shared memory, and how compute parts take it from there.
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
  __device__ static void begin(std::uint32_t operand_bytes) {
    WarpPages now = mine();
    now.left = pages_of(operand_bytes);
    set(now);
  }
  __device__ static void end(std::uint32_t operand_bytes) {
    if (operand_bytes == 0) return;
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

/// The load role: one warp fetches the worker's operand stream, pass after pass, as far ahead as pages allow. It waits
/// for nothing but pages: what it fetches depends on no task.
class LoadRole {
  using P = ThreadPlatform;

 public:
  __device__ LoadRole(RolesShared& roles, const World& world)
      : roles_(roles), run_(roles.run), world_(world), fill_(world.page_count),
        land_(world.page_count), bulk_(ptx::kHopper && world.bulk_copies), policy_(ptx::read_once_policy()),
        pen_(run_.traced && lane() == 0 ? world.trace : TraceBuffers{}, run_.worker, TraceRole::load) {}

  /// All lanes.
  __device__ void operator()() {
    // Pairs with the release of whoever packed the stream, which the control thread acquired with the run.
    ptx::fence_global_for_bulk_copies();
    for (pass_ = 0; pass_ < run_.repeat && load_pass(); ++pass_) {}
    while (under_way_ && land_one()) {}  // nothing may be written to shared memory once the run is left
    pen_.close();
  }

 private:
  __device__ static std::uint32_t lane() { return threadIdx.x % 32; }

  __device__ bool load_pass() {
    const WorkerStream& stream = run_.stream;
    const unsigned char* from = stream.operands;
    std::uint32_t next = stream.operand_tasks ? stream.operand_sizes[0] : 0;
    for (std::uint32_t task = 0; task < stream.operand_tasks; ++task) {
      const std::uint32_t bytes = next;
      if (task + 1 < stream.operand_tasks) next = stream.operand_sizes[task + 1];  // on its way while this one loads
      for (std::uint32_t at = 0; at < bytes; at += kPageBytes) {
        if (!make_room()) return false;
        copy(from + at, bytes - at < kPageBytes ? bytes - at : kPageBytes);
      }
      from += bytes;
    }
    return stream.operand_tasks != 0;
  }

  /// A page that is free, and not too much under way: what a dependency waits for (stores, fences, polls) would queue
  /// behind it in the memory system.
  __device__ bool make_room() {
    if (under_way_ == world_.page_window && !land_one()) return false;
    if (filled_ < world_.page_count) return true;
    const std::uint64_t begin = pen_.now();
    const bool free = wait_returned();
    pen_.write(TraceKind::page, begin, 0, pass_);
    return free;
  }

  /// False if the run has ended before all passes, or the runtime was aborted. All lanes get the same answer.
  __device__ bool wait_returned() {
    std::uint64_t& barrier = roles_.returned[fill_.slot()];
    const std::uint32_t parity = fill_.parity() ^ 1;
    const WaitContext patience = Wires<P>{world_}.wait_for_phase(run_.worker);
    bool stop = false;
    const bool free = spin_until<P>(patience, WaitReason::page, &barrier, parity, [&](std::uint64_t&) {
      if (ptx::mbarrier_test(barrier, parity)) return true;
      stop = P::block(roles_.stop_loading).load(Order::relaxed) != 0;
      return stop;
    });
    return __all_sync(0xffffffffu, free && !stop);
  }

  __device__ bool land_one() {
    const std::uint64_t begin = pen_.now();
    const bool landed = wait_phase(roles_.landed[land_.slot()], land_.parity(), WaitReason::page);
    pen_.write(TraceKind::landing, begin, 0, pass_);
    land_.advance();
    --under_way_;
    return __all_sync(0xffffffffu, landed);
  }

  __device__ void copy(const unsigned char* from, std::uint32_t bytes) {
    unsigned char* to = page_memory() + std::size_t{fill_.slot()} * kPageBytes;
    std::uint64_t& barrier = roles_.landed[fill_.slot()];
    if (bulk_) {
      if (lane() == 0) ptx::bulk_copy(to, from, bytes, barrier, policy_);
    } else {
      for (std::uint32_t at = lane() * 16; at < bytes; at += 32 * 16) ptx::copy16(to + at, from + at);
      ptx::arrive_when_copied(barrier);
    }
    fill_.advance();
    if (filled_ < world_.page_count) ++filled_;
    ++under_way_;
  }

  RolesShared& roles_;
  const CompiledRun& run_;
  const World& world_;
  RingPlace fill_, land_;
  const bool bulk_;
  const std::uint64_t policy_;
  std::uint32_t under_way_ = 0;  // pages asked for and not seen to land
  std::uint32_t filled_ = 0;     // pages used at least once
  std::uint32_t pass_ = 0;
  TracePen<P> pen_;
};

}  // namespace flywheel
