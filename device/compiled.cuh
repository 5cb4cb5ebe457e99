// A GPU worker's part in a compiled run: the control, compute and store roles. The load role is in load.cuh.
#pragma once

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

/// The control role: one thread. Keeps instructions coming, waits for predecessors, says go.
class ControlRole {
  using P = ThreadPlatform;

 public:
  __device__ ControlRole(RolesShared& roles, const World& world)
      : roles_(roles), run_(roles.run), world_(world),
        pen_(run_.traced ? world.trace : TraceBuffers{}, run_.worker, TraceRole::control) {}

  /// `slow(elapsed_ns, local task)` is called while a task takes long.
  template <class Slow>
  __device__ StreamEnd operator()(Slow&& slow) {
    for (std::uint32_t n = 0; n + 1 < kRoleSlots; ++n) fetch(n);
    // Every task is before some sink, so no gate opens before this worker's last task has settled.
    const auto idle_at_gate = [&] { return number_ && !wait_settled(slow); };
    const StreamEnd end = follow_stream<P>(run_, pen_, idle_at_gate, [&](std::uint32_t, std::uint32_t pass) {
      return step(pass, slow);
    });
    ptx::wait_copies<0>();
    if (!end.aborted) command(roles_.slots[number_ % kRoleSlots], RoleCommand::leave);
    if (!end.aborted && number_) wait_settled(slow);
    pen_.close();
    return end;
  }

 private:
  static constexpr std::uint32_t kBusyNs = 100;  // between looks while the worker's last task goes on

  /// Instruction `n` of the run, into its slot. Past the end of the last pass it brings one that is not used.
  __device__ void fetch(std::uint64_t n) {
    if (run_.stream.count) {
      const auto* from = reinterpret_cast<const unsigned char*>(run_.stream.instructions + next_fetch_);
      auto* to = reinterpret_cast<unsigned char*>(&roles_.slots[n % kRoleSlots].instruction);
#pragma unroll
      for (std::uint32_t at = 0; at < sizeof(Instruction); at += 16) ptx::copy16(to + at, from + at);
      if (++next_fetch_ == run_.stream.count) next_fetch_ = 0;
    }
    ptx::commit_copies();
  }

  template <class Slow>
  __device__ bool step(std::uint32_t pass, Slow&& slow) {
    ptx::wait_copies<kRoleSlots - 2>();
    RoleSlot& slot = roles_.slots[number_ % kRoleSlots];
    const Instruction& instruction = slot.instruction;
    prepare(slot, pass);
    began_ = pen_.now();
    if (!(instruction.flags & kEarly ? begin_early(slot, pass, slow) : begin(slot, pass, slow))) return false;
    if (number_ && !wait_settled(slow)) return false;  // that slot gets the next instruction but two
    ++number_;
    fetch(number_ + kRoleSlots - 2);
    return true;
  }

  /// Until all tasks before it are done.
  template <class Slow>
  __device__ bool begin(RoleSlot& slot, std::uint32_t pass, Slow&& slow) {
    const Instruction& instruction = slot.instruction;
    // What this task needs of the one before it is stored, and whether that failed is known, once that has settled. Until
    // then nobody looks at counters: all workers' looks go to one place of the L2 cache, and operands pass there, too.
    if (instruction.flags & kAfterPrevious && !wait_settled(slow)) return false;
    const auto idle = [&] {
      watch(slow);
      const bool busy = number_ && !settled(number_ - 1);
      if (busy) __nanosleep(kBusyNs);
      return busy;
    };
    if (!wait_all_before(slot, pass, idle)) return false;
    slot.called_off = failed_;
    const std::uint64_t end = pen_.now();
    const bool task = !(instruction.flags & kOnlyWaits);
    command(slot, failed_ ? RoleCommand::skip : task ? RoleCommand::run : RoleCommand::nothing);
    ptx::mbarrier_arrive(roles_.coming[number_ % kRoleSlots]);
    ptx::mbarrier_arrive(roles_.before[number_ % kRoleSlots]);
    pen_.write_until(end, TraceKind::wait, began_, instruction.record.header.local, pass);  // while the others go on
    return true;
  }

  /// The parts of an early task are told in three steps, and settle after the last.
  template <class Slow>
  __device__ bool begin_early(RoleSlot& slot, std::uint32_t pass, Slow&& slow) {
    const Instruction& instruction = slot.instruction;
    command(slot, failed_ ? RoleCommand::skip : RoleCommand::run);
    bool busy = number_ != 0;
    if (instruction.flags & kAfterPrevious) {
      if (!wait_stored(slow)) return false;
      busy = false;
    }
    const Before sent = wait_sent<P>(run_, instruction, pass, [&] {
      watch(slow);
      if (busy) __nanosleep(kBusyNs), busy = !stored(number_ - 1);
    });
    if (sent == Before::aborted) return false;
    slot.called_off = failed_ |= sent == Before::failed;
    ptx::mbarrier_arrive(roles_.coming[number_ % kRoleSlots]);  // pairs with detail::await_sent()
    pen_.write(TraceKind::wait, began_, instruction.record.header.local, pass);
    const auto idle = [&] {
      watch(slow);
      return true;
    };
    if (!wait_all_before(slot, pass, idle)) return false;
    ptx::mbarrier_arrive(roles_.before[number_ % kRoleSlots]);  // pairs with detail::await_before() and store_role()
    return true;
  }

