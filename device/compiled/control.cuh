// The control role of a compiled run, one thread of each worker: fetches instructions, waits for their predecessors on other
// workers, gives the roles their commands and signals completed tasks to other workers. compiled.cuh includes it.
#pragma once

#include "roles.cuh"

namespace flywheel::detail {

/// The control thread, from time to time while it waits: reports the task of instruction `number` - 1, this worker's last,
/// each time it has run for a further kSlowTaskNs. It is out of line because eight places call it.
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

/// The control thread, when instruction `number` - 1 has stored its results: signals its completion. `failed`: it was skipped,
/// or a task of its worker before it failed. Out of line because eight places call it.
__device__ [[gnu::noinline]] inline void signal_stored_task(std::uint64_t number, bool failed) {
  const RolesShared& roles = roles_shared();
  const RoleSlot& slot = roles.slots[(number - 1) % kRoleSlots];
  const Outcome& outcome = slot.context.outcome;
  signal_done<ThreadPlatform>(roles.run, slot.instruction, outcome.iteration, outcome, failed);
}

/// The control role. Instructions are numbered over all passes of the run, and the role has three cursors among them:
///
///   signaled_   first instruction whose completion is not signaled: other workers may rely on all tasks before it
///   number_     the current instruction: the role waits for its predecessors
///   commanded_  first instruction without a command; one further than the next, if the next is early
///
///   signaled_ <= number_ <= signaled_ + 1      the task before the current one is at most still storing
///   number_ <= commanded_ <= number_ + 2       at most number_ + 1 where a step begins; the command to leave comes on top
///
/// Slots hold instructions number_ - 1 to number_ + 2. An instruction is fetched two ahead, into the slot of one whose
/// completion is signaled.
class ControlRole {
  using P = ThreadPlatform;

 public:
  __device__ ControlRole(RolesShared& roles, const DeviceState& dev)
      : roles_(roles),
        run_(roles.run),
        dev_(dev),
        writer_(run_.traced ? dev.trace : TraceBuffers{}, run_.worker, TraceRole::control) {}

  __device__ StreamEnd operator()() {
    for (std::uint32_t n = 0; n + 1 < kRoleSlots; ++n) fetch(n);
    // Every task is before some sink, so no pass ends before the completion of this worker's last task is signaled.
    const auto idle_at_gate = [&] { return number_ && !signal_last(); };
    const StreamEnd end = follow_stream<P>(run_, writer_, idle_at_gate, [&](std::uint32_t i, std::uint32_t pass) {
      return step(pass, i + 1 < run_.stream.count);
    });
    ptx::wait_copies<0>();
    if (end.aborted) call_off();
    // The command to leave goes to the first instruction without one, also after an abort, because the roles wait for a
    // command. Its slot is free: the completion of its last user is signaled, see step().
    command(RoleCommand::leave);
    if (!end.aborted && number_) signal_last();
    writer_.close();
    return end;
  }

 private:
  static constexpr std::uint32_t kBusyNs = 100;  // ns between polls while the worker's last task is under way

  /// Starts the copy of instruction `n` into its slot. Past the end of the last pass it copies one that is not used. The
  /// slot is unused in this run so far, or signal_last() has acquired the arrivals on `stored` of its last user.
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

  /// Takes the current instruction from its command to the signal of the one before. `goes_on`: this pass has a next one.
  __device__ bool step(std::uint32_t pass, bool goes_on) {
    // The copy of the current instruction has landed; those of the next two may be under way. command() releases it.
    ptx::wait_copies<kRoleSlots - 2>();
    RoleSlot& slot = roles_.slots[number_ % kRoleSlots];
    const Instruction& instruction = slot.instruction;
    roles_.stepping = static_cast<std::uint32_t>(number_);
    if (commanded_ == number_) slot.prepare(run_, pass);
    began_ = writer_.now();
    if (!(instruction.flags & kEarly ? begin_early(slot, pass, goes_on) : begin(slot, pass))) return false;
    if (number_ && !signal_last()) return false;  // fetch() below writes that slot
    failed_before_last_ = failed_;
    ++number_;
    fetch(number_ + kRoleSlots - 2);
    return true;
  }

