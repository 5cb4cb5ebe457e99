// A GPU worker's part in a compiled run: the compute and store roles. The others are in control.cuh and load.cuh.
#pragma once

#include "device/control.cuh"
#include "device/handoff.cuh"
#include "device/load.cuh"
#include "device/page.cuh"
#include "runtime/task_list.hpp"

namespace flywheel {

/// The block of a store part: one warp.
template <class List>
class WarpBlock : public BlockCore<ThreadPlatform, List> {
 public:
  __device__ WarpBlock(TaskContext& context, Taker& taker) : BlockCore<ThreadPlatform, List>(context), taker_(taker) {}
  static constexpr bool kOnGpu = true;
  __device__ static int rank() { return static_cast<int>(threadIdx.x % 32); }
  __device__ static int lane() { return rank(); }
  __host__ __device__ static constexpr int size() { return 32; }
  __device__ static bool leader() { return rank() == 0; }
  __device__ static void sync() { __syncwarp(); }

  template <class F>
  __device__ void for_each(int n, F&& f) const {
    for (int i = rank(); i < n; i += size()) f(i);
  }
  // Early tasks, see operands.hpp. All lanes.
  __device__ bool await() const { return detail::await_before(taker_.number()); }
  __device__ bool await_sent() const { return detail::await_sent(taker_.number()); }
  __device__ void sent() const {
    __syncwarp();  // all lanes have put their words
    if (leader()) taker_.tell_sent();
  }
  template <class Ready>
  __device__ bool spin(Ready&& ready) const {
    return detail::spin(*this->context_->world, ready);
  }
  __device__ static StampedPair look_at_two(const Stamped* at) { return ptx::load_two(at); }

  template <class T>
  __device__ static T shuffle_xor(T value, int mask) { return detail::shuffle_xor(value, static_cast<std::uint32_t>(mask)); }
  template <class T, class Op>
  __device__ T reduce(T value, Op&& op) const {
#pragma unroll
    for (int distance = 16; distance; distance /= 2) value = op(value, shuffle_xor(value, distance));
    return value;
  }

  /// What the compute part handed over next; waits for it. Null when there is no more.
  template <class T>
  __device__ const T* take() {
    return static_cast<const T*>(taker_.take());
  }
  /// The whole warp has read what take() gave.
  __device__ void give_back() { taker_.give_back(); }

