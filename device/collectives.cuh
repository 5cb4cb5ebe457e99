// What the threads of a block do together: barriers, reductions, scans, votes. Of a warp: WarpLanes, for all blocks. Of the
// compute warps: ComputeThreads, for GpuBlock (block.cuh includes it); OneThread (runtime/records/one_thread.hpp) is the
// counterpart on a CPU worker.
#pragma once

#include <cstring>

#include <flywheel/detail/platform.cuh>
#include <flywheel/detail/ptx.cuh>
#include "../runtime/base/exchanged.hpp"
#include "../runtime/compiled/phases.hpp"
#include "stream/stream_ring.cuh"

namespace flywheel::detail {

// The warps of a block: four that serve, eight that compute.
inline constexpr std::uint32_t kControlWarp = 0;
inline constexpr std::uint32_t kPollerWarp = 1;
inline constexpr std::uint32_t kLoadWarp = 2;
inline constexpr std::uint32_t kStoreWarp = 3;
inline constexpr std::uint32_t kFirstComputeWarp = 4;
inline constexpr std::uint32_t kComputeWarps = kWorkerWarps;
inline constexpr std::uint32_t kComputeThreads = kComputeWarps * 32;
inline constexpr std::uint32_t kBlockThreads = (kFirstComputeWarp + kComputeWarps) * 32;
inline constexpr std::uint32_t kComputeBarrier = 1;
inline constexpr std::uint32_t kNoInstruction = 0xffffffffu;

/// Exchanges a plain value between lanes, 4 bytes at a time.
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
__device__ T shuffle_up(T value, std::uint32_t distance) {
  return exchange(value, [distance](std::uint32_t word) { return __shfl_up_sync(0xffffffffu, word, distance); });
}
template <class T>
__device__ T shuffle_xor(T value, std::uint32_t mask) {
  return exchange(value, [mask](std::uint32_t word) { return __shfl_xor_sync(0xffffffffu, word, mask); });
}
template <class T>
__device__ T shuffle(T value, std::uint32_t lane) {
  return exchange(value, [lane](std::uint32_t word) { return __shfl_sync(0xffffffffu, word, lane); });
}

/// Inclusive scan over the lanes: log2(32) steps, in each of which a lane puts the value of a lane before it, of twice the
/// distance each time, in front of its own. Each pair is combined in the order of lanes, so op need not be commutative.
template <class T, class Op>
__device__ T scan_lanes(T value, Op&& op) {
  const std::uint32_t lane = threadIdx.x % 32;
#pragma unroll
  for (std::uint32_t distance = 1; distance < 32; distance *= 2) {
    const T before = detail::shuffle_up(value, distance);
    if (lane >= distance) value = op(before, value);
  }
  return value;
}

/// The values of those lanes of a warp of ranks from `first` on whose rank is below `threads`, combined in a tree; lane 0 gets
/// the result. If there are none, its own value.
template <class T, class Op>
__device__ T reduce_lanes(T value, std::uint32_t first, std::uint32_t threads, Op&& op) {
  const std::uint32_t rank = first + threadIdx.x % 32;
#pragma unroll
  for (std::uint32_t distance = 16; distance; distance /= 2) {
    const T other = detail::shuffle_down(value, distance);
    if (rank + distance < threads) value = op(value, other);
  }
  return value;
}

/// What all blocks on a GPU have of a warp. All lanes of the warp call. Votes and exchanges order no memory: sync_warp() does.
struct WarpLanes {
  static constexpr int kLanes = 32;  // of a warp
  __device__ static int lane() { return static_cast<int>(threadIdx.x % 32); }
  /// All lanes of the warp meet; each sees what the others wrote before.
  __device__ static void sync_warp() { __syncwarp(); }
  /// The value of lane `lane() ^ mask`.
  template <class T>
  __device__ static T shuffle_xor(T value, int mask) {
    return detail::shuffle_xor(value, static_cast<std::uint32_t>(mask));
  }
  /// The value of the lane named, modulo kLanes.
  template <class T>
  __device__ static T shuffle(T value, int lane) {
    return detail::shuffle(value, static_cast<std::uint32_t>(lane));
  }
  /// The votes of the lanes, lane l in bit l.
  __device__ static std::uint32_t ballot(bool vote) { return __ballot_sync(0xffffffffu, vote); }
  /// Whether `vote` is true in any lane, or in all.
  __device__ static bool any_warp(bool vote) { return __any_sync(0xffffffffu, vote); }
  __device__ static bool all_warp(bool vote) { return __all_sync(0xffffffffu, vote); }
};

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

/// The phase that runs, and the one after it.
inline constexpr std::uint32_t kPhasesAhead = 2;

/// What the load warp has read of a phased run's phases, see look_ahead.cuh. The n-th phase of a run has entry
/// n % kPhasesAhead.
struct PhasesAhead {
  struct Entry {
    Phase phase;
    std::uint32_t pass, number;  // of the phase
    bool is_last;                // of its pass
    bool is_last_of_all;
  };
  std::uint64_t full[kPhasesAhead];      // load warp -> compute warps: an entry is there
  std::uint64_t returned[kPhasesAhead];  // thread 0 -> load warp: the boundary behind the phase is crossed
  Entry entries[kPhasesAhead];
  PhasesBegin begin;               // of the run; by the control thread, before `load_begin`
  std::uint32_t over;              // 1: the run has ended; by the control thread, atomic
  TaskRecord first[kPhasesAhead];  // of each entry: this worker's first task of the phase, if it has one
};

/// A worker's way through the phases that its load warp reads, see phased_tasks.cuh. Plain members: no register holds them
/// across a body. What is not said to be one thread's is ordered by the barriers of all compute threads.
struct PhasedWay {
  PhasesEnd end;            // of thread 0, once the run ends
  std::uint32_t taken;      // the phase's number in the run; of the warp that reads
  std::uint32_t next_task;  // of this worker in the phase; likewise
  bool has_task;            // the record that has been read is one
  bool has_more;            // this worker has tasks in the phase beside it
  bool prefetched;          // the task's prefetch() has begun copies; false outside of phased runs
};

/// What thread 0 tells the others at a boundary of a phased run. One word, so that they test it once.
enum PhasedEnds : std::uint32_t {
  kEndsHere = 1,    // the run ends at this boundary
  kEndsTraced = 2,  // where the load warp looks ahead: it goes on, and is traced
};

/// Passes over shares that a phased run has made, see GpuBlock::share_out(). An interval is what lies between two boundaries,
/// if there are such passes in it. Of thread 0.
struct SharedPasses {
  std::uint32_t boundary;   // before the last interval
  std::uint32_t intervals;  // with the last one
  std::uint32_t count;      // of its passes so far
};
/// Of the passes of odd or even intervals, in none of which any worker is.
template <class P>
__device__ void zero_shared_passes(const DeviceState& dev, std::uint32_t interval) {
  // Relaxed: the next boundary, or the end of the run, releases it before anybody counts there; pairs with WarpRing.
  for (std::uint32_t i = 0; i < kSharedPasses; ++i)
    P::device(dev.control->shared_passes[interval % 2 * kSharedPasses + i].value).store(0, Order::relaxed);
}
inline constexpr std::uint32_t kNoSharedPass = ~0u;
/// Thread 0: counts a pass, behind so many boundaries of the run. Returns its number in ControlWords::shared_passes, or
/// kNoSharedPass for the interval's kSharedPasses-th and later ones. The words of one interval are set to zero in the interval
/// before, which uses others. Out of line: short passes come by, whose code is to be near.
template <class P>
FLYWHEEL_COLD std::uint32_t next_shared_pass(const DeviceState& dev, SharedPasses& passes, std::uint32_t boundary,
                                             std::uint32_t worker) {
  if (!passes.intervals || passes.boundary != boundary) {
    passes = {boundary, passes.intervals + 1, 0};
    if (worker == 0) zero_shared_passes<P>(dev, passes.intervals + 1);
  }
  return passes.count < kSharedPasses ? passes.intervals % 2 * kSharedPasses + passes.count++ : kNoSharedPass;
}

/// Shared memory that the compute warps of one block use.
struct BlockShared {
  Partial partial[2][kComputeWarps];  // of collective calls; two buffers used in turn, see ComputeThreads::next_partial()
  TaskRecord phase_record;            // record of a phased run's current task
  PhasesAhead ahead;
  PhaseClock clock;  // of lists whose phases the load warp reads ahead; of thread 0
  PhasedWay way;
  std::uint32_t phase_step;   // step of a phased run, see GpuBlock::step(); atomic
  std::uint32_t phase_asked;  // AskBits of a phased run, on worker 0; by the control thread, atomic
  std::uint32_t ends;         // PhasedEnds; by thread 0
  SharedPasses passes;
};
// A page of operands more or less, of a worker with eight of them, hangs on some hundred bytes of the kernel's own.
static_assert(sizeof(BlockShared) <= 896, "shared memory is scarce");

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