  /// Waits until all tasks before the current one have ended, then commands it. For instructions that are not early.
  __device__ bool begin(RoleSlot& slot, std::uint32_t pass) {
    const Instruction& instruction = slot.instruction;
    // This task needs what the one before it stores, and whether that has failed; both are known once it has stored.
    // Until then the control thread polls no counter: the polls of all workers go to one part of L2, and operands pass
    // through it, too.
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
    // Release, block scope: pairs with detail::await_sent() and has_come(), then with detail::await_before(); cover
    // `called_off`, `before_failed` and what wait_before() acquired.
    ptx::mbarrier_arrive(roles_.coming[number_ % kRoleSlots]);
    ptx::mbarrier_arrive(roles_.before[number_ % kRoleSlots]);
    writer_.write_until(end, TraceKind::wait, began_, instruction.record.header.local, pass);  // after the command
    return true;
  }

  /// The same for an early instruction, in three steps: the command at once, `coming` when the tasks before it have sent,
  /// `before` when they have ended. Its completion is signaled after the last.
  __device__ bool begin_early(RoleSlot& slot, std::uint32_t pass, bool goes_on) {
    const Instruction& instruction = slot.instruction;
    if (commanded_ == number_) command(failed_ ? RoleCommand::skip : RoleCommand::run);
    if (goes_on) command_next(pass);
    if (instruction.flags & kAfterPrevious && !signal_last()) return false;
    const Before sent = wait_sent<P>(run_, instruction, pass, [&] {
      watch();
      if (!signal_if_stored()) __nanosleep(kBusyNs);
    });
    if (sent == Before::aborted) return false;
    slot.called_off = failed_ |= sent == Before::failed;
    // Release, block scope: pairs with detail::await_sent() and has_come(); covers `called_off`.
    ptx::mbarrier_arrive(roles_.coming[number_ % kRoleSlots]);
    writer_.write(TraceKind::wait, began_, instruction.record.header.local, pass);
    const auto idle = [&] {
      watch();
      signal_if_stored();
      return true;
    };
    if (!wait_all_before(slot, pass, idle)) return false;
    // Release, block scope: pairs with detail::await_before(); covers `before_failed` and what wait_before() acquired.
    ptx::mbarrier_arrive(roles_.before[number_ % kRoleSlots]);
    return true;
  }

  /// Commands the next instruction, too, if that is early. Its parts then begin before the current instruction's
  /// predecessors have ended: they take their first operands, and so make room for the load role.
  __device__ void command_next(std::uint32_t pass) {
    // The copy of the next instruction has landed; one may be under way.
    ptx::wait_copies<kRoleSlots - 3>();
    RoleSlot& next = roles_.slots[commanded_ % kRoleSlots];
    if (!(next.instruction.flags & kEarly)) return;
    next.prepare(run_, pass);
    command(failed_ ? RoleCommand::skip : RoleCommand::run);
  }

  /// Waits for the current instruction's predecessors on other workers, see wait_before(). False if the runtime was aborted.
  template <class Idle>
  __device__ bool wait_all_before(RoleSlot& slot, std::uint32_t pass, Idle&& idle) {
    const Before before = wait_before<P>(run_, slot.instruction, pass, idle);
    slot.before_failed = failed_ |= before == Before::failed;
    return before != Before::aborted;
  }

  /// Gives the first instruction that has no command the command `what`.
  __device__ void command(RoleCommand what) {
    roles_.slots[commanded_ % kRoleSlots].command = what;
    // Release, block scope: pairs with wait_command() and wait_command_in_compute(); covers the slot.
    ptx::mbarrier_arrive(roles_.ready[commanded_ % kRoleSlots]);
    ++commanded_;
    // Release, block scope: pairs with the acquire in KeptPages::are_announced(); covers the slot and what this thread
    // acquired for the task in wait_before().
    P::block(roles_.announced).store(static_cast<std::uint32_t>(commanded_), Order::release);
  }

