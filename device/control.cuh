// The control role of a compiled run: keeps instructions coming and says which may begin.
#pragma once

#include "roles.cuh"
#include "../runtime/compiled/compiled.hpp"

namespace flywheel {

/// The control thread, now and then while it waits: whether the task of instruction `number` - 1, the worker's own last, takes
/// long. Out of line: eight places of the role come here. (With settle() out of line, too, a token of Llama-3.2-1B took 1% less on
/// an H200, but ptxas then spills a convergence barrier in the loop of all workers, and a submission took 3% more.)
__device__ [[gnu::noinline]] inline void watch_last_task(std::uint64_t number) {
  using P = ThreadPlatform;
  RolesShared& roles = roles_shared();
  TaskWatch& watch = roles.watch;
  const std::uint64_t now = P::now_ns();
  if (watch.number != number) watch = {number, now, now};
  if (now - watch.told < kSlowTaskNs) return;
  const CompiledRun& run = roles.run;
  const std::uint32_t task = roles.slots[(number - 1) % kRoleSlots].instruction.record.header.local;
  const Item item{task, static_cast<std::uint16_t>(run.slot), false};
  beat<P>(run.dev->heartbeats[run.worker], WorkerState::slow, item.pack(), now - watch.begin);
  watch.told = now;
}

/// The control role: one thread. Keeps instructions coming, waits for predecessors, says go. Instructions are numbered over
/// all passes, and it has cursors among them:
///
///   signaled_    all before this one have settled: what they stored is told to those who wait for it
///   number_     the one in hand: it waits for the tasks before it
///   commanded_  the first without a command; one further than the next, if that is early
///
///   signaled_ <= number_ <= signaled_ + 1        the one before is at most still storing
///   number_ <= commanded_ <= number_ + 2       at most number_ + 1 where a step begins; the command to leave comes on top
///
/// Slots hold number_ - 1 to number_ + 2: fetched two ahead, into the slot of one that has settled.
class ControlRole {
  using P = ThreadPlatform;

 public:
  __device__ ControlRole(RolesShared& roles, const DeviceState& dev)
      : roles_(roles), run_(roles.run), dev_(dev),
        writer_(run_.traced ? dev.trace : TraceBuffers{}, run_.worker, TraceRole::control) {}

