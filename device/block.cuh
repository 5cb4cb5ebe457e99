// The block of a GPU worker: its compute warps, as a task body sees them.
#pragma once

#include <flywheel/detail/group.cuh>
#include <flywheel/detail/platform.cuh>
#include <flywheel/detail/ptx.cuh>
#include "../runtime/compiled/operands.hpp"
#include "../runtime/compiled/phases.hpp"

namespace flywheel {

// Four warps that serve, eight that compute.
inline constexpr std::uint32_t kControlWarp = 0;
inline constexpr std::uint32_t kPollerWarp = 1;
inline constexpr std::uint32_t kLoadWarp = 2;
inline constexpr std::uint32_t kStoreWarp = 3;
inline constexpr std::uint32_t kFirstComputeWarp = 4;
inline constexpr std::uint32_t kComputeWarps = 8;
inline constexpr std::uint32_t kComputeThreads = kComputeWarps * 32;
inline constexpr std::uint32_t kBlockThreads = (kFirstComputeWarp + kComputeWarps) * 32;
inline constexpr std::uint32_t kComputeBarrier = 1;
inline constexpr std::uint32_t kNoInstruction = 0xffffffffu;

/// Shared memory that the compute warps of one block work with.
struct BlockShared {
  alignas(16) unsigned char partial[2][kComputeWarps][16];  // of reduce(), two in turn
  TaskRecord phase_record;                                  // the record of a phased run's current task
  std::uint32_t phase_step;                                 // of a phased run, see PhaseClock
  bool ends;                                                // the phased run, here
};

__device__ unsigned char* page_memory();  // see roles.cuh

namespace detail {
/// Any small plain value from another lane, word by word.
template <class T, class Exchange>
__device__ T exchange(T value, Exchange&& exchange_word) {
  constexpr std::size_t kWords = (sizeof(T) + 3) / 4;
  std::uint32_t words[kWords] = {};
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (std::size_t w = 0; w < kWords; ++w) words[w] = exchange_word(words[w]);
  memcpy(&value, words, sizeof(T));
  return value;
}
template <class T>
__device__ T shuffle_down(T value, std::uint32_t distance) {
  return exchange(value, [distance](std::uint32_t word) { return __shfl_down_sync(0xffffffffu, word, distance); });
}
template <class T>
__device__ T shuffle_xor(T value, std::uint32_t mask) {
  return exchange(value, [mask](std::uint32_t word) { return __shfl_xor_sync(0xffffffffu, word, mask); });
}
template <class T>
__device__ T shuffle(T value, std::uint32_t lane) {
  return exchange(value, [lane](std::uint32_t word) { return __shfl_sync(0xffffffffu, word, lane); });
}

// See handoff.cuh.
__device__ void* hand_over_place();
__device__ void await_taken();
__device__ void pass_on();
__device__ bool await_sent(std::uint32_t number);
__device__ bool await_before(std::uint32_t number);
__device__ bool is_called_off(std::uint32_t number);
__device__ void signal_sent(std::uint32_t number);

/// A warp with a part of instruction `number`, if any, until ready() is so in all lanes. False if the instruction was called
/// off, or the runtime was aborted.
template <class Ready>
__device__ __forceinline__ bool spin(const DeviceState& dev, std::uint32_t number, Ready&& ready) {
  for (std::uint32_t spins = 1; !__all_sync(0xffffffffu, ready()); ++spins) {
    if (spins % 16) continue;
    bool over = number != kNoInstruction && is_called_off(number);
    // Relaxed: who sees it leaves.
    if (spins % 64 == 0) over |= ThreadPlatform::device(dev.control->broadcast.abort).load(Order::relaxed) != 0;
    if (__any_sync(0xffffffffu, over)) return false;  // together: a lane that saw it later would wait for those that have left
  }
  return true;
}
}  // namespace detail

template <class List>
class GpuBlock : public BlockCore<ThreadPlatform, List> {
  using P = ThreadPlatform;

 public:
  /// `number`: of a compiled run's instruction, at least its lower bits, which tell slot and phase.
  __device__ GpuBlock(TaskContext& context, BlockShared& shared, unsigned char* scratch, std::uint32_t turn = 0,
                      std::uint32_t number = kNoInstruction)
      : BlockCore<P, List>(context), shared_(&shared), scratch_(scratch), turn_(turn), number_(number) {}
  /// Library use: of reduce(). It goes on from task to task of warps that do not meet between them.
  __device__ std::uint32_t turn() const { return turn_; }

