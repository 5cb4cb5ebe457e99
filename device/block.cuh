// GpuBlock: the compute warps of a GPU worker, as a task body sees them. roles.cuh includes it, and through that every role.
// What a body may call on any processor is in BlockCore (runtime/dynamic/block.hpp).
#pragma once

#include <flywheel/detail/group.cuh>
#include "../runtime/compiled/operands.hpp"
#include "collectives.cuh"
#include "warp_block.cuh"

namespace flywheel::detail {

// The compute warps' side of handoffs and early tasks; defined in handoff.cuh.
__device__ void* acquire_handoff();
__device__ void await_taken();
__device__ void producer_commit();
__device__ bool await_sent(std::uint32_t number);
__device__ bool await_before(std::uint32_t number);
__device__ bool is_called_off(std::uint32_t number);
__device__ void signal_sent(std::uint32_t number);

/// A warp that runs a part of instruction `number`, or of none: polls until ready() is true in all lanes. False if the
/// control role has called the instruction off, or the runtime was aborted. No time limit: the control role has one.
template <class Ready>
__device__ __forceinline__ bool spin(const DeviceState& dev, std::uint32_t number, Ready&& ready) {
  for (std::uint32_t spins = 1; !__all_sync(0xffffffffu, ready()); ++spins) {
    if (spins % 16) continue;
    bool over = number != kNoInstruction && is_called_off(number);
    // Relaxed: pairs with report_wait() or the host's copy; a warp that sees it only leaves.
    if (spins % 64 == 0) over |= ThreadPlatform::device(dev.control->broadcast.abort).load(Order::relaxed) != 0;
    if (__any_sync(0xffffffffu, over)) return false;  // all lanes at once: a later lane would wait for those that left
  }
  return true;
}

/// The block of a task body on the GPU: kComputeThreads threads. "Collective" calls are made by all of them. Calls marked
/// "compute parts" may be made by each warp alone, in compiled runs.
template <class List>
class GpuBlock : public BlockCore<ThreadPlatform, List>, public ComputeThreads {
  using P = ThreadPlatform;

 public:
  /// `number`: the instruction of a compiled run; its lower bits, which give slot and phase, are enough.
  __device__ GpuBlock(TaskContext& context, BlockShared& shared, unsigned char* scratch, std::uint32_t turn = 0,
                      std::uint32_t number = kNoInstruction)
      : BlockCore<P, List>(context),
        ComputeThreads(shared, turn),
        number_(number),
        scratch_(scratch) {}

  static constexpr bool kOnGpu = true;
  using Lanes = WarpPlatform;  // library use: the platform of a warp, and its threads
  using LaneThreads = OneWarp;

  /// Collective. Memory for n values, shared by the threads of the block until the body returns. Null, and the task fails
  /// with Status::scratch_exhausted, if Options::scratch_bytes and what was borrowed are too small. Tasks of dynamic
  /// and phased runs have the pages of operands beside it.
  template <class T>
  __device__ T* scratch(int n) {
    detail::check_scratch<T>();
    const std::size_t at = (used_ + 15) & ~std::size_t{15};
    used_ = at + sizeof(T) * std::size_t{static_cast<std::uint32_t>(n)};
    if (used_ <= scratch_bytes()) return reinterpret_cast<T*>(scratch_ + at);
    this->fail_with(static_cast<std::uint32_t>(Status::scratch_exhausted));
    return nullptr;
  }

