// The compute and store roles of a compiled run, and serve_compiled_run(), in which the load and store warps play their roles
// once. executor_shared.cuh includes it. The control and load roles are in control.cuh and load.cuh.
#pragma once

#include "bare.cuh"
#include "checked.cuh"
#include "control.cuh"
#include "load.cuh"
#include "parts.cuh"
#include "warps.cuh"

namespace flywheel::detail {

/// The store warp: waits for the command for instruction `n`. By then instruction `n` - 2 has signaled its completion, see
/// ControlRole::step(). If the runtime is aborted the lanes still wait: the control role, whose own waits have a limit,
/// commands all of them to leave. A lane that left by itself would leave the others behind, which may have seen another
/// command already.
__device__ inline RoleCommand wait_command(RolesShared& roles, std::uint32_t n) {
  std::uint64_t& ready = roles.ready[n % kRoleSlots];
  const std::uint32_t parity = n / kRoleSlots & 1;
  // Acquire, block scope: pairs with ControlRole::command(); covers the slot's instruction, context and command.
  if (!wait_phase(ready, parity, WaitReason::role))
    for (std::uint32_t spins = 0; !ptx::mbarrier_test(ready, parity); ++spins) ThreadPlatform::pause(spins);
  return roles.slots[n % kRoleSlots].command;
}
/// A compute warp: the same. It has no time limit, because the control role has one.
__device__ inline RoleCommand wait_command_in_compute(RolesShared& roles, std::uint32_t n) {
  // Acquire, block scope: pairs with ControlRole::command(), as in wait_command().
  while (!ptx::mbarrier_test(roles.ready[n % kRoleSlots], n / kRoleSlots & 1)) {}
  return roles.slots[n % kRoleSlots].command;
}

/// A compute warp that has ended its task, instruction `number`: signals the store warp and moves the warp's position on.
template <class Operands>
__device__ __forceinline__ void end_task(RolesShared& roles, std::uint32_t number, const Operands& operands,
                                         std::uint32_t turn) {
  const std::uint32_t warp = threadIdx.x / 32 - kFirstComputeWarp;
  if (threadIdx.x % 32 == 0) {
    RoleSlot& slot = roles.slots[number % kRoleSlots];
    const std::uint32_t handoffs = detail::end_handoffs();
    if (warp == 0) slot.handoffs = handoffs;
    if (warp == 0 && roles.run.traced && slot.command == RoleCommand::run) [[unlikely]]
      roles.writer.write(TraceKind::body, roles.body_began, slot.instruction.record.header.local,
                         slot.context.outcome.iteration, slot.instruction.operand_bytes);
  }
  // Release, block scope: pairs with HandoffConsumer::computed() and computed_after(); covers `handoffs` and the outcome.
  if (arrives(threadIdx.x % 32)) ptx::mbarrier_arrive(roles.computed[number % kRoleSlots]);
  if (threadIdx.x % 32 == 0) roles.places[warp] = {number + 1, operands.slot(), operands.parity(), turn};
  __syncwarp();  // all lanes see the warp's new position
}

template <class Parts>
[[gnu::noinline]] __device__ bool compute_whole(RolesShared& roles, const DeviceState& dev, BlockShared& block_shared);

template <class Parts>
__device__ bool has_part(const TaskRecord& record) {
  return Parts::List::template has_part<typename Parts::Block, typename Parts::Operands>(record.header.type);
}

/// compute_one(), of an instruction whose task has a compute part or not.
template <class Parts, bool kPart>
__device__ __forceinline__ bool compute_instruction(RolesShared& roles, const DeviceState& dev, BlockShared& block_shared) {
  const bool first = threadIdx.x == kFirstComputeWarp * 32;
  WarpCursor& place = roles.places[threadIdx.x / 32 - kFirstComputeWarp];
  const WarpCursor now = place;
  RoleSlot& slot = roles.slots[now.number % kRoleSlots];
  const RoleCommand command = wait_command_in_compute(roles, now.number);
  if (command == RoleCommand::leave) return false;
  if constexpr (kPart)
    if (command == RoleCommand::run && !has_part<Parts>(slot.instruction.record)) [[unlikely]]
      return compute_whole<Parts>(roles, dev, block_shared);
  if (first && roles.run.traced) [[unlikely]]
    roles.body_began = roles.writer.now();
  typename Parts::Operands operands(dev.page_count, now.page, now.parity);
  operands.begin(slot);
  std::uint32_t turn = now.turn;
  if (command == RoleCommand::run) {
    typename Parts::Block block(slot.context, block_shared, scratch_memory(dev), turn, now.number % (2 * kRoleSlots));
    if constexpr (kPart) Parts::List::compute_part(slot.instruction.record, block, operands);
    else Parts::List::template compute_whole<typename Parts::Operands>(slot.instruction.record, block);
    turn = block.turn();
  }
  operands.end();
  Parts::end_compute(roles, slot);
  const std::uint32_t number = place.number;  // read again: the body has a register more
  __syncwarp();                               // orders the accesses of all lanes before the arrival in end_task()
  end_task(roles, number, operands, turn);
  return true;
}

/// A compute warp: runs its next instruction. False after the last. It is a call for each instruction: what the compiler
/// would share between the bodies of all types, from one instruction to the next, does not fit the registers and would be
/// read from L2.
template <class Parts>
[[gnu::noinline]] __device__ bool compute_one(RolesShared& roles, const DeviceState& dev, BlockShared& block_shared) {
  return compute_instruction<Parts, true>(roles, dev, block_shared);
}
/// The same of one without a compute part, from its begin on: bodies that are called use all registers, so what lived across
/// such a call in compute_one() would be in memory all the time.
template <class Parts>
__device__ bool compute_whole(RolesShared& roles, const DeviceState& dev, BlockShared& block_shared) {
  return compute_instruction<Parts, false>(roles, dev, block_shared);
}

/// The compute role, on all compute warps. It is a function of its own, as the other roles are, so that it takes no
/// registers from the loops of dynamic runs. A warp may be one task ahead of another, unless the task synchronises them.
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

/// The leader of the store warp, once instruction `n` + 2 has its command: tests the barriers `coming` and `before` of
/// instruction `n`, whose phases are complete by then. It does not wait: each phase of an mbarrier should be observed by
/// some thread (compute-sanitizer's synccheck asks for that), and the parts of tasks need not do it.
__device__ inline void await_earlier(RolesShared& roles, std::uint32_t n) {
  // No order needed: this thread reads nothing that the arrivals in ControlRole release here. No limit: both are complete.
  for (auto* known : {roles.coming, roles.before})
    while (!ptx::mbarrier_test(known[n % kRoleSlots], n / kRoleSlots & 1)) {}
}

/// The store role, on one warp. Runs store parts while the compute warps run the next tasks, and signals the control role.
template <class Parts>
__device__ void store_role(RolesShared& roles, const DeviceState& dev) {
  using P = ThreadPlatform;
  const bool leader = threadIdx.x % 32 == 0;
  TraceWriter<P> writer(roles.run.traced && leader ? dev.trace : TraceBuffers{}, roles.run.worker, TraceRole::store);
  HandoffConsumer consumer(roles, writer);
  for (std::uint32_t n = 0;; ++n) {
    RoleSlot& slot = roles.slots[n % kRoleSlots];
    const RoleCommand command = wait_command(roles, n);
    if (leader && n >= 2) await_earlier(roles, n - 2);
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
    // Release, block scope, after the __syncwarp() in end(): pairs with ControlRole::stored() and wait_last(); covers
    // `stored_failed` and all that the task wrote, for the control thread to release at device scope.
    if (arrives(threadIdx.x % 32)) ptx::mbarrier_arrive(roles.stored[n % kRoleSlots]);
    // The leader's writer alone is on.
    if (command == RoleCommand::run) writer.write_until(end, TraceKind::store, consumer.last_taken(end), local, pass);
  }
  writer.close();
}

/// Out of line, so that unchecked runs do not share its registers.
template <class List>
[[gnu::noinline]] __device__ void checked_store_role(RolesShared& roles, const DeviceState& dev) {
  store_role<CheckedParts<List>>(roles, dev);
}

/// The load and store warps: each plays its role in a compiled run.
template <class List>
[[gnu::noinline]] __device__ void serve_compiled_run(const DeviceState& dev) {
  RolesShared& roles = roles_shared();
  if (roles.bare || roles.run.warps) {
    if (threadIdx.x / 32 == kLoadWarp && roles.bare) BareFollower(roles, dev)();
  } else if (threadIdx.x / 32 == kLoadWarp) LoadRole<List>(roles, dev)();
  else if (dev.check_ns) checked_store_role<List>(roles, dev);
  else store_role<PlainParts<List>>(roles, dev);
  // Release after __syncwarp(), block scope: pairs with the test of `left` in control_compiled_run().
  __syncwarp();
  if (arrives(threadIdx.x % 32)) ptx::mbarrier_arrive(roles.left);
}

}  // namespace flywheel::detail