  /// See OneThread::stream(). All lanes of a warp call it; it does not wait for other warps.
  template <class N, class... In, class... Out, class F>
  __device__ void stream(N n, const Reads<In...>& in, const Writes<Out...>& out, F&& f) const {
    stream_by(NoRing{}, n, in, out, f);
  }
  template <class N, class... In, class F>
  __device__ void stream(N n, const Reads<In...>& in, F&& f) const {
    stream(n, in, Writes<>{}, f);
  }
  /// Collective. See OneThread::stream_reduce(). A thread combines its elements in ascending order, vector by vector, and then
  /// those that it had one by one; the threads' values are combined as reduce() does.
  template <class N, class... In, class T, class Op, class F>
  __device__ T stream_reduce(N n, const Reads<In...>& in, T init, Op&& op, F&& f) {
    return reduce_by(NoRing{}, n, in, init, op, f);
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

  /// Collective. The values of ranks 0 to the calling thread's own, each of at most 16 bytes, combined in the order of ranks.
  /// Op is associative; it need not be commutative. scan_lanes() combines the lanes of each warp; then the warps before the
  /// calling thread's follow one another, and its own lanes follow those.
  template <class T, class Op>
  __device__ T inclusive_scan(T value, Op&& op) {
    check_exchanged<T>();
    value = detail::scan_lanes(value, op);
    const auto& partial = pass_on(value, kLanes - 1);
    const T before = append_warps(partial[0].template get<T>(), 1, partial, op);
    return warp() ? op(before, value) : value;
  }
  /// Collective. `init` and the values of the ranks below the calling thread's, otherwise as inclusive_scan(). All threads pass
  /// the same `init`; rank 0 gets it back.
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

  // stream() and stream_reduce() with a ring of each warp, or NoRing.
  template <class Ring, class N, class... In, class... Out, class F>
  __device__ void stream_by(Ring&& ring, N n, const Reads<In...>& in, const Writes<Out...>& out, F& f) const {
    detail::stream_part<GlobalVectors, kComputeThreads>(rank(), n, in, out, f, ring);
    __syncwarp();  // as in for_each()
  }
  template <class Ring, class N, class... In, class T, class Op, class F>
  __device__ T reduce_by(Ring&& ring, N n, const Reads<In...>& in, T init, Op& op, F& f) {
    check_exchanged<T>();
    T total = init;
    const std::uint32_t threads = detail::reduce_part<GlobalVectors, kComputeThreads>(rank(), n, in, total, op, f, ring);
    total = detail::reduce_lanes(total, warp() * 32, threads, op);
    const auto& partial = pass_on(total, 0);
    for (std::uint32_t w = 0; w * 32 < threads; ++w) init = op(init, partial[w].template get<T>());
    return init;
  }

  BlockShared* shared_;

 private:
  /// The buffer for the next call, which has one sync(), between its stores and its loads. Two buffers make that enough: a
  /// thread stores to this one again in the call after the next, so after the sync() of the next call, and each thread comes to
  /// that sync() after its loads of this call. Calls with a barrier and no buffer only order more. From task to task the same
  /// holds: all warps carry the same turn on, or a sync() parts the tasks.
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
  __device__ static T append_warps(T total, std::uint32_t first, const Partial (&partial)[kComputeWarps], Op&& op) {
#pragma unroll
    for (std::uint32_t w = 0; w < kComputeWarps - 1; ++w) {
      if (w < first) continue;
      const T next = partial[w].template get<T>();  // also what is not needed: so no load waits for another
      if (static_cast<int>(w) < warp()) total = op(total, next);
    }
    return total;
  }

  std::uint32_t turn_;
};

}  // namespace flywheel::detail