  /// Collective. See OneThread::stream(). In dynamic and phased runs each warp copies ahead where scratch() has left enough
  /// memory, see ring().
  template <class N, class... In, class... Out, class F>
  __device__ void stream(N n, const Reads<In...>& in, const Writes<Out...>& out, F&& f) {
    const std::uint64_t streamed = detail::streamed_bytes(n, in);
    WarpRing mine = ring(streamed, backward_);
    backward_ = !backward_;
    if constexpr (std::is_same_v<N, Share>)
      if (mine.is_there() && streamed >= std::uint64_t{ptx::kLeastCopiedAhead} * n.workers) share_out(mine);
    this->stream_by(mine, n, in, out, f);
    if (mine.was_used()) sync();  // scratch() may give the memory to other warps now
  }
  template <class N, class... In, class F>
  __device__ void stream(N n, const Reads<In...>& in, F&& f) {
    stream(n, in, Writes<>{}, f);
  }
  template <class N, class... In, class T, class Op, class F>
  __device__ T stream_reduce(N n, const Reads<In...>& in, T init, Op&& op, F&& f) {
    backward_ = true;  // what comes next; this pass itself combines in ascending order
    return this->reduce_by(ring(detail::streamed_bytes(n, in), false), n, in, init, op,
                           f);  // in which all threads meet behind the pass
  }

  /// Library use: the begin of all scratch memory, whoever scratch() has given it to.
  __device__ unsigned char* used_scratch() const { return near(scratch_); }
  /// Library use: the bytes that scratch() can give in all.
  __device__ std::uint32_t scratch_bytes() const { return pages_ + dev().scratch_bytes + borrowed_; }

  /// Collective. See CpuBlock::spawn_n().
  template <class Make>
  [[nodiscard]] __device__ std::uint32_t spawn_n(std::uint32_t n, Make&& make, Priority priority = Priority::inherit) {
    return this->spawn_group(*this, n, make, priority);
  }

  /// Library use: calls f with the block of a warp task on the first warp. The others go on at once; a sync() of all ends the
  /// body of each task.
  template <class F>
  __device__ void on_one_warp(F&& f) const {
    if (warp() != 0) return;
    WarpBlock<List> one(*this->context_, scratch_, warp_scratch_bytes(dev()));
    f(one);
  }

  /// Collective, for bodies that hand nothing over: adds the places of handoffs, kHandoffs * kHandoffBytes bytes, to what
  /// scratch() gives. Waits until the store warp has read what earlier tasks left there. A warp that ends may begin the next
  /// task's handoffs at once, so the body ends its use of scratch with a sync().
  __device__ void borrow_handoffs() {
    if (number_ != kNoInstruction) detail::await_taken();
    borrowed_ = kHandoffs * kHandoffBytes;  // they lie behind scratch memory, see handoff_memory()
  }

  /// Library use, of dynamic and phased runs, whose block is made with the memory of the pages: adds those to what scratch()
  /// gives.
  __device__ void borrow_pages() { pages_ = dev().page_count * kPageBytes; }

  /// Library use: whether prefetch() of this task has begun copies, see TaskList::prefetch().
  __device__ bool prefetched() const { return shared_->way.prefetched; }

  /// A non-null pointer that scratch() gave, marked as shared memory for the compiler: accesses through it need no generic
  /// address check.
  template <class T>
  __device__ static T* in_scratch(T* memory) {
    return near(memory);
  }

  /// Loads 16 bytes, aligned to 16, that are read once. The load takes no line of L1, so other loads need not wait for one.
  __device__ static void load_once(std::uint32_t (&to)[4], const void* from) { ptx::load_once(to, from); }
  /// Starts the copy of 16 bytes, both ends aligned to 16, to shared memory. They are there for this thread after
  /// wait_copies(), and for others after a sync() behind that.
  __device__ static void copy16(void* to_shared, const void* from) { ptx::copy16(to_shared, from); }
  /// Closes a group of this thread's copies.
  __device__ static void commit_copies() { ptx::commit_copies(); }
  /// Waits until all but the last `kLeft` groups have landed.
  template <int kLeft>
  __device__ static void wait_copies() {
    ptx::wait_copies<kLeft>();
  }
  /// sums += a * b, with a 16 x 16 and b 16 x 8 in bf16, in the layout over the lanes of PTX's mma.m16n8k16.
  __device__ static void multiply_add(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
    ptx::mma_bf16(sums, a, b);
  }
  /// The same with a and b in half precision.
  __device__ static void multiply_add_half(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
    ptx::mma_half(sums, a, b);
  }

