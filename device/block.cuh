// The block of a GPU worker: its compute warps, as a task body sees them.
#pragma once

#include "device/platform.cuh"
#include "device/ptx.cuh"
#include "runtime/phases.hpp"

namespace flywheel {

inline constexpr std::uint32_t kControlWarp = 0;
inline constexpr std::uint32_t kDoorWarp = 1;
inline constexpr std::uint32_t kFirstComputeWarp = 2;
inline constexpr std::uint32_t kComputeWarps = 8;
inline constexpr std::uint32_t kComputeThreads = kComputeWarps * 32;
inline constexpr std::uint32_t kBlockThreads = (kFirstComputeWarp + kComputeWarps) * 32;
inline constexpr std::uint32_t kComputeBarrier = 1;

/// Shared memory that the compute warps of one block work with.
struct BlockShared {
  alignas(16) unsigned char partial[2][kComputeWarps][16];  // of reduce(), two in turn
  TaskRecord phase_record;                                  // the record of a phased run's current task
  bool go_on;
};

namespace detail {
/// Any small plain value from another lane, word by word.
template <class T>
__device__ T shuffle_down(T value, std::uint32_t distance) {
  constexpr std::size_t kWords = (sizeof(T) + 3) / 4;
  std::uint32_t words[kWords] = {};
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (std::size_t w = 0; w < kWords; ++w) words[w] = __shfl_down_sync(0xffffffffu, words[w], distance);
  memcpy(&value, words, sizeof(T));
  return value;
}
}  // namespace detail

template <class List>
class GpuBlock : public BlockCore<ThreadPlatform, List> {
  using P = ThreadPlatform;

 public:
  __device__ GpuBlock(TaskContext& context, BlockShared& shared, unsigned char* scratch)
      : BlockCore<P, List>(context), shared_(&shared), scratch_(scratch) {}

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
  /// fails) if Options::scratch_bytes is too small.
  template <class T>
  __device__ T* scratch(int n) {
    const std::size_t at = (used_ + 15) & ~std::size_t{15};
    used_ = at + sizeof(T) * static_cast<std::size_t>(n);
    if (used_ <= this->context_->world->scratch_bytes) return reinterpret_cast<T*>(scratch_ + at);
    this->fail_with(static_cast<std::uint32_t>(Status::scratch_exhausted));
    return nullptr;
  }

  /// Collective. Grid tasks: all workers meet. False if the run ends here: return from the body.
  __device__ bool grid_sync() { return boundary(false); }

  // Library use: see phases.hpp. The first sync gathers what all threads wrote, thread 0 goes to the grid
  // barrier, the second lets everybody see what it acquired there, and whether to stop.
  __device__ void begin_phases() { clock_ = PhaseClock::of<P>(*this->context_); }
  __device__ bool boundary(bool end_of_pass) {
    sync();
    if (leader()) shared_->go_on = meet<P>(*this->context_, clock_, end_of_pass);
    sync();
    return shared_->go_on;
  }
  __device__ void begin_pass(std::uint32_t pass) {
    if (leader()) this->context_->asked.iteration = pass;
  }
  __device__ const TaskRecord& load(const TaskRecord& record) {
    sync();  // the last body is done with phase_record and scratch
    const auto* from = reinterpret_cast<const std::uint32_t*>(&record);
    auto* to = reinterpret_cast<std::uint32_t*>(&shared_->phase_record);
    if (rank() < 32) to[rank()] = from[rank()];
    if (leader()) {
      note_asked<P>(*this->context_, clock_);
      clock_.local = record.header.local;
      this->context_->header = &shared_->phase_record.header;
    }
    used_ = 0;
    sync();
    return shared_->phase_record;
  }

 private:
  BlockShared* shared_;
  unsigned char* scratch_;
  std::size_t used_ = 0;
  std::uint32_t turn_ = 0;
  PhaseClock clock_{};  // thread 0's
};

}  // namespace flywheel
