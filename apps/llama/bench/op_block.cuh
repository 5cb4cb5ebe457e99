// The blocks that a tuned task's parts see when it is an operation of a kernel of its own, launched for one stage of
// the decode: what the resident kernel is measured against. The API is that of GpuBlock and StoreBlock; the rest is as
// simple as one kernel an operation allows: 8 warps compute, one stores, operands come from global memory.
#pragma once

#include <flywheel/task.cuh>

#include <cstring>
#include <type_traits>

#include "apps/llama/tuned/tile.cuh"

namespace llama {

using namespace flywheel;
namespace ptx = flywheel::detail::ptx;
using flywheel::detail::ThreadPlatform;

inline constexpr int kOpComputeThreads = kTileWarps * 32;
inline constexpr int kOpThreads = kOpComputeThreads + 32;

/// What all operations of a step have in common.
struct OpRun {
  std::uint64_t* written;  // the last token that was written
  std::uint32_t* failed;   // code of the first failure, or 0
  std::uint32_t* ended;    // blocks of last operations of a step that have ended, a block a text
  std::uint32_t log_texts;
  std::uint32_t scratch_bytes;
  std::uint32_t pages_ahead;  // pages of operands that a block has on their way to L2
};

/// A task's operands in the packed stream.
struct OpOperandRange {
  std::uint64_t first;
  std::uint32_t bytes;
  std::uint32_t reserved;
};

/// Dynamic shared memory of a block: the places of handoffs, then scratch.
__device__ inline unsigned char* op_memory() {
  extern __shared__ __align__(128) unsigned char memory[];
  return memory;
}
inline constexpr std::uint32_t kOpHandoffBytes = kHandoffs * kHandoffBytes;

/// Operands that another operation wrote, see runtime/compiled/operands.hpp.
struct OpPiece {
  const unsigned char* at;
  std::uint32_t bytes;
};
inline constexpr std::uint32_t kOpMostPieces = 16;

struct OpShared {
  std::uint64_t handed[kHandoffs];      // compute -> store
  std::uint64_t taken[kHandoffs];       // store -> compute
  std::uint32_t handoffs;               // of the compute part: valid with the handoff after the last, which is empty
  std::uint32_t passed_on[kTileWarps];  // handoffs of each warp so far; here, because a body may work on a copy of its block
  std::uint32_t piece_count;
  std::uint32_t stamp;
  OpPiece pieces[kOpMostPieces];
  alignas(16) unsigned char partial[2][kTileWarps][16];  // of reduce(), two in turn

  /// One thread; all others meet it before they use it. A step's stamp is its number: what an operation's blocks leave to each
  /// other shows if it is of this step. The first operation of a step begins when the step before has ended, and a block of
  /// the last counts itself when it has read the stamp, so all read the same.
  __device__ void init(const OpRun& run) {
    stamp = 1 + (ThreadPlatform::device(*run.ended).load(Order::relaxed) >> run.log_texts);
    handoffs = ~0u;
    for (std::uint32_t& count : passed_on) count = 0;
    piece_count = 0;
    for (std::uint32_t h = 0; h < kHandoffs; ++h) {
      ptx::mbarrier_init(handed[h], kTileWarps);
      ptx::mbarrier_init(taken[h], 1);
    }
  }
};

namespace op {
/// No time limit: both ends are warps of one block that do nothing but arithmetic in between.
__device__ inline void wait(std::uint64_t& barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_test(barrier, parity)) {}
}

/// Brings a page to L2 while others are read (from compute capability 9.0 on). `bytes` is a multiple of 16.
__device__ inline void prefetch(const unsigned char* page, std::uint32_t bytes) {
  if constexpr (ptx::kHopper) asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(page), "r"(bytes) : "memory");
}

/// Programmatic dependent launch: the next operation's blocks may come while this one goes on...
__device__ inline void launch_dependents() {
  if constexpr (ptx::kHopper) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
/// ...and this one's wait here until all that came before has ended and can be seen. Without such a launch: no effect.
__device__ inline void wait_for_last_operation() {
  if constexpr (ptx::kHopper) asm volatile("griddepcontrol.wait;" ::: "memory");
}
}  // namespace op

/// One warp's view of a task's operands, where they lie: the packed pages, then the pieces it depends on.
class OpOperands {
 public:
  __device__ OpOperands(const OpShared& shared, const unsigned char* at, std::uint32_t bytes, std::uint32_t pages_ahead)
      : shared_(&shared),
        at_(at),
        end_(at + bytes),
        ahead_(pages_ahead) {}

