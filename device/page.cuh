// Pages: how a worker's operand stream gets into shared memory, and how compute parts take it from there.
#pragma once

#include "device/roles.cuh"

namespace flywheel {

/// One compute warp's view of its task's operands. All compute warps go through the same pages.
class PageOperands {
 public:
  __device__ PageOperands(RolesShared& roles, unsigned char* pages, const World& world)
      : roles_(roles), pages_(pages), world_(world), take_(world.page_count), give_(world.page_count) {}

  /// The next page: kPageBytes of the task's operands, or what is left of them. Waits until it has landed. Null after
  /// the task's last page.
  __device__ const unsigned char* next() {
    if (left_ == 0) return nullptr;
    --left_;
    ++held_;
    const std::uint32_t slot = take_.slot();
    // Pairs with the load role's copy: complete_tx (or the copying threads' arrivals) releases the bytes.
    const bool landed = wait_phase(roles_.landed[slot], take_.parity(), world_, roles_.run.worker, WaitReason::page);
    take_.advance();
    return landed ? pages_ + std::size_t{slot} * kPageBytes : nullptr;
  }

  /// This warp has read the page that next() gave first, of those it holds. Pairs with the load role's wait.
  __device__ void give_back() {
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(roles_.returned[give_.slot()]);
    give_.advance();
    --held_;
  }

  // Library use: around each task. Whatever a body left is given back, so no page is ever lost.
  __device__ void begin(std::uint32_t operand_bytes) { left_ = pages_of(operand_bytes); }
  __device__ void end() {
    while (held_) give_back();
    while (left_ && next()) give_back();
  }

 private:
  RolesShared& roles_;
  unsigned char* pages_;
  const World& world_;
  RingPlace take_, give_;
  std::uint32_t left_ = 0;  // pages of the task not taken yet
  std::uint32_t held_ = 0;  // taken and not given back
};

/// The load role: one warp fetches the worker's operand stream, pass after pass, as far ahead as pages allow. It waits
/// for nothing but pages: what it fetches depends on no task.
class LoadRole {
  using P = ThreadPlatform;

 public:
  __device__ LoadRole(RolesShared& roles, unsigned char* pages, const World& world)
      : roles_(roles), run_(roles.run), pages_(pages), world_(world), fill_(world.page_count),
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
    const bool landed = wait_phase(roles_.landed[land_.slot()], land_.parity(), world_, run_.worker, WaitReason::page);
    pen_.write(TraceKind::landing, begin, 0, pass_);
    land_.advance();
    --under_way_;
    return __all_sync(0xffffffffu, landed);
  }

  __device__ void copy(const unsigned char* from, std::uint32_t bytes) {
    unsigned char* to = pages_ + std::size_t{fill_.slot()} * kPageBytes;
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
  unsigned char* pages_;
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