  /// After an abort: answers parts that wait for the tasks before theirs that those have failed. This thread does it, so that
  /// all lanes of a warp get the same answer. Answers that were given before do not change.
  __device__ void call_off() {
    for (std::uint64_t n = number_; n < commanded_; ++n) {
      const std::uint32_t s = n % kRoleSlots, parity = n / kRoleSlots & 1;
      const auto notify = [&](std::uint64_t& barrier, bool& failed) {
        // No order needed: all arrivals on these barriers are by this thread. Complete: it has given the answer before.
        if (ptx::mbarrier_poll(barrier, parity)) return;
        failed = true;
        // Release, block scope: pairs with detail::await_sent() and await_before(); covers `failed`.
        ptx::mbarrier_arrive(barrier);
      };
      notify(roles_.coming[s], roles_.slots[s].called_off);
      notify(roles_.before[s], roles_.slots[s].before_failed);
    }
  }

  /// Acquire, block scope: pairs with the arrival on `stored` in store_role(); covers all that the task wrote, which
  /// signal_done() then releases at device scope.
  __device__ bool stored(std::uint64_t n) const {
    return ptx::mbarrier_poll(roles_.stored[n % kRoleSlots], n / kRoleSlots & 1);
  }

  // The completion of the task before the current one is signaled once it has stored its results: all tasks before it have
  // ended by then, see step(). The control thread does it, because the store warp goes on to the next task's results at
  // once (0.569 ms a token against 0.592, see tuning.md).

  /// Waits for that and signals it. False if the runtime was aborted.
  __device__ bool signal_last() {
    if (signaled_ == number_) return true;
    if (!wait_last(roles_.stored)) return false;
    signal_stored();
    return true;
  }
  /// Signals it if the results are stored, without waiting. True if nothing is left to signal.
  __device__ bool signal_if_stored() {
    if (signaled_ != number_ && stored(number_ - 1)) signal_stored();
    return signaled_ == number_;
  }
  __device__ void signal_stored() {
    const RoleSlot& last = roles_.slots[(number_ - 1) % kRoleSlots];
    failed_ |= last.stored_failed;
    // A successor relies on this task and on all tasks before it, so a failure among those counts, too.
    const bool failed = failed_before_last_ || last.stored_failed;
    if (!(last.instruction.flags & kOnlyWaits)) signal_stored_task(number_, failed);
    signaled_ = number_;
  }
  /// Acquire, block scope: pairs as in stored(). `abort` is read relaxed: pairs with report_wait() or the host's copy, and
  /// a thread that sees it only leaves.
  __device__ bool wait_last(std::uint64_t (&barriers)[kRoleSlots]) {
    const std::uint64_t n = number_ - 1;
    for (std::uint32_t spins = 1; !ptx::mbarrier_test(barriers[n % kRoleSlots], n / kRoleSlots & 1); ++spins) {
      watch();
      if (spins % 1024 == 0 && P::device(dev_.control->broadcast.abort).load(Order::relaxed)) return false;
    }
    return true;
  }

  /// Called while this thread waits: reads the clock once in 1,024 calls.
  __device__ void watch() {
    if (++polls_ % 1024 == 0 && signaled_ != number_) watch_last_task(number_);
  }

  RolesShared& roles_;
  const CompiledRun& run_;
  const DeviceState& dev_;
  std::uint64_t number_ = 0;  // these three are the cursors described above
  std::uint64_t commanded_ = 0;
  std::uint32_t next_fetch_ = 0;  // index in the stream of the instruction that fetch() copies next
  std::uint64_t signaled_ = 0;
  bool failed_ = false;              // a task of this pass has failed, on this worker or before one of its tasks
  bool failed_before_last_ = false;  // the same at the end of the step of the task before the current one
  std::uint64_t began_ = 0;          // tick at which the current instruction's step began
  std::uint32_t polls_ = 0;
  TraceWriter<P> writer_;
};

}  // namespace flywheel::detail
