// Bare streams: compiled runs of tasks that have a portable body and nothing else: no parts, no operands, none early. Nothing
// is fetched ahead and nothing is handed over, so the control role would only stand between a task's end and the next one's
// begin. Two roles do:
//
//   load warp ---- kBareBarrier, where ----> compute warps, of which the first thread signals the task's successors
//       ^          they meet                     |
//       +------------ bare_free -----------------+
//
// The lanes of the load warp poll all counters of an instruction at once, one instruction ahead of the compute warps. A poll
// that is under way holds up the fence with which the compute warps signal (see tuning.md), so while a body runs they poll
// once, and then every kRestTicks.
// compiled.cuh includes it; the control thread only watches.
#pragma once

#include "../../runtime/dynamic/task_list.hpp"
#include "control.cuh"

namespace flywheel::detail {

/// Initialises the barriers of a bare run. Called by one thread of the block while no role is in a run. As with init_roles(),
/// the other threads see the plain stores through __syncthreads() in prepare() (`first`), or through the arrivals on `full`
/// and `begin` in control_compiled_run().
__device__ inline void init_bare(RolesShared& roles, bool first) {
  for (std::uint32_t s = 0; s < kRoleSlots; ++s) {
    if (!first) ptx::mbarrier_invalidate(roles.bare_free[s]);
    ptx::mbarrier_init(roles.bare_free[s], kComputeWarps * arrivals_of(32));
  }
  ptx::publish_mbarriers();
  roles.bare_step = 0;
}

inline constexpr std::uint32_t kBareBarrier = 3;
/// Where the load warp and the compute warps of a bare run meet before each task. Release and acquire at block scope: pairs
/// with itself in those threads.
__device__ __forceinline__ void meet_for_task() { ptx::named_barrier(kBareBarrier, kComputeThreads + 32); }

// RoleSlot::bare, in bits. With none of the first two, the instruction only waits.
inline constexpr std::uint32_t kBareRun = 1;     // it has a task
inline constexpr std::uint32_t kBareLeave = 2;   // it ends the run for the compute warps
inline constexpr std::uint32_t kBareFailed = 4;  // a task before it has failed
inline constexpr std::uint32_t kBareSink = 8;    // its task is a sink

/// What a bare run's load warp waits for in its lanes: each polls one counter of an instruction.
class CounterPoll {
  using P = ThreadPlatform;
  static constexpr std::uint32_t kAll = 0xffffffffu;
  static constexpr std::uint64_t kRestTicks = 4'000;  // of the SM's clock, some 2 us

 public:
  __device__ CounterPoll(const CompiledRun& run, const Instruction& instruction, std::uint32_t pass)
      : limit_(Views<P>{*run.dev}.wait_for_phase(run.worker)),
        there_(threadIdx.x % 32 >= instruction.wait_count) {
    if (there_) return;
    const CounterWait wait = instruction.waits[threadIdx.x % 32];
    counter_ = counter_of(run, wait.counter);
    goal_ = (run.passes + pass + 1) * wait.arrivals;
  }

  /// All lanes: issues the first polls. What follows them up to the wait does not wait for them.
  __device__ void begin() { look(); }
  /// All lanes, after begin(): waits until all predecessors are done, within the time limit of phases, as wait_before() does.
  /// `busy()`: this worker's task before still runs.
  template <class Busy>
  __device__ Before operator()(Busy&& busy) {
    WaitNotesOf<P> notes;     // not a member: its address is passed on, and the rest stays in registers
    bool busy_before = true;  // until the task before has ended; in all lanes
    for (std::uint32_t spins = 0; !__all_sync(kAll, is_there()); ++spins) {
      if (spins % 256 == 255 && !goes_on(notes)) return Before::aborted;
      if (busy_before) busy_before = rest(busy);
      look();
    }
    P::acquire_fence();  // acquire: pairs with the release in signal_done(); look() has seen the count
    return __any_sync(kAll, (saw_ & ~kArrivals) != 0) ? Before::failed : Before::done;
  }

 private:
  /// Waits while the task before runs, for kRestTicks at most. False if it has ended. The lanes vote: each has its own clock.
  template <class Busy>
  __device__ bool rest(Busy&& busy) const {
    for (const std::uint64_t begin = P::ticks(); __all_sync(kAll, busy());)
      if (!__all_sync(kAll, P::ticks() - begin < kRestTicks)) return true;
    return false;
  }