 private:
  Taker& taker_;
};

/// What to do with instruction `n`. By then the one before the last has settled, see ControlRole::step(). No lane decides
/// by itself to leave, for the others may have seen the command already and would go on without it: once the runtime is
/// aborted, the control role says so to all.
__device__ inline RoleCommand wait_command(RolesShared& roles, std::uint32_t n) {
  std::uint64_t& ready = roles.ready[n % kRoleSlots];
  const std::uint32_t parity = n / kRoleSlots & 1;
  if (!wait_phase(ready, parity, WaitReason::role))
    for (std::uint32_t spins = 0; !ptx::mbarrier_test(ready, parity); ++spins) ThreadPlatform::pause(spins);
  return roles.slots[n % kRoleSlots].command;
}
__device__ inline RoleCommand wait_command_in_compute(RolesShared& roles, std::uint32_t n) {
  while (!ptx::mbarrier_test(roles.ready[n % kRoleSlots], n / kRoleSlots & 1)) {}  // the control role has the time limits
  return roles.slots[n % kRoleSlots].command;
}

/// A compute warp is through with its task.
__device__ __forceinline__ void end_task(RolesShared& roles, const PageOperands& operands, std::uint32_t turn) {
  const std::uint32_t warp = threadIdx.x / 32 - kFirstComputeWarp;
  if (threadIdx.x % 32 == 0) {
    WarpPlace& place = roles.places[warp];
    RoleSlot& slot = roles.slots[place.number % kRoleSlots];
    const std::uint32_t handoffs = detail::end_handoffs();
    if (warp == 0) slot.handoffs = handoffs;
    if (warp == 0 && roles.run.traced && slot.command == RoleCommand::run) [[unlikely]]
      roles.pen.write(TraceKind::body, roles.body_began, slot.instruction.record.header.local,
                      slot.context.asked.iteration, slot.instruction.operand_bytes);
    ptx::mbarrier_arrive(roles.computed[place.number % kRoleSlots]);  // pairs with Taker::look()
    place = {place.number + 1, operands.slot(), operands.parity(), turn};
  }
  __syncwarp();  // the warp's place, for all lanes
}

/// One warp's next instruction. False after the last. A call for each: what the bodies of all types could share from
/// instruction to instruction would not fit the registers, and come back from L2.
template <class List>
[[gnu::noinline]] __device__ bool compute_one(RolesShared& roles, const World& world, BlockShared& block_shared) {
  const bool first = threadIdx.x == kFirstComputeWarp * 32;
  WarpPlace& place = roles.places[threadIdx.x / 32 - kFirstComputeWarp];
  const WarpPlace now = place;
  RoleSlot& slot = roles.slots[now.number % kRoleSlots];
  const RoleCommand command = wait_command_in_compute(roles, now.number);
  if (command == RoleCommand::leave) return false;
  if (first && roles.run.traced) [[unlikely]] roles.body_began = roles.pen.now();
  PageOperands operands(world.page_count, now.page, now.parity);
  operands.begin(slot.instruction);
  std::uint32_t turn = now.turn;
  if (command == RoleCommand::run) {
    GpuBlock<List> block(slot.context, block_shared, scratch_memory(world), turn, now.number % (2 * kRoleSlots));
    List::compute(slot.instruction.record, block, operands);
    turn = block.turn();
  }
  operands.end();
  __syncwarp();  // all lanes are through with the task
  end_task(roles, operands, turn);
  return true;
}

/// The compute role: all compute warps. Like the others a function of its own, so that the dynamic loops keep their
/// registers. A warp may be one task ahead of another, unless the task synchronises them.
template <class List>
[[gnu::noinline]] __device__ void compute_role(RolesShared& roles, const World& world, BlockShared& block_shared) {
  const bool first = threadIdx.x == kFirstComputeWarp * 32;
  if (first) roles.pen = {roles.run.traced ? world.trace : TraceBuffers{}, roles.run.worker, TraceRole::compute};
  while (compute_one<List>(roles, world, block_shared)) {}
  if (first) roles.pen.close();
}

/// The store role: one warp. Runs store parts while the compute warps go on, and tells the successors.
template <class List>
__device__ void store_role(RolesShared& roles, const World& world) {
  using P = ThreadPlatform;
  const CompiledRun& run = roles.run;
  const bool leader = threadIdx.x % 32 == 0;
  Taker taker(roles);
  bool failed = false, go_on = true;
  TracePen<P> pen(run.traced && leader ? world.trace : TraceBuffers{}, run.worker, TraceRole::store);
  for (std::uint32_t n = 0;; ++n) {
    RoleSlot& slot = roles.slots[n % kRoleSlots];
    const RoleCommand command = wait_command(roles, n);
    if (command == RoleCommand::leave) break;
    taker.begin(n);
    if (command == RoleCommand::run) {
      WarpBlock<List> block(slot.context, taker);
      List::template store<PageOperands>(slot.instruction.record, block);
    }
    if (!taker.end()) break;
    const std::uint64_t begin = pen.now();
    if (leader) {
      const std::uint32_t pass = slot.context.asked.iteration;
      slot.stored_failed = failed |= command == RoleCommand::skip || slot.context.asked.code != 0;
      ptx::mbarrier_arrive(roles.stored[n % kRoleSlots]);  // pairs with ControlRole::wait_stored()
      // What others may rely on, once this task has settled, includes all that was before it.
      // (Of tasks that are not early nobody else waits for `coming`, and each phase should have somebody who does.)
      for (auto* begun : {roles.coming, roles.before})
        go_on = go_on && wait_phase(begun[n % kRoleSlots], n / kRoleSlots & 1, WaitReason::predecessors);
      if (!go_on) continue;  // aborted: with the other lanes to the next command, which comes
      failed |= slot.before_failed;
      if (!(slot.instruction.flags & kOnlyWaits)) settle<P>(run, slot.instruction, pass, slot.context.asked, failed);
      slot.failed = failed;
      const std::uint64_t end = pen.now();
      const std::uint32_t local = slot.instruction.record.header.local;
      ptx::mbarrier_arrive(roles.settled[n % kRoleSlots]);  // pairs with ControlRole::settled()
      if (command == RoleCommand::run) pen.write_until(end, TraceKind::store, begin, local, pass);
    }
  }
  pen.close();
}

/// The load and store warps between runs.
template <class List>
[[gnu::noinline]] __device__ void serve_compiled_runs(const World& world) {
  RolesShared& roles = roles_shared();
  for (std::uint32_t runs = 0;; ++runs) {
    // No time limit: to have no compiled run is no fault. Pairs with control_compiled_run().
    for (std::uint32_t spins = 0; !ptx::mbarrier_test(roles.begin, runs & 1); ++spins) ThreadPlatform::pause(spins);
    if (roles.kernel_ends) return;
    if (threadIdx.x / 32 == kLoadWarp) LoadRole<List>(roles, world)();
    else store_role<List>(roles, world);
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(roles.left);  // pairs with the control thread's wait
  }
}

}  // namespace flywheel