  static constexpr bool kOnGpu = true;
  __device__ static int rank() { return static_cast<int>(threadIdx.x - kFirstComputeWarp * 32); }
  __host__ __device__ static constexpr int size() { return kComputeThreads; }
  __device__ static bool leader() { return rank() == 0; }
  __device__ static void sync() { ptx::named_barrier(kComputeBarrier, kComputeThreads); }

  /// f(i) for i = 0..n-1, shared out over the threads of the block.
  template <class F>
  __device__ void for_each(int n, F&& f) const {
    for (int i = rank(); i < n; i += size()) f(i);
  }

  /// Combines one value of each thread (at most 16 bytes) in a fixed order; every thread gets the result.
  template <class T, class Op>
  __device__ T reduce(T value, Op&& op) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16, "reduce() takes plain values of up to 16 bytes");
#pragma unroll
    for (std::uint32_t distance = 16; distance; distance /= 2)
      value = op(value, detail::shuffle_down(value, distance));
    auto& partial = shared_->partial[turn_ ^= 1];
    if (rank() % 32 == 0) memcpy(partial[rank() / 32], &value, sizeof(T));
    sync();  // the other buffer is free again: everybody has read it before coming here
    T total;
    memcpy(&total, partial[0], sizeof(T));
    for (std::uint32_t w = 1; w < kComputeWarps; ++w) {
      memcpy(&value, partial[w], sizeof(T));
      total = op(total, value);
    }
    return total;
  }

  /// Collective. Memory for n values, shared by the threads of the block until the body returns. Null (and the task
  /// fails) if Options::scratch_bytes (and what was borrowed) is too small.
  template <class T>
  __device__ T* scratch(int n) {
    const std::size_t at = (used_ + 15) & ~std::size_t{15};
    used_ = at + sizeof(T) * static_cast<std::size_t>(n);
    if (used_ <= dev().scratch_bytes + borrowed_) return reinterpret_cast<T*>(scratch_ + at);
    this->fail_with(static_cast<std::uint32_t>(Status::scratch_exhausted));
    return nullptr;
  }

  /// Collective, for bodies that hand nothing over: from here on scratch() gives the places of handoffs, too, kHandoffs *
  /// kHandoffBytes more. Waits until the store warp has read what tasks before this one left there. The next task's handoffs may come
  /// as soon as a warp ends, so the threads meet in a last sync(), and none of them touches scratch after it.
  __device__ void borrow_handoffs() {
    if (number_ != kNoInstruction) detail::await_taken();
    borrowed_ = kHandoffs * kHandoffBytes;  // they lie behind scratch, see handoff_memory()
  }

  /// A pointer that scratch() gave and that is not null: each access would else look up which memory that is.
  template <class T>
  __device__ static T* in_scratch(T* memory) { return near(memory); }

  // Compute parts: what a warp does alone.
  __device__ static int lane() { return static_cast<int>(threadIdx.x % 32); }
  __device__ static int warp() { return static_cast<int>(threadIdx.x / 32 - kFirstComputeWarp); }
  static constexpr int kWarps = kComputeWarps;
  __device__ static void sync_warp() { __syncwarp(); }
  template <class T>
  __device__ static T shuffle_xor(T value, int mask) { return detail::shuffle_xor(value, static_cast<std::uint32_t>(mask)); }
  template <class T>
  __device__ static T shuffle(T value, int lane) { return detail::shuffle(value, static_cast<std::uint32_t>(lane)); }
  /// 16 bytes, aligned, of what is read once: other loads need not wait for room in L1.
  __device__ static void load_once(std::uint32_t (&to)[4], const void* from) { ptx::load_once(to, from); }
  /// sums += a * b, with a 16 x 16 and b 16 x 8 in bf16, laid out over the lanes as PTX's mma.m16n8k16 has them.
  __device__ static void multiply_add(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
    ptx::mma_bf16(sums, a, b);
  }
  /// The same in half precision.
  __device__ static void multiply_add_half(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
    ptx::mma_half(sums, a, b);
  }

  /// Compute parts: where each warp writes its share of what the store part will take. Waits for a free place. After
  /// writing, each warp calls pass_on().
  template <class T>
  __device__ static T* hand() {
    return static_cast<T*>(detail::hand_over_place());
  }
  __device__ static void pass_on() { detail::pass_on(); }

  __device__ std::uint32_t stamp() const { return near(this->context_)->stamp; }

  // Early tasks, see operands.hpp. All threads of a warp.
  __device__ bool await() const { return number_ == kNoInstruction || detail::await_before(number_); }
  __device__ bool await_sent() const { return number_ == kNoInstruction || detail::await_sent(number_); }
  /// One thread, after a sync() with all that have put stamped words.
  __device__ void sent() const {
    if (number_ != kNoInstruction) detail::signal_sent(number_);
  }
  /// A warp, until ready() is so in all lanes. False if a task before this one has failed, or the runtime was aborted: then
  /// it does not matter what is computed, but other warps may not know yet: hand over as often as they do.
  template <class Ready>
  __device__ bool spin(Ready&& ready) const {
    return detail::spin(dev(), number_, ready);
  }
  /// `at` is aligned to 16 bytes.
  __device__ static StampedPair load_stamped_pair(const Stamped* at) { return ptx::load_two(at); }
  __device__ static void store_stamped_pair(Stamped* at, const StampedPair& pair) { ptx::store_two(at, pair); }

  /// Collective. Grid tasks: all workers meet. False if the run ends here: return from the body.
  __device__ bool grid_sync() {
    const bool go_on = boundary(false);
    if (go_on) begin_step();
    return go_on;
  }

  // Library use: see phases.hpp. The first sync gathers what all threads wrote, thread 0 goes to the grid
  // barrier, the second lets everybody see what it acquired there, and whether to stop.
  __device__ void begin_phases() {
    clock_ = PhaseClock::of<P>(*this->context_);
    if (leader()) shared_->ends = false;
  }
  __device__ bool boundary(bool end_of_pass) {
    sync();
    if (shows_steps()) show_step(clock_.end_step());  // who waits for others does not stall
    if (leader() && !meet<P>(*this->context_, clock_, end_of_pass)) shared_->ends = true;
    sync();
    return !shared_->ends;
  }
  __device__ void begin_pass(std::uint32_t pass) {
    if (leader()) this->context_->outcome.iteration = pass;
  }
  /// Between two tasks of a phase. Not before a boundary, whose fence would wait for it.
  __device__ void get_on() const {
    if (leader()) show_progress<P>(*this->context_->dev, this->context_->worker);
  }
  __device__ const TaskRecord& load(const TaskRecord& record) {
    sync();  // the last body is done with phase_record and scratch
    const auto* from = reinterpret_cast<const std::uint32_t*>(&record);
    auto* to = reinterpret_cast<std::uint32_t*>(&shared_->phase_record);
    if (rank() < 32) P::block(to[rank()]).store(from[rank()], Order::relaxed);  // who watches for slow tasks may look at it
    if (leader()) {
      note_outcome<P>(*this->context_, clock_);
      clock_.local = record.header.local;
      this->context_->header = &shared_->phase_record.header;
    }
    begin_step();
    used_ = borrowed_ = 0;
    sync();
    return shared_->phase_record;
  }

 protected:
  /// What is in shared memory, as contexts and their world are: of a block that went through a call the compiler does not know it.
  template <class T>
  __device__ static T* near(T* p) { return ptx::as_shared(p, page_memory()); }
  __device__ const DeviceState& dev() const { return *near(near(this->context_)->dev); }

 private:
  /// Another thread than the one at the meeting: nobody waits for this one.
  __device__ static bool shows_steps() { return rank() == 32; }
  __device__ void begin_step() {
    if (shows_steps()) show_step(clock_.begin_step());
  }
  /// Relaxed: pairs with GpuExecutor::wait_phases(), which only sees it move.
  __device__ void show_step(std::uint32_t step) const { P::block(shared_->phase_step).store(step, Order::relaxed); }

  BlockShared* shared_;
  unsigned char* scratch_;
  std::size_t used_ = 0;
  std::uint32_t borrowed_ = 0;  // bytes behind scratch
  std::uint32_t turn_;

 protected:
  std::uint32_t number_;

 private:
  PhaseClock clock_{};  // thread 0's, but for the steps: see shows_steps()
};

}  // namespace flywheel