  /// Relaxed on a GPU: pairs with signal_done(); the fence behind the loop acquires.
  __device__ void look() {
    if (!there_) saw_ = P::device(*counter_).load(P::kBeforeAcquire);
  }
  __device__ bool is_there() { return there_ = there_ || (saw_ & kArrivals) >= goal_; }

  /// The first lane that still waits speaks for all: a report names its counter.
  __device__ bool goes_on(WaitNotesOf<P>& notes) {
    const std::uint32_t first = static_cast<std::uint32_t>(lowest_bit(__ballot_sync(kAll, !there_)));
    std::uint32_t on = 0;
    if (threadIdx.x % 32 == first) {
      began_ = go_on_waiting<P>(limit_, WaitReason::predecessors, counter_, saw_, goal_, began_, notes);
      on = began_ != 0;
    }
    return __shfl_sync(kAll, on, first);
  }

  const PhaseWait limit_;
  std::uint64_t* counter_ = nullptr;
  std::uint64_t goal_ = 0, saw_ = 0;
  bool there_;
  std::uint64_t began_ = 0;  // for this lane's time limit, as in spin_until()
};

/// The load warp's role in a bare run. All lanes call.
class BareFollower {
  using P = ThreadPlatform;
  static constexpr std::uint32_t kAll = 0xffffffffu;
  static constexpr std::uint32_t kAhead = 2;  // an instruction is fetched so many ahead, into the slot of one so many behind

 public:
  __device__ BareFollower(RolesShared& roles, const DeviceState& dev)
      : roles_(roles),
        run_(roles.run),
        dev_(dev),
        writer_(run_.traced && leader() ? dev.trace : TraceBuffers{}, run_.worker, TraceRole::control) {}

  __device__ void operator()() {
    if (run_.traced && leader()) close_others();
    copy_params();
    for (std::uint64_t n = 0; n < kAhead; ++n) fetch(n);
    const StreamEnd end = follow();
    ptx::wait_copies<0>();
    if (leader()) roles_.bare_end = end;  // the arrival on `left` releases it
    const std::uint64_t last = number_;
    command(kBareLeave);
    // Each phase of an mbarrier is observed: compute-sanitizer's synccheck asks for that. An abort ends these waits.
    for (std::uint64_t n = last < kRoleSlots ? 0 : last - kRoleSlots; n < last; ++n) await_end(n);
    writer_.close();
  }

 private:
  __device__ static bool leader() { return threadIdx.x % 32 == 0; }
  __device__ RoleSlot& slot_of(std::uint64_t n) const { return roles_.slots[n % kRoleSlots]; }

  /// As follow_stream() does for one thread.
  __device__ StreamEnd follow() {
    if (!run_.stream.count) return {0, false};
    for (std::uint32_t pass = run_.first_pass;; ++pass) {
      const bool last = pass == run_.repeat;
      if (pass && (run_.is_leader || !last)) {
        const BarrierResult result = wait_at_gate(pass);
        if (result != BarrierResult::go_on) return {pass, result == BarrierResult::aborted};
      }
      if (last) return {pass, false};
      for (std::uint32_t i = 0; i < run_.stream.count; ++i)
        if (!step(pass)) return {pass, true};
    }
  }

  __device__ BarrierResult wait_at_gate(std::uint32_t pass) {
    std::uint32_t result = 0;
    if (leader()) {
      const std::uint64_t begin = writer_.now();
      const auto idle = [] { return true; };  // the compute warps may still run tasks
      result = static_cast<std::uint32_t>(detail::wait_at_gate<P>(run_, pass, idle));
      writer_.write(TraceKind::gate, begin, 0, pass);
    }
    return static_cast<BarrierResult>(__shfl_sync(kAll, result, 0));
  }

  /// Takes one instruction from the fetch of another behind it to the command. False if the runtime was aborted.
  __device__ bool step(std::uint32_t pass) {
    fetch(number_ + kAhead);  // the compute warps are through with its slot: they have begun what comes after
    ptx::wait_copies<kAhead>();
    __syncwarp();  // each lane sees what the others have copied
    RoleSlot& slot = slot_of(number_);
    if (leader()) prepare(slot, pass);
    const std::uint32_t flags = slot.instruction.flags;
    const std::uint32_t what = (flags & kOnlyWaits ? 0 : kBareRun) | (flags & kSink ? kBareSink : 0);
    const std::uint64_t began = writer_.now();
    CounterPoll poll(run_, slot.instruction, pass);
    poll.begin();
    const Before before = poll([&] { return is_busy(); });
    if (before == Before::aborted) return false;
    const std::uint64_t end = writer_.now();
    const std::uint32_t number = static_cast<std::uint32_t>(number_);
    command(what | (before == Before::failed ? kBareFailed : 0));
    if (run_.traced) writer_.write_until(end, TraceKind::wait, began, slot_of(number).instruction.record.header.local, pass);
    return true;
  }

