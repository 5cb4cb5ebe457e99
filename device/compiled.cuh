// A GPU worker's part in a compiled run: the compute and store roles. The others are in control.cuh and load.cuh.
#pragma once

#include "checked.cuh"
#include "control.cuh"
#include "load.cuh"
#include "parts.cuh"

namespace flywheel {

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

/// A compute warp is through with its task, instruction `number`.
template <class Operands>
__device__ __forceinline__ void end_task(RolesShared& roles, std::uint32_t number, const Operands& operands, std::uint32_t turn) {
  const std::uint32_t warp = threadIdx.x / 32 - kFirstComputeWarp;
  if (threadIdx.x % 32 == 0) {
    RoleSlot& slot = roles.slots[number % kRoleSlots];
    const std::uint32_t handoffs = detail::end_handoffs();
    if (warp == 0) slot.handoffs = handoffs;
    if (warp == 0 && roles.run.traced && slot.command == RoleCommand::run) [[unlikely]]
      roles.writer.write(TraceKind::body, roles.body_began, slot.instruction.record.header.local,
                      slot.context.outcome.iteration, slot.instruction.operand_bytes);
  }
  if (arrives(threadIdx.x % 32)) ptx::mbarrier_arrive(roles.computed[number % kRoleSlots]);  // pairs with HandoffConsumer::look()
  if (threadIdx.x % 32 == 0) roles.places[warp] = {number + 1, operands.slot(), operands.parity(), turn};
  __syncwarp();  // the warp's place, for all lanes
}

/// One warp's next instruction. False after the last. A call for each: what the bodies of all types could share from
/// instruction to instruction would not fit the registers, and come back from L2.
template <class Parts>
[[gnu::noinline]] __device__ bool compute_one(RolesShared& roles, const DeviceState& dev, BlockShared& block_shared) {
  const bool first = threadIdx.x == kFirstComputeWarp * 32;
  WarpCursor& place = roles.places[threadIdx.x / 32 - kFirstComputeWarp];
  const WarpCursor now = place;
  RoleSlot& slot = roles.slots[now.number % kRoleSlots];
  const RoleCommand command = wait_command_in_compute(roles, now.number);
  if (command == RoleCommand::leave) return false;
  if (first && roles.run.traced) [[unlikely]] roles.body_began = roles.writer.now();
  typename Parts::Operands operands(dev.page_count, now.page, now.parity);
  operands.begin(slot);
  std::uint32_t turn = now.turn;
  if (command == RoleCommand::run) {
    typename Parts::Block block(slot.context, block_shared, scratch_memory(dev), turn, now.number % (2 * kRoleSlots));
    Parts::List::compute(slot.instruction.record, block, operands);
    turn = block.turn();
  }
  operands.end();
  Parts::end_compute(roles, slot);
  const std::uint32_t number = place.number;  // again: a register less for the body
  __syncwarp();  // all lanes are through with the task
  end_task(roles, number, operands, turn);
  return true;
}

/// The compute role: all compute warps. Like the others a function of its own, so that the dynamic loops keep their
/// registers. A warp may be one task ahead of another, unless the task synchronises them.
template <class List>
[[gnu::noinline]] __device__ void compute_role(RolesShared& roles, const DeviceState& dev, BlockShared& block_shared) {
  const bool first = threadIdx.x == kFirstComputeWarp * 32;
  if (first) roles.writer = {roles.run.traced ? dev.trace : TraceBuffers{}, roles.run.worker, TraceRole::compute};
  if (dev.check_ns) {
    while (compute_one<CheckedParts<List>>(roles, dev, block_shared)) {}
  } else {
    while (compute_one<PlainParts<List>>(roles, dev, block_shared)) {}
  }
  if (first) roles.writer.close();
}

/// One thread, once instruction `n + 2` has its command: what instruction `n` was told by then. Nobody waits here: each phase
/// of a barrier should have somebody who looks at it (compute-sanitizer's synccheck asks for that), and parts do not have to.
__device__ inline void look_back(RolesShared& roles, std::uint32_t n) {
  for (auto* told : {roles.coming, roles.before})
    while (!ptx::mbarrier_test(told[n % kRoleSlots], n / kRoleSlots & 1)) {}
}

/// The store role: one warp. Runs store parts while the compute warps go on, and tells the control role.
template <class Parts>
__device__ void store_role(RolesShared& roles, const DeviceState& dev) {
  using P = ThreadPlatform;
  const bool leader = threadIdx.x % 32 == 0;
  TraceWriter<P> writer(roles.run.traced && leader ? dev.trace : TraceBuffers{}, roles.run.worker, TraceRole::store);
  HandoffConsumer consumer(roles, writer);
  for (std::uint32_t n = 0;; ++n) {
    RoleSlot& slot = roles.slots[n % kRoleSlots];
    const RoleCommand command = wait_command(roles, n);
    if (leader && n >= 2) look_back(roles, n - 2);
    if (command == RoleCommand::leave) break;
    if (leader) roles.storing = n;
    consumer.begin(n);
    if (command == RoleCommand::run) {
      typename Parts::StoreBlock block(slot.context, consumer);
      Parts::List::template store<typename Parts::Operands>(slot.instruction.record, block);
    }
    if (!consumer.end()) break;
    Parts::end_store(roles, n);
    std::uint32_t local = 0, pass = 0;
    if (leader) {
      slot.stored_failed = command == RoleCommand::skip || slot.context.outcome.code != 0;
      local = slot.instruction.record.header.local, pass = slot.context.outcome.iteration;
    }
    const std::uint64_t end = writer.now();
    if (arrives(threadIdx.x % 32)) ptx::mbarrier_arrive(roles.stored[n % kRoleSlots]);  // pairs with ControlRole::signal_last()
    if (command == RoleCommand::run) writer.write_until(end, TraceKind::store, consumer.last_taken(end), local, pass);  // the leader's
  }
  writer.close();
}

/// Out of line: the registers of unchecked runs are their own.
template <class List>
[[gnu::noinline]] __device__ void checked_store_role(RolesShared& roles, const DeviceState& dev) {
  store_role<CheckedParts<List>>(roles, dev);
}

/// The load and store warps between runs.
template <class List>
[[gnu::noinline]] __device__ void serve_compiled_runs(const DeviceState& dev) {
  RolesShared& roles = roles_shared();
  for (std::uint32_t runs = 0;; ++runs) {
    // No time limit: to have no compiled run is no fault. Pairs with control_compiled_run().
    for (std::uint32_t spins = 0; !ptx::mbarrier_test(roles.begin, runs & 1); ++spins) ThreadPlatform::pause(spins);
    if (roles.kernel_ends) return;
    if (threadIdx.x / 32 == kLoadWarp) LoadRole<List>(roles, dev)();
    else if (dev.check_ns) checked_store_role<List>(roles, dev);
    else store_role<PlainParts<List>>(roles, dev);
    __syncwarp();
    if (arrives(threadIdx.x % 32)) ptx::mbarrier_arrive(roles.left);  // pairs with the control thread's wait
  }
}

}  // namespace flywheel