  __device__ StreamEnd operator()() {
    for (std::uint32_t n = 0; n + 1 < kRoleSlots; ++n) fetch(n);
    // Every task is before some sink, so no gate opens before this worker's last task has settled.
    const auto idle_at_gate = [&] { return number_ && !signal_last(); };
    const StreamEnd end = follow_stream<P>(run_, writer_, idle_at_gate, [&](std::uint32_t i, std::uint32_t pass) {
      return step(pass, i + 1 < run_.stream.count);
    });
    ptx::wait_copies<0>();
    if (end.aborted) call_off();
    // To the first instruction without a command, also when the runtime was aborted: its slot is free, for the last that
    // used it has settled (see step()), and nobody else tells the roles.
    command(RoleCommand::leave);
    if (!end.aborted && number_) signal_last();
    writer_.close();
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

  /// `goes_on`: there is a next one in this pass.
  __device__ bool step(std::uint32_t pass, bool goes_on) {
    ptx::wait_copies<kRoleSlots - 2>();
    RoleSlot& slot = roles_.slots[number_ % kRoleSlots];
    const Instruction& instruction = slot.instruction;
    roles_.stepping = static_cast<std::uint32_t>(number_);
    if (commanded_ == number_) prepare(slot, pass);
    began_ = writer_.now();
    if (!(instruction.flags & kEarly ? begin_early(slot, pass, goes_on) : begin(slot, pass))) return false;
    if (number_ && !signal_last()) return false;  // that slot gets the next instruction but two
    failed_before_last_ = failed_;
    ++number_;
    fetch(number_ + kRoleSlots - 2);
    return true;
  }

  /// Until all tasks before it are done.
  __device__ bool begin(RoleSlot& slot, std::uint32_t pass) {
    const Instruction& instruction = slot.instruction;
    // What this task needs of the one before it is stored, and whether that failed is known, once that has settled. Until
    // then nobody looks at counters: all workers' looks go to one place of the L2 cache, and operands pass there, too.
    if (instruction.flags & kAfterPrevious && !signal_last()) return false;
    const auto idle = [&] {
      watch();
      const bool busy = !signal_if_stored();
      if (busy) __nanosleep(kBusyNs);
      return busy;
    };
    if (!wait_all_before(slot, pass, idle)) return false;
    slot.called_off = failed_;
    const std::uint64_t end = writer_.now();
    const bool task = !(instruction.flags & kOnlyWaits);
    command(failed_ ? RoleCommand::skip : task ? RoleCommand::run : RoleCommand::nothing);
    ptx::mbarrier_arrive(roles_.coming[number_ % kRoleSlots]);  // pairs with detail::await_sent()
    ptx::mbarrier_arrive(roles_.before[number_ % kRoleSlots]);  // pairs with detail::await_before()
    writer_.write_until(end, TraceKind::wait, began_, instruction.record.header.local, pass);  // while the others go on
    return true;
  }

  /// The parts of an early task are told in three steps, and settle after the last.
  __device__ bool begin_early(RoleSlot& slot, std::uint32_t pass, bool goes_on) {
    const Instruction& instruction = slot.instruction;
    if (commanded_ == number_) command(failed_ ? RoleCommand::skip : RoleCommand::run);
    if (goes_on) look_ahead(pass);
    if (instruction.flags & kAfterPrevious && !signal_last()) return false;
    const Before sent = wait_sent<P>(run_, instruction, pass, [&] {
      watch();
      if (!signal_if_stored()) __nanosleep(kBusyNs);
    });
    if (sent == Before::aborted) return false;
    slot.called_off = failed_ |= sent == Before::failed;
    ptx::mbarrier_arrive(roles_.coming[number_ % kRoleSlots]);  // pairs with detail::await_sent()
    writer_.write(TraceKind::wait, began_, instruction.record.header.local, pass);
    const auto idle = [&] {
      watch();
      signal_if_stored();
      return true;
    };
    if (!wait_all_before(slot, pass, idle)) return false;
    ptx::mbarrier_arrive(roles_.before[number_ % kRoleSlots]);  // pairs with detail::await_before()
    return true;
  }

  /// If the next instruction is early, too, its parts need not wait until this one has seen the end of all that was before
  /// it: they go on to it at once, take their first operands, and so make room for the load role.
  __device__ void look_ahead(std::uint32_t pass) {
    ptx::wait_copies<kRoleSlots - 3>();
    RoleSlot& next = roles_.slots[commanded_ % kRoleSlots];
    if (!(next.instruction.flags & kEarly)) return;
    prepare(next, pass);
    command(failed_ ? RoleCommand::skip : RoleCommand::run);
  }

  template <class Idle>
  __device__ bool wait_all_before(RoleSlot& slot, std::uint32_t pass, Idle&& idle) {
    const Before before = wait_before<P>(run_, slot.instruction, pass, idle);
    slot.before_failed = failed_ |= before == Before::failed;
    return before != Before::aborted;
  }

  __device__ void prepare(RoleSlot& slot, std::uint32_t pass) const {
    slot.context = {run_.dev, &slot.instruction.record.header, run_.state,
                    {0, static_cast<std::uint16_t>(run_.slot), false}, run_.worker, {0, 0, 0, pass}, stamp_of(run_, pass)};
  }

  /// To the first instruction that has none.
  __device__ void command(RoleCommand what) {
    roles_.slots[commanded_ % kRoleSlots].command = what;
    ptx::mbarrier_arrive(roles_.ready[commanded_ % kRoleSlots]);  // pairs with wait_command()
    ++commanded_;
    // Release: pairs with the acquire in KeptPages::are_announced(); what this thread acquired for the task goes with it.
    P::block(roles_.announced).store(static_cast<std::uint32_t>(commanded_), Order::release);
  }

  /// The runtime was aborted: parts that wait for the tasks before theirs are told that those failed. By this thread, so
  /// that all lanes of a warp hear the same; of what some may have heard already nothing changes.
  __device__ void call_off() {
    for (std::uint64_t n = number_; n < commanded_; ++n) {
      const std::uint32_t s = n % kRoleSlots, parity = n / kRoleSlots & 1;
      const auto tell = [&](std::uint64_t& barrier, bool& failed) {
        if (ptx::mbarrier_poll(barrier, parity)) return;  // told before, by this thread
        failed = true;
        ptx::mbarrier_arrive(barrier);  // pairs with detail::await_sent() and await_before()
      };
      tell(roles_.coming[s], roles_.slots[s].called_off);
      tell(roles_.before[s], roles_.slots[s].before_failed);
    }
  }

  /// Acquire: pairs with the arrivals on `stored` in the store role: all that the task wrote, for settle() to release.
  __device__ bool stored(std::uint64_t n) const {
    return ptx::mbarrier_poll(roles_.stored[n % kRoleSlots], n / kRoleSlots & 1);
  }

  // The task before this one settles once it has stored what it has to store: all that were before it have by now, see step().
  // By this thread, for the store warp has the next task's results to see to. (Llama-3.2-1B on an H200, where the store warp
  // waited for the end of all before a task and for its release: 0.569 ms a token for 0.592, 8 texts 0.700 for 0.716.)

  /// Waits for that. False if the runtime was aborted.
  __device__ bool signal_last() {
    if (signaled_ == number_) return true;
    if (!wait_last(roles_.stored)) return false;
    signal_stored();
    return true;
  }
  /// Without waiting. True if there is nothing left to settle.
  __device__ bool signal_if_stored() {
    if (signaled_ != number_ && stored(number_ - 1)) signal_stored();
    return signaled_ == number_;
  }
  __device__ void signal_stored() {
    const RoleSlot& last = roles_.slots[(number_ - 1) % kRoleSlots];
    failed_ |= last.stored_failed;
    // What others may rely on, once this task has settled, includes all that was before it.
    const bool failed = failed_before_last_ || last.stored_failed;
    if (!(last.instruction.flags & kOnlyWaits))
      signal_done<P>(run_, last.instruction, last.context.outcome.iteration, last.context.outcome, failed);
    signaled_ = number_;
  }
  /// Acquire: as in stored(). The look at `abort` is relaxed: who sees it leaves.
  __device__ bool wait_last(std::uint64_t (&barriers)[kRoleSlots]) {
    const std::uint64_t n = number_ - 1;
    for (std::uint32_t spins = 1; !ptx::mbarrier_test(barriers[n % kRoleSlots], n / kRoleSlots & 1); ++spins) {
      watch();
      if (spins % 1024 == 0 && P::device(dev_.control->broadcast.abort).load(Order::relaxed)) return false;
    }
    return true;
  }

  /// While this thread waits for something.
  __device__ void watch() {
    if (++polls_ % 1024 == 0 && signaled_ != number_) watch_last_task(number_);
  }

  RolesShared& roles_;
  const CompiledRun& run_;
  const DeviceState& dev_;
  std::uint64_t number_ = 0;      // a cursor, as commanded_ and signaled_ are: see above
  std::uint64_t commanded_ = 0;
  std::uint32_t next_fetch_ = 0;  // place in the stream of what fetch() brings next
  std::uint64_t signaled_ = 0;
  bool failed_ = false;  // a task of this pass, on this worker or before one of its tasks
  bool failed_before_last_ = false;  // the same when the task before this one was begun
  std::uint64_t began_ = 0;  // to see to this instruction
  std::uint32_t polls_ = 0;
  TraceWriter<P> writer_;
};

}  // namespace flywheel
