// The threads of the compute warps, and what they do together: barriers, reductions, scans, votes. GpuBlock (block.cuh) derives
// from ComputeThreads; the counterpart on a CPU worker is OneThread (runtime/records/one_thread.hpp).
#pragma once

#include <flywheel/detail/platform.cuh>
#include <flywheel/detail/ptx.cuh>
#include "../runtime/records/task.hpp"
#include "lanes.cuh"

namespace flywheel::detail {

// The warps of a block: four that serve, eight that compute.
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

/// What a warp passes to the others in a collective call, as words: a copy of bytes of unknown alignment goes byte by byte.
struct alignas(16) Partial {
  std::uint32_t words[4];

  template <class T>
  __device__ void set(const T& value) {
    std::uint32_t copy[kWordsOf<T>] = {};
    memcpy(copy, &value, sizeof(T));
#pragma unroll
    for (std::size_t w = 0; w < kWordsOf<T>; ++w) words[w] = copy[w];
  }
  template <class T>
  __device__ T get() const {
    std::uint32_t copy[kWordsOf<T>];
#pragma unroll
    for (std::size_t w = 0; w < kWordsOf<T>; ++w) copy[w] = words[w];
    T value;
    memcpy(&value, copy, sizeof(T));
    return value;
  }

 private:
  template <class T>
  static constexpr std::size_t kWordsOf = (sizeof(T) + 3) / 4;
};

/// Shared memory that the compute warps of one block use.
struct BlockShared {
  Partial partial[2][kComputeWarps];  // of collective calls; two buffers used in turn, see ComputeThreads::next_partial()
  TaskRecord phase_record;            // record of a phased run's current task
  std::uint32_t phase_step;           // step of a phased run, see PhaseClock; atomic
  bool ends;                          // the phased run ends at this boundary; by thread 0
};

__device__ unsigned char* page_memory();  // defined in roles.cuh

/// "Collective" calls are made by all kComputeThreads threads, in the same order. Their results are the same each time: which
/// values an op combines, and in which order, does not depend on who comes first.
class ComputeThreads : public WarpLanes {
 public:
  static constexpr int kWarps = kComputeWarps;
  __device__ static int rank() { return static_cast<int>(threadIdx.x - kFirstComputeWarp * 32); }
  __host__ __device__ static constexpr int size() { return kComputeThreads; }
  __device__ static bool leader() { return rank() == 0; }
  __device__ static int warp() { return static_cast<int>(threadIdx.x / 32 - kFirstComputeWarp); }
  /// Collective. All threads of the block meet; each sees what the others wrote before.
  __device__ static void sync() { ptx::named_barrier(kComputeBarrier, kComputeThreads); }

  /// Calls f(i) for i = 0..n-1, distributed over the threads of the block. All lanes of a warp call it; it does not wait for
  /// other warps.
  template <class F>
  __device__ void for_each(int n, F&& f) const {
    for (int i = rank(); i < n; i += size()) f(i);
    __syncwarp();  // lanes with one item more rejoin; otherwise the code that follows may run once for each part of the warp
  }

  /// Collective. Combines one value of each thread (at most 16 bytes) in a fixed order; every thread gets the result.
  template <class T, class Op>
  __device__ T reduce(T value, Op&& op) {
    check_exchanged<T>();
#pragma unroll
    for (std::uint32_t distance = 16; distance; distance /= 2) value = op(value, detail::shuffle_down(value, distance));
    auto& partial = next_partial();
    if (rank() % 32 == 0) partial[rank() / 32].set(value);
    sync();
    T total = partial[0].template get<T>();
    for (std::uint32_t w = 1; w < kComputeWarps; ++w) total = op(total, partial[w].template get<T>());
    return total;
  }

  /// Collective. The values of ranks 0 to the calling thread's own, each of at most 16 bytes, combined in the order of ranks. Op
  /// is associative; it need not be commutative. Lanes by scan_lanes(), then all warps before this one, one after the other.
  template <class T, class Op>
  __device__ T inclusive_scan(T value, Op&& op) {
    check_exchanged<T>();
    value = detail::scan_lanes(value, op);
    const auto& partial = pass_on(value, kLanes - 1);
    return warp() ? op(append_warps(partial[0].template get<T>(), 1, partial, op), value) : value;
  }
  /// Collective. `init` and the values of the ranks below the calling thread's, otherwise as inclusive_scan(). Each thread gives
  /// an `init` of its own, mostly the same; rank 0 gets it back.
  template <class T, class Op>
  __device__ T exclusive_scan(T value, Op&& op, std::type_identity_t<T> init) {
    check_exchanged<T>();
    value = detail::scan_lanes(value, op);
    const T before = detail::shuffle_up(value, 1);
    const T first = append_warps(init, 0, pass_on(value, kLanes - 1), op);
    return lane() ? op(first, before) : first;
  }
  /// Collective. The value, at most 16 bytes, of the thread named, modulo size(). All threads name the same.
  template <class T>
  __device__ T broadcast(T value, int from_rank) {
    check_exchanged<T>();
    const std::uint32_t from = static_cast<std::uint32_t>(from_rank) % kComputeThreads;
    auto& partial = next_partial();
    if (rank() == static_cast<int>(from)) partial[0].set(value);
    sync();
    return partial[0].template get<T>();
  }

  /// Collective. All threads meet as in sync(). In how many of them `vote` is true, or whether it is in any, or in all.
  __device__ static int count(bool vote) {
    return static_cast<int>(ptx::named_barrier_count(kComputeBarrier, kComputeThreads, vote));
  }
  __device__ static bool any(bool vote) { return count(vote) != 0; }
  __device__ static bool all(bool vote) { return count(vote) == size(); }

  /// Library use: the buffer of BlockShared::partial used last. It carries over from task to task, because compute warps do
  /// not synchronise between two tasks.
  __device__ std::uint32_t turn() const { return turn_; }

 protected:
  __device__ ComputeThreads(BlockShared& shared, std::uint32_t turn) : shared_(&shared), turn_(turn) {}

  /// `p` marked as shared memory, where contexts and the copy of DeviceState lie. The compiler loses that knowledge for a
  /// block that was passed to a function out of line.
  template <class T>
  __device__ static T* near(T* p) {
    return ptx::as_shared(p, page_memory());
  }

  BlockShared* shared_;

 private:
  /// The buffer for the call that follows, which has one sync(), between its stores and its loads. That is enough with two
  /// buffers: a thread stores to a buffer again in the second call from now, so after the sync() of the next call, and no thread
  /// comes to that one before it has loaded all that this call left. Calls with a barrier and no buffer only order more.
  __device__ Partial (&next_partial())[kComputeWarps] { return near(shared_)->partial[turn_ ^= 1]; }
  /// Passes the value that one lane of each warp has to all threads.
  template <class T>
  __device__ const Partial (&pass_on(const T& value, int from_lane))[kComputeWarps] {
    auto& partial = next_partial();
    if (lane() == from_lane) partial[warp()].set(value);
    sync();
    return partial;
  }
  /// `total`, then what the warps from `first` to the one before the calling thread's have passed on.
  template <class T, class Op>
  __device__ static T append_warps(T total, int first, const Partial (&partial)[kComputeWarps], Op&& op) {
    for (int w = first; w < warp(); ++w) total = op(total, partial[w].template get<T>());
    return total;
  }

  std::uint32_t turn_;
};

}  // namespace flywheel::detail