  /// One thread, before the first consumer_wait().
  __device__ void prefetch_first() const {
    for (std::uint32_t p = 0; p < ahead_; ++p) prefetch(at_ + p * kPageBytes);
  }
  __device__ const unsigned char* consumer_wait() {
    if (at_ >= end_ && !next_piece()) return nullptr;
    const unsigned char* page = at_;
    at_ += kPageBytes;
    if (ahead_ && threadIdx.x == 0) prefetch(page + ahead_ * kPageBytes);
    return page;
  }
  __device__ static void consumer_release() {}
  __device__ static void renew() {}

 private:
  __device__ void prefetch(const unsigned char* page) const {
    if (page >= end_) return;
    const auto left = static_cast<std::uint32_t>(end_ - page);
    op::prefetch(page, left < kPageBytes ? left : kPageBytes);
  }

  __device__ bool next_piece() {
    if (piece_ == shared_->piece_count) return false;
    at_ = shared_->pieces[piece_].at;
    end_ = at_ + shared_->pieces[piece_++].bytes;
    return true;
  }

  const OpShared* shared_;
  const unsigned char* at_;
  const unsigned char* end_;
  std::uint32_t ahead_;
  std::uint32_t piece_ = 0;
};

/// One thread: takes note of the pieces that a task depends on.
class OpFetch {
 public:
  __device__ explicit OpFetch(OpShared& shared) : shared_(shared) {}
  __device__ void operator()(const void* at, std::uint32_t bytes) const {
    if (bytes && shared_.piece_count < kOpMostPieces)
      shared_.pieces[shared_.piece_count++] = {static_cast<const unsigned char*>(at), bytes};
  }

 private:
  OpShared& shared_;
};

/// What bodies ask of either block.
class OpBlockCore {
 public:
  static constexpr bool kOnGpu = true;
  __device__ OpBlockCore(const OpRun& run, const OpShared& shared) : run_(run), stamp_(shared.stamp) {}

  __device__ void fail(std::uint32_t code) const { atomicCAS(run_.failed, 0u, code); }
  template <class T>
  __device__ bool emit(T value) const {
    static_assert(sizeof(T) == sizeof *run_.written, "an operation streams 8 bytes at a time");
    memcpy(run_.written, &value, sizeof(T));
    return true;
  }
  __device__ void stop() const {}  // the host launches as many steps as it wants
  // An operation begins when all that it reads is there.
  __device__ static bool await() { return true; }
  __device__ static bool await_sent() { return true; }
  __device__ static void sent() {}
  __device__ std::uint32_t stamp() const { return stamp_; }
  template <class Ready>
  __device__ static bool spin(Ready&& ready) {
    while (!__all_sync(0xffffffffu, ready())) {}
    return true;
  }
  __device__ static StampedPair load_stamped_pair(const Stamped* at) { return ptx::load_two(at); }
  __device__ static void store_stamped_pair(Stamped* at, const StampedPair& pair) { ptx::store_two(at, pair); }
  template <class T>
  __device__ static T shuffle_xor(T value, int mask) {
    return flywheel::detail::shuffle_xor(value, static_cast<std::uint32_t>(mask));
  }
  template <class T>
  __device__ static T shuffle(T value, int lane) {
    return flywheel::detail::shuffle(value, static_cast<std::uint32_t>(lane));
  }

 protected:
  const OpRun& run_;

 private:
  std::uint32_t stamp_;
};

/// The 8 warps of a compute part or of a portable body.
class OpBlock : public OpBlockCore {
 public:
  __device__ OpBlock(const OpRun& run, OpShared& shared) : OpBlockCore(run, shared), shared_(shared) {}

  static constexpr int kWarps = kTileWarps;
  __device__ static int rank() { return static_cast<int>(threadIdx.x); }
  __host__ __device__ static constexpr int size() { return kOpComputeThreads; }
  __device__ static bool leader() { return rank() == 0; }
  __device__ static int lane() { return rank() % 32; }
  __device__ static int warp() { return rank() / 32; }
  __device__ static void sync() { ptx::named_barrier(1, kOpComputeThreads); }
  __device__ static void sync_warp() { __syncwarp(); }

  template <class F>
  __device__ void for_each(int n, F&& f) const {
    for (int i = rank(); i < n; i += size()) f(i);
    __syncwarp();  // as in GpuBlock::for_each()
  }
  __device__ static void load_once(std::uint32_t (&to)[4], const void* from) { ptx::load_once(to, from); }
  __device__ static void multiply_add_half(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
    ptx::mma_half(sums, a, b);
  }

