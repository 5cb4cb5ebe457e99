// Warp streams: compiled runs of warp tasks alone (flywheel::Warp). Each of Schedule::warps compute warps follows a stream of
// its own and does by itself all that roles do elsewhere: its lanes poll the counters of a task, run the body, and the first of
// them signals. So no warp waits for another, and a worker runs several tasks at once.
// compiled.cuh includes it; the control thread only watches, and the load and store warps have nothing to do.
#pragma once

#include "bare.cuh"

namespace flywheel::detail {

/// What a compute warp keeps in shared memory while it follows its stream. By the warp alone, but for what is atomic and the
/// watch.
struct alignas(128) WarpStream {
  Instruction slots[2];                           // the current instruction, and the next one
  alignas(16) unsigned char params[kParamBytes];  // a copy
  TaskContext context;
  std::uint32_t step;  // 2 n + 1 while the body of instruction n runs; atomic, for the control thread
  std::uint32_t task;  // graph-local index of the task whose body began last; atomic, likewise
  // Of the control thread: the step that it saw last, and when that began and was last reported.
  std::uint32_t seen;
  std::uint64_t began, told;
};
static_assert(kComputeWarps * sizeof(WarpStream) + alignof(WarpStream) <= kHandoffs * kHandoffBytes);

/// They lie in the memory of handoffs, which only runs with all roles use. The handoff places are aligned to 16 bytes.
__device__ __forceinline__ WarpStream* warp_streams() {
  return reinterpret_cast<WarpStream*>(page_memory() + (roles_shared().handoffs_at + alignof(WarpStream) - 1) /
                                                           alignof(WarpStream) * alignof(WarpStream));
}

/// The control thread, before the run's begin. It is released with the command to the compute warps.
__device__ inline void init_warp_streams(RolesShared& roles, const DeviceState& dev) {
  roles.writer = {roles.run.traced ? dev.trace : TraceBuffers{}, roles.run.worker, TraceRole::compute};
  roles.track_lock = 0;
  for (std::uint32_t w = 0; w < roles.run.warps; ++w) {
    WarpStream& stream = warp_streams()[w];
    stream.step = stream.seen = 0;
    stream.context.header = &stream.slots[0].record.header;  // a report may come before the first task
  }
}

/// As waiting_part(): the task before which the warp waits. Its control thread waits for no task.
[[gnu::noinline]] __device__ inline std::uint64_t waiting_warp_part(std::uint32_t warp) {
  const RolesShared& roles = roles_shared();
  std::uint32_t task = 0;
  if (warp >= kFirstComputeWarp) task = warp_streams()[warp - kFirstComputeWarp].context.header->local;
  return WaitPart{task, static_cast<std::uint16_t>(roles.run.slot), static_cast<std::uint8_t>(TraceRole::control)}.pack();
}

/// A compute warp's part of such a run. All lanes call.
template <class List>
class WarpFollower {
  using P = ThreadPlatform;
  static constexpr std::uint32_t kAll = 0xffffffffu;
  static constexpr std::uint32_t kShowTicks = 1u << 20;  // of the SM's clock, some 0.5 ms: between two signs of progress

 public:
  __device__ WarpFollower(RolesShared& roles, const DeviceState& dev, std::uint32_t warp)
      : roles_(roles),
        run_(roles.run),
        own_(warp_streams()[warp]),
        scratch_bytes_(warp_scratch_bytes(dev)),
        scratch_(scratch_memory(dev) + warp * scratch_bytes_) {
    const std::uint32_t number = warp * dev.workers + run_.worker;
    const WorkerStream& stream = run_.schedule->streams[number];  // plain: a loaded schedule does not change
    instructions_ = stream.instructions;
    count_ = stream.count;
    is_leader_ = run_.schedule->leader == number;
  }

  __device__ void operator()() {
    copy_params();
    fetch();
    if (is_first())
      own_.context = {run_.dev,    &own_.slots[0].record.header,
                      run_.state,  {0, static_cast<std::uint16_t>(run_.slot), false},
                      run_.worker, {0, 0, 0, 0},
                      0,           own_.params};
    const StreamEnd end = follow();
    ptx::wait_copies<0>();
    if (is_leader_ && is_first()) roles_.bare_end = end;  // the arrival on `done` releases it
  }

 private:
  __device__ static bool is_first() { return threadIdx.x % 32 == 0; }