  /// Before the poll: all that the compute warps need of the task.
  __device__ void prepare(RoleSlot& slot, std::uint32_t pass) {
    roles_.stepping = static_cast<std::uint32_t>(number_);
    slot.prepare(run_, pass);
    slot.context.params = roles_.params;
    const bool signals = !(slot.instruction.flags & kSink) && slot.instruction.signal != kNoCounter;
    slot.signal = signals ? counter_of(run_, slot.instruction.signal) : nullptr;
  }

  /// Whether the task before the current one still runs. Acquire, block scope: as in await_end().
  __device__ bool is_busy() const {
    const std::uint64_t n = number_ - 1;
    return number_ && !ptx::mbarrier_test(roles_.bare_free[n % kRoleSlots], n / kRoleSlots & 1);
  }

  /// Waits until the compute warps have ended a task, or the runtime was aborted. Acquire, block scope: pairs with the arrivals
  /// in compute_bare(), and not needed.
  __device__ void await_end(std::uint64_t n) const {
    __all_sync(kAll, wait_phase_in_compute(roles_.bare_free[n % kRoleSlots], n / kRoleSlots & 1));
  }

  /// Starts the copy of the run's parameters, which comes with the first instruction: a body would otherwise read them from L2.
  __device__ void copy_params() {
    const std::uint32_t at = threadIdx.x % 32 * 16;
    if (at < kParamBytes) ptx::copy16(roles_.params + at, run_.state->params + at);
  }

  /// Starts the copy of instruction `n` into its slot, 16 bytes a lane.
  __device__ void fetch(std::uint64_t n) {
    const std::uint32_t at = threadIdx.x % 32 * 16;
    if (run_.stream.count && at < sizeof(Instruction)) {
      const auto* from = reinterpret_cast<const unsigned char*>(run_.stream.instructions + next_fetch_);
      ptx::copy16(reinterpret_cast<unsigned char*>(&roles_.slots[n % kRoleSlots].instruction) + at, from + at);
    }
    if (++next_fetch_ >= run_.stream.count) next_fetch_ = 0;
    ptx::commit_copies();
  }

  /// Gives the current instruction its command, once the compute warps are through with the one before. No time limit: the
  /// watchdog has one for bodies.
  __device__ void command(std::uint32_t what) {
    if (leader()) slot_of(number_).bare = what;
    __syncwarp();     // the barrier is for whole warps
    meet_for_task();  // releases the command, the slot and what CounterPoll acquired
    ++number_;
  }

  /// The roles that do nothing in a bare run have empty tracks.
  __device__ void close_others() const {
    for (const TraceRole role : {TraceRole::load, TraceRole::store}) TraceWriter<P>(dev_.trace, run_.worker, role).close();
  }