  /// In the order of GpuBlock::reduce().
  template <class T, class Op>
  __device__ T reduce(T value, Op&& combine) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16, "reduce() takes plain values of up to 16 bytes");
#pragma unroll
    for (std::uint32_t distance = 16; distance; distance /= 2)
      value = combine(value, flywheel::detail::shuffle_down(value, distance));
    auto& partial = shared_.partial[turn_ ^= 1];
    if (lane() == 0) memcpy(partial[warp()], &value, sizeof(T));
    sync();
    T total;
    memcpy(&total, partial[0], sizeof(T));
    for (int w = 1; w < kWarps; ++w) {
      memcpy(&value, partial[w], sizeof(T));
      total = combine(total, value);
    }
    return total;
  }

  template <class T>
  __device__ static T* in_scratch(T* memory) {
    return memory;
  }
  template <class T>
  __device__ T* scratch(int n) {
    const std::size_t at = (used_ + 15) & ~std::size_t{15};
    used_ = at + sizeof(T) * static_cast<std::size_t>(n);
    if (used_ <= run_.scratch_bytes + borrowed_) return reinterpret_cast<T*>(op_memory() + kOpHandoffBytes - borrowed_ + at);
    fail(kScratchExhausted);
    return nullptr;
  }
  /// Before scratch(). No operation before this one has left any.
  __device__ void borrow_handoffs() { borrowed_ = kOpHandoffBytes; }

  template <class T>
  __device__ T* producer_acquire() const {
    const std::uint32_t count = shared_.passed_on[warp()], slot = count % kHandoffs, used = count / kHandoffs;
    if (used) op::wait(shared_.taken[slot], (used - 1) & 1);  // pairs with OpStoreBlock::consumer_release()
    return reinterpret_cast<T*>(op_memory() + slot * kHandoffBytes);
  }
  __device__ void producer_commit() {
    __syncwarp();  // all lanes have written
    if (lane() == 0)
      ptx::mbarrier_arrive(
          shared_.handed[shared_.passed_on[warp()]++ % kHandoffs]);  // pairs with OpStoreBlock::consumer_wait()
    __syncwarp();                                                    // the count, for all lanes
  }
  /// After a compute part that has a store part. All warps write the same number.
  __device__ void end() {
    producer_acquire<void>();
    if (lane() == 0) ThreadPlatform::block(shared_.handoffs).store(shared_.passed_on[warp()], Order::relaxed);
    producer_commit();
  }

  static constexpr std::uint32_t kScratchExhausted = 0xffffffffu;  // a failure code that no task has

 private:
  OpShared& shared_;
  std::size_t used_ = 0;
  std::uint32_t borrowed_ = 0;
  std::uint32_t turn_ = 0;
};

/// The warp of a store part.
class OpStoreBlock : public OpBlockCore {
 public:
  __device__ OpStoreBlock(const OpRun& run, OpShared& shared) : OpBlockCore(run, shared), shared_(shared) {}

  __device__ static int rank() { return static_cast<int>(threadIdx.x % 32); }
  __device__ static int lane() { return rank(); }
  __host__ __device__ static constexpr int size() { return 32; }
  __device__ static bool leader() { return rank() == 0; }
  __device__ static void sync() { __syncwarp(); }
  __device__ static bool any(bool vote) { return __any_sync(0xffffffffu, vote); }
  template <class F>
  __device__ void for_each(int n, F&& f) const {
    for (int i = rank(); i < n; i += size()) f(i);
    __syncwarp();  // as in GpuBlock::for_each()
  }

  template <class T>
  __device__ const T* consumer_wait() const {
    const std::uint32_t slot = taken_ % kHandoffs;
    op::wait(shared_.handed[slot], taken_ / kHandoffs & 1);
    // A warp that is done may have written it long before the others: then it is still more than `taken_`.
    if (taken_ == ThreadPlatform::block(shared_.handoffs).load(Order::relaxed)) return nullptr;
    return reinterpret_cast<const T*>(op_memory() + slot * kHandoffBytes);
  }
  __device__ void consumer_release() {
    __syncwarp();
    if (lane() == 0) ptx::mbarrier_arrive(shared_.taken[taken_ % kHandoffs]);  // pairs with OpBlock::producer_acquire()
    ++taken_;
  }

 private:
  OpShared& shared_;
  std::uint32_t taken_ = 0;
};

}  // namespace llama