  /// As BareFollower::follow().
  __device__ StreamEnd follow() {
    if (!count_) return {0, false};
    for (std::uint32_t pass = run_.first_pass;; ++pass) {
      const bool last = pass == run_.repeat;
      if (pass && (is_leader_ || !last)) {
        const BarrierResult result = wait_at_gate(pass);
        if (result != BarrierResult::go_on) return {pass, result == BarrierResult::aborted};
      }
      if (last) return {pass, false};
      for (std::uint32_t i = 0; i < count_; ++i)
        if (!step(pass)) return {pass, true};
    }
  }

  __device__ BarrierResult wait_at_gate(std::uint32_t pass) {
    std::uint32_t result = 0;
    if (is_first()) {
      const auto idle = [] { return true; };  // other warps of the block may still run tasks
      result = static_cast<std::uint32_t>(detail::wait_at_gate<P>(run_, pass, idle));
    }
    return static_cast<BarrierResult>(__shfl_sync(kAll, result, 0));
  }

  /// Takes one instruction from the wait for its predecessors to its signal. False if the runtime was aborted.
  __device__ bool step(std::uint32_t pass) {
    const Instruction& instruction = own_.slots[number_++ % 2];
    ptx::wait_copies<0>();  // begun as long ago as the instruction before
    // Each lane sees what the others have copied, and what the first one has acquired at the gate. All are through with the
    // instruction before, whose slot the next one gets.
    __syncwarp();
    const std::uint32_t flags = instruction.flags;
    if (instruction.wait_count) {
      CounterPoll poll(run_, instruction, pass);
      poll.begin();
      prepare(instruction, pass);
      const Before before = poll([] { return false; });
      if (before == Before::aborted) return false;
      failed_ |= before == Before::failed;
    } else {
      prepare(instruction, pass);
    }
    __syncwarp();  // all lanes see the context, and what every lane has acquired
    if (flags & kOnlyWaits) return true;
    std::uint64_t* const counter =
        flags & kSink || instruction.signal == kNoCounter ? nullptr : counter_of(run_, instruction.signal);
    if (!failed_) run(instruction, pass);
    __syncwarp();  // the first lane releases what all lanes wrote
    if (is_first()) signal(instruction, counter, pass);
    failed_ |= own_.context.outcome.code != 0;
    return true;
  }

  /// While the first polls are on their way: begins the fetch of the next instruction, and fills in what differs from task to
  /// task in the context.
  __device__ void prepare(const Instruction& instruction, std::uint32_t pass) {
    fetch();
    if (!is_first()) return;
    own_.context.header = &instruction.record.header;
    own_.context.outcome = {0, 0, 0, pass};
    own_.context.stamp = stamp_of(run_, pass);
  }

  __device__ void run(const Instruction& instruction, std::uint32_t pass) {
    // Relaxed, all: pair with WarpStreamsWatch, which only compares steps.
    if (is_first()) {
      P::block(own_.task).store(instruction.record.header.local, Order::relaxed);
      P::block(own_.step).store(2 * number_ - 1, Order::relaxed);
    }
    const std::uint64_t began = run_.traced ? P::ticks() : 0;
    WarpBlock<List> block(own_.context, scratch_, scratch_bytes_);
    List::run_on_warp(instruction.record, block);
    __syncwarp();  // all lanes have ended the body
    if (!is_first()) return;
    P::block(own_.step).store(2 * number_, Order::relaxed);
    if (run_.traced) [[unlikely]]
      write_body(began, instruction.record.header.local, pass);
  }

  /// The first lane. The accesses of the others come before the release, behind __syncwarp(). Release: pairs with the acquire
  /// fence in CounterPoll. Null `counter`: the task is a sink, or no other stream waits for it.
  __device__ void signal(const Instruction& instruction, std::uint64_t* counter, std::uint32_t pass) {
    const Outcome& outcome = own_.context.outcome;
    if (counter) P::release_fence();  // waits for the body's stores: what is loaded here comes meanwhile
    if (failed_ | outcome.code | outcome.stop | (instruction.flags & kSink)) signal_apart(instruction, pass);
    else if (counter) P::device(*counter).add(1, P::kAfterRelease);
    const auto now = static_cast<std::uint32_t>(P::ticks());
    if (now - shown_ < kShowTicks) return;
    shown_ = now;
    show_progress<P>(*run_.dev, run_.worker);
  }
  /// Out of line: it is rare, or once in a pass.
  [[gnu::noinline]] __device__ void signal_apart(const Instruction& instruction, std::uint32_t pass) const {
    signal_done<P>(run_, instruction, pass, own_.context.outcome, failed_);
  }