  RolesShared& roles_;
  const CompiledRun& run_;
  const DeviceState& dev_;
  std::uint64_t number_ = 0;      // of the current instruction, over all passes of this part of the run
  std::uint32_t next_fetch_ = 0;  // index in the stream of the instruction that fetch() copies next
  TraceWriter<P> writer_;
};

/// Runs a body on the compute warps, all of which have ended it when it returns. The bodies are inlined: a call would cost more
/// than a short body, and its block would lie in local memory, which is read from L2 after each acquire.
template <class List>
__device__ __forceinline__ void run_bare(const TaskRecord& record, GpuBlock<List>& block) {
  List::run_without_part(record, block);
  block.sync();
}

/// The end of a task that is a sink, that failed or was skipped, or asked to stop. Out of line: it is rare, or once in a pass.
[[gnu::noinline]] __device__ inline void signal_apart(const RoleSlot& slot, bool failed) {
  const Outcome& outcome = slot.context.outcome;
  signal_done<ThreadPlatform>(roles_shared().run, slot.instruction, outcome.iteration, outcome, failed);
}

/// The first compute thread: signals that a task is done. The accesses of the other threads come before the release, behind the
/// barrier with which run_bare() ends. Release: pairs with the acquire fence in CounterPoll.
__device__ __forceinline__ void signal_bare(const RoleSlot& slot, std::uint32_t command, bool failed) {
  std::uint64_t* const counter = slot.signal;
  const Outcome& outcome = slot.context.outcome;
  const std::uint32_t apart = failed | outcome.code | outcome.stop | (command & kBareSink);
  if (counter) ThreadPlatform::release_fence();  // waits for the body's stores: what is loaded above comes meanwhile
  if (apart) signal_apart(slot, failed);
  else if (counter) ThreadPlatform::device(*counter).add(1, ThreadPlatform::kAfterRelease);
}

/// The compute warps' role in a bare run.
template <class List>
[[gnu::noinline]] __device__ void compute_bare(const DeviceState& dev, BlockShared& block_shared) {
  using P = ThreadPlatform;
  RolesShared& roles = roles_shared();  // by name, see executor_shared()
  const bool first = threadIdx.x == kFirstComputeWarp * 32, shows = threadIdx.x == kFirstComputeWarp * 32 + 32;
  const bool traced = first && roles.run.traced;
  unsigned char* const scratch = scratch_memory(dev);
  if (first) roles.writer = {traced ? dev.trace : TraceBuffers{}, roles.run.worker, TraceRole::compute};
  std::uint32_t turn = 0;
  bool failed = false;  // a task of this worker, or before one of its tasks
  for (std::uint32_t n = 0;; ++n) {
    RoleSlot& slot = roles.slots[n % kRoleSlots];
    GpuBlock<List> block(slot.context, block_shared, scratch, turn);
    meet_for_task();  // acquires what BareFollower::command() releases. No time limit: the load warp has one
    const std::uint32_t command = slot.bare;
    if (command & kBareLeave) break;
    failed |= (command & kBareFailed) != 0;
    const bool runs = (command & kBareRun) && !failed;
    if (runs) {
      // Relaxed, here and below: pair with BareRunWatch, which compares steps, and names the task in a report.
      if (shows) P::block(roles.bare_task).store(slot.instruction.record.header.local, Order::relaxed);
      if (shows) P::block(roles.bare_step).store(2 * n + 1, Order::relaxed);
      if (traced) [[unlikely]]
        roles.body_began = roles.writer.now();
      run_bare<List>(slot.instruction.record, block);
      turn = block.turn();
      if (shows) P::block(roles.bare_step).store(2 * n + 2, Order::relaxed);
    }
    if (first && command & kBareRun) {
      signal_bare(slot, command, failed);
      if (runs && traced) [[unlikely]]
        roles.writer.write(TraceKind::body, roles.body_began, slot.instruction.record.header.local,
                           slot.context.outcome.iteration);
    }
    failed |= slot.context.outcome.code != 0;
    __syncwarp();  // orders what the lanes have read before the arrival of one
    // Release after __syncwarp(), block scope: pairs with the tests in BareFollower, which only look whether the task runs.
    if (arrives(threadIdx.x % 32)) ptx::mbarrier_arrive(roles.bare_free[n % kRoleSlots]);
    if (first) show_progress<P>(*roles.dev, roles.run.worker);
  }
  if (first) roles.writer.close();
}

/// The control thread's watch over a bare run: reports a body each time that it has run for a further kSlowTaskNs.
class BareRunWatch {
  using P = ThreadPlatform;

 public:
  /// Called while the thread waits: looks once in 1,024 calls.
  __device__ void operator()() {
    if (++polls_ % 1024) return;
    RolesShared& roles = roles_shared();
    const std::uint64_t now = P::now_ns();
    // Relaxed, both: pair with compute_bare(). Of the step only a change matters; the task is for a report of a body that has
    // run for long, and not read from its instruction, which this thread has not acquired.
    const std::uint32_t step = P::block(roles.bare_step).load(Order::relaxed);
    if (step != step_ || step % 2 == 0) began_ = told_ = now;
    step_ = step;
    if (now - told_ < kSlowTaskNs) return;
    const std::uint32_t task = P::block(roles.bare_task).load(Order::relaxed);
    const Item item{task, static_cast<std::uint16_t>(roles.run.slot), false};
    beat<P>(roles.run.dev->heartbeats[roles.run.worker], WorkerState::slow, item.pack(), now - began_);
    told_ = now;
  }

 private:
  std::uint32_t polls_ = 0, step_ = 0;
  std::uint64_t began_ = 0, told_ = 0;
};

}  // namespace flywheel::detail