  /// Compute parts: the place where each warp writes its share of the next handoff. Waits for a free place. After writing,
  /// each warp calls producer_commit().
  template <class T>
  __device__ static T* producer_acquire() {
    return static_cast<T*>(detail::acquire_handoff());
  }
  __device__ static void producer_commit() { detail::producer_commit(); }

  __device__ std::uint32_t stamp() const { return near(this->context_)->stamp; }

  // For early tasks, see operands.hpp. All threads of a warp.
  __device__ bool await() const { return number_ == kNoInstruction || detail::await_before(number_); }
  __device__ bool await_sent() const { return number_ == kNoInstruction || detail::await_sent(number_); }
  /// Signals that the task has put all its stamped words. One thread, after a sync() with all threads that have put some.
  /// Relaxed, see flywheel::signal_sent(); the words' stamps tell whether they are there.
  __device__ void sent() const {
    if (number_ != kNoInstruction) detail::signal_sent(number_);
  }
  /// A warp: polls until ready() is true in all lanes. False if a task before this one has failed, or the runtime was
  /// aborted. Then results do not matter, but other warps may not know yet, so the part hands over as often as always.
  template <class Ready>
  __device__ bool spin(Ready&& ready) const {
    return detail::spin(dev(), number_, ready);
  }
  /// Loads or stores two neighbouring stamped words; `at` is aligned to 16 bytes. Relaxed, see ptx::load_two().
  __device__ static StampedPair load_stamped_pair(const Stamped* at) { return ptx::load_two(at); }
  __device__ static void store_stamped_pair(Stamped* at, const StampedPair& pair) { ptx::store_two(at, pair); }

  /// Collective, in grid tasks: all workers meet. False if the run ends here; the body then returns.
  __device__ bool grid_sync() {
    const bool go_on = boundary(Boundary::grid_sync);
    if (go_on) begin_step();
    return go_on;
  }

  // Library use, see phases.hpp. In boundary() the first sync() orders what all threads wrote before thread 0, which goes to
  // the grid barrier; the second gives all threads what it acquired there, and whether to stop.
  __device__ void begin_phases() {
    if (!leader()) return;
    clock() = PhaseClock::of<P>(*this->context_);
    shared_->ends = 0;
  }
  /// The record of a traced task of a dynamic run, which is run like one of a phased run: see PhasedTasks::begin_alone().
  __device__ const TaskRecord& alone() {
    clock().local = kNoLocal;
    return *reinterpret_cast<const TaskRecord*>(this->context_->header);
  }
  __device__ bool boundary(Boundary kind) {
    // Relaxed: pairs with control_phased_run(). Ahead of sync(): all workers wait for what thread 0 does behind it.
    const std::uint32_t asked = leader() ? P::block(shared_->phase_asked).load(Order::relaxed) : 0;
    sync();
    end_step();  // a worker at the grid barrier is not stalled
    if (leader() && !cross_boundary<P>(*this->context_, clock(), kind, asked)) shared_->ends = kEndsHere;
    sync();
    return !(shared_->ends & kEndsHere);
  }
  __device__ void begin_pass(std::uint32_t pass) {
    if (leader()) this->context_->outcome.iteration = pass;
  }
  /// Between two tasks of a phase. Not before a boundary, whose fence would wait for the store.
  __device__ void get_on() const {
    if (leader()) show_progress<P>(*this->context_->dev, this->context_->worker);
  }
  /// Whether the load warp reads ahead of phases, and the compute warps follow by phased_tasks.cuh. If not, they read by
  /// read_record() and load().
  static constexpr bool kLoadWarpLooksAhead = List::template kLooksAhead<GpuBlock, WarpLanes>;
  /// Reads a record, for a load() that follows.
  __device__ void read_record(const TaskRecord& record) {
    static_assert(sizeof(TaskRecord) == 32 * sizeof(std::uint32_t), "a word for each lane of the first warp");
    if (rank() < 32) ahead_ = reinterpret_cast<const std::uint32_t*>(&record)[rank()];
  }
  __device__ const TaskRecord& load(const TaskRecord& record, bool is_read = false) {
    if (!is_read) read_record(record);
    sync();  // all threads have ended their use of phase_record and scratch
    // Relaxed: sync() below orders it for this block. Pairs with the load in control_phased_run(), for reports.
    if (rank() < 32) P::block(reinterpret_cast<std::uint32_t*>(&shared_->phase_record)[rank()]).store(ahead_, Order::relaxed);
    if (leader()) {
      note_outcome<P>(*this->context_, clock());
      this->context_->header = &shared_->phase_record.header;
    }
    begin_step();
    used_ = borrowed_ = 0;
    backward_ = false;
    sync();
    if (leader()) clock().local = shared_->phase_record.header.local;
    return shared_->phase_record;
  }