  /// The warps of a worker share its compute track. Acquire and release: the lock pairs with itself in the other warps.
  [[gnu::noinline]] __device__ void write_body(std::uint64_t began, std::uint32_t task, std::uint32_t pass) const {
    const std::uint64_t end = P::ticks();
    while (P::block(roles_.track_lock).exchange(1, Order::acquire)) {}
    roles_.writer.write_until(end, TraceKind::body, began, task, pass);
    P::block(roles_.track_lock).store(0, Order::release);
  }

  /// Starts the copy of the run's parameters, which comes with the first instruction.
  __device__ void copy_params() const {
    const std::uint32_t at = threadIdx.x % 32 * 16;
    if (at < kParamBytes) ptx::copy16(own_.params + at, run_.state->params + at);
  }

  /// Starts the copy of the next instruction into the slot that is not current, 16 bytes a lane.
  __device__ void fetch() {
    const std::uint32_t at = threadIdx.x % 32 * 16;
    if (count_ && at < sizeof(Instruction))
      ptx::copy16(reinterpret_cast<unsigned char*>(&own_.slots[number_ % 2]) + at,
                  reinterpret_cast<const unsigned char*>(instructions_ + next_fetch_) + at);
    if (++next_fetch_ >= count_) next_fetch_ = 0;
    ptx::commit_copies();
  }

  RolesShared& roles_;
  const CompiledRun& run_;
  WarpStream& own_;
  const std::uint32_t scratch_bytes_;
  unsigned char* const scratch_;
  const Instruction* instructions_;
  std::uint32_t count_;           // of instructions
  std::uint32_t shown_ = 0;       // the tick of the last sign of progress
  std::uint32_t number_ = 0;      // of the next instruction, over all passes of this part of the run
  std::uint32_t next_fetch_ = 0;  // index in the stream of the instruction that fetch() copies next
  bool is_leader_;                // this stream's worker notifies the host
  bool failed_ = false;           // a task of this stream, or before one of its tasks
};

/// The control thread, when all warps have left: ends the tracks of a traced run, of which only one has events.
__device__ inline void close_tracks(RolesShared& roles, const DeviceState& dev) {
  roles.writer.close();
  if (!roles.run.traced) return;
  for (const TraceRole role : {TraceRole::control, TraceRole::load, TraceRole::store})
    TraceWriter<ThreadPlatform>(dev.trace, roles.run.worker, role).close();
}

/// The compute warps in such a run. Out of line, so that other runs do not share its registers.
template <class List>
[[gnu::noinline]] __device__ void follow_on_warp(const DeviceState& dev) {
  RolesShared& roles = roles_shared();
  const std::uint32_t warp = threadIdx.x / 32 - kFirstComputeWarp;
  if constexpr (List::kHasWarpTasks)
    if (warp < roles.run.warps) WarpFollower<List>(roles, dev, warp)();
}

/// The control thread's watch over such a run: reports each body every time that it has run for a further kSlowTaskNs.
class WarpStreamsWatch {
  using P = ThreadPlatform;

 public:
  /// Called while the thread waits: looks once in 1,024 calls.
  __device__ void operator()() {
    if (++polls_ % 1024) return;
    const RolesShared& roles = roles_shared();
    const std::uint64_t now = P::now_ns();
    for (std::uint32_t w = 0; w < roles.run.warps; ++w) look(roles, warp_streams()[w], now);
  }

 private:
  __device__ static void look(const RolesShared& roles, WarpStream& stream, std::uint64_t now) {
    // Relaxed: pairs with WarpFollower::run(); only a change matters.
    const std::uint32_t step = P::block(stream.step).load(Order::relaxed);
    if (step != stream.seen || step % 2 == 0) stream.began = stream.told = now;
    stream.seen = step;
    if (now - stream.told < kSlowTaskNs) return;
    const std::uint32_t task = P::block(stream.task).load(Order::relaxed);  // relaxed, as `step`
    const Item item{task, static_cast<std::uint16_t>(roles.run.slot), false};
    beat<P>(roles.run.dev->heartbeats[roles.run.worker], WorkerState::slow, item.pack(), now - stream.began);
    stream.told = now;
  }

  std::uint32_t polls_ = 0;
};

}  // namespace flywheel::detail