  template <class Idle>
  __device__ bool wait_all_before(RoleSlot& slot, std::uint32_t pass, Idle&& idle) {
    const Before before = wait_before<P>(run_, slot.instruction, pass, idle);
    slot.before_failed = failed_ |= before == Before::failed;
    return before != Before::aborted;
  }

  __device__ void prepare(RoleSlot& slot, std::uint32_t pass) const {
    slot.context = {run_.world, &slot.instruction.record.header, run_.state,
                    {0, static_cast<std::uint16_t>(run_.slot), false}, run_.worker, {0, 0, 0, pass}, stamp_of(run_, pass)};
  }

  __device__ void command(RoleSlot& slot, RoleCommand what) {
    slot.command = what;
    ptx::mbarrier_arrive(roles_.ready[number_ % kRoleSlots]);  // pairs with wait_command()
    // Release: pairs with the acquire in LoadRole::is_announced(); what this thread acquired for the task goes with it.
    P::block(roles_.announced).store(static_cast<std::uint32_t>(number_ + 1), Order::release);
  }

  __device__ bool settled(std::uint64_t n) const {
    return ptx::mbarrier_poll(roles_.settled[n % kRoleSlots], n / kRoleSlots & 1);
  }

  __device__ bool stored(std::uint64_t n) const {
    return ptx::mbarrier_poll(roles_.stored[n % kRoleSlots], n / kRoleSlots & 1);
  }

  /// Until the task before this one has settled.
  template <class Slow>
  __device__ bool wait_settled(Slow&& slow) {
    if (!wait_last(roles_.settled, slow)) return false;
    failed_ |= roles_.slots[(number_ - 1) % kRoleSlots].failed;
    return true;
  }
  /// Until it has stored what it has to store.
  template <class Slow>
  __device__ bool wait_stored(Slow&& slow) {
    if (!wait_last(roles_.stored, slow)) return false;
    failed_ |= roles_.slots[(number_ - 1) % kRoleSlots].stored_failed;
    return true;
  }
  template <class Slow>
  __device__ bool wait_last(std::uint64_t (&barriers)[kRoleSlots], Slow&& slow) {
    const std::uint64_t n = number_ - 1;
    for (std::uint32_t spins = 1; !ptx::mbarrier_test(barriers[n % kRoleSlots], n / kRoleSlots & 1); ++spins) {
      watch(slow);
      if (spins % 1024 == 0 && P::device(world_.control->board.abort).load(Order::relaxed)) return false;
    }
    return true;
  }

  /// While this thread waits for something: whether this worker's own last task takes long.
  template <class Slow>
  __device__ void watch(Slow&& slow) {
    if (++looks_ % 1024 || !number_ || settled(number_ - 1)) return;
    const std::uint64_t now = P::now_ns();
    if (watched_ != number_) {
      watched_ = number_;
      watch_begin_ = watch_told_ = now;
    }
    if (now - watch_told_ < kSlowTaskNs) return;
    slow(now - watch_begin_, roles_.slots[(number_ - 1) % kRoleSlots].instruction.record.header.local);
    watch_told_ = now;
  }

  RolesShared& roles_;
  const CompiledRun& run_;
  const World& world_;
  std::uint64_t number_ = 0;      // of the instruction in hand, over all passes
  std::uint32_t next_fetch_ = 0;  // its place in the stream
  bool failed_ = false;  // a task of this pass, on this worker or before one of its tasks
  std::uint64_t began_ = 0;  // to see to this instruction
  std::uint32_t looks_ = 0;
  std::uint64_t watched_ = 0;       // the task before this number is the one that takes long
  std::uint64_t watch_begin_ = 0, watch_told_ = 0;
  TracePen<P> pen_;
};

/// What to do with instruction `n`. By then the one before the last has settled, see ControlRole::step().
__device__ inline RoleCommand wait_command(RolesShared& roles, std::uint32_t n) {
  const bool ready = wait_phase(roles.ready[n % kRoleSlots], n / kRoleSlots & 1, WaitReason::role);
  return ready ? roles.slots[n % kRoleSlots].command : RoleCommand::leave;
}
__device__ inline RoleCommand wait_command_in_compute(RolesShared& roles, std::uint32_t n) {
  const bool ready = wait_phase_in_compute(roles.ready[n % kRoleSlots], n / kRoleSlots & 1);
  return ready ? roles.slots[n % kRoleSlots].command : RoleCommand::leave;
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
    GpuBlock<List> block(slot.context, block_shared, scratch_memory(world), turn, now.number);
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
  bool failed = false;
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
      if (!wait_phase(roles.before[n % kRoleSlots], n / kRoleSlots & 1, WaitReason::predecessors)) break;
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