 protected:
  __device__ const DeviceState& dev() const { return *near(near(this->context_)->dev); }

  std::uint32_t number_;

 private:
  /// This warp's ring for a pass that reads so much: its place is behind the scratch memory that the task has, at the end of
  /// all.
  __device__ WarpRing ring(std::uint64_t streamed, bool backward) const {
    if (streamed < ptx::kLeastCopiedAhead) return {nullptr, warp(), lane(), backward};
    const std::size_t bytes = scratch_bytes() / 16 * 16;
    const bool fits = ptx::kHopper && number_ == kNoInstruction && dev().bulk_copies && used_ + kRingBytes <= bytes;
    return {fits ? near(scratch_) + bytes : nullptr, warp(), lane(), backward};
  }

  /// Collective, in long passes: tells the ring where all workers count the groups of the next pass that are taken. In dynamic
  /// runs each worker keeps to its own share.
  __device__ void share_out(WarpRing& ring) {
    std::uint32_t word = kNoSharedPass;
    if (leader() && near(this->context_)->header == &shared_->phase_record.header) {
      const auto boundary = static_cast<std::uint32_t>(clock().ends.count + clock().meetings.count);
      word = next_shared_pass<P>(dev(), shared_->passes, boundary, this->worker());
    }
    word = this->broadcast(word, 0);
    if (word != kNoSharedPass) ring.share_out(&dev().control->shared_passes[word].value);
  }

  /// Where no register holds what is known of a run across its bodies, it lies in shared memory.
  struct NoClock {};
  __device__ PhaseClock& clock() {
    if constexpr (kLoadWarpLooksAhead) return shared_->clock;
    else return clock_;
  }

  /// A step is odd while a task of this worker runs, and another number for each task. The thread that shows it is not the one
  /// at the grid barrier: no thread waits for this one.
  __device__ static bool shows_steps() { return rank() == 32; }
  __device__ void begin_step() {
    if (shows_steps()) show_step((step() + 2) | 1);
  }
  __device__ void end_step() {
    if (shows_steps()) show_step((step() + 1) & ~1u);
  }
  /// In a register where one holds it: the other threads wait for this one at the next sync().
  __device__ std::uint32_t step() const {
    // Relaxed: only the thread that wrote it reads it here.
    if constexpr (kLoadWarpLooksAhead) return P::block(shared_->phase_step).load(Order::relaxed);
    else return step_;
  }
  __device__ void show_step(std::uint32_t step) {
    // Relaxed: pairs with the load in control_phased_run(), which only compares steps.
    P::block(shared_->phase_step).store(step, Order::relaxed);
    if constexpr (!kLoadWarpLooksAhead) step_ = step;
  }

  unsigned char* scratch_;
  bool backward_ = false;  // the direction of the next stream()
  std::size_t used_ = 0;
  std::uint32_t borrowed_ = 0;  // bytes added behind scratch memory
  std::uint32_t pages_ = 0;     // the same in front of it
  std::uint32_t ahead_ = 0;     // of read_record(): this thread's word of it
  std::uint32_t step_ = 0;      // of step(), where a register holds it
  [[no_unique_address]] std::conditional_t<kLoadWarpLooksAhead, NoClock, PhaseClock> clock_{};  // used by thread 0
};

}  // namespace flywheel::detail
