// WarpBlock: one compute warp, as the body of a warp task sees it (flywheel::Warp). block.cuh includes it. What a body may call
// on any processor is in BlockCore (runtime/dynamic/block.hpp).
#pragma once

#include "../runtime/dynamic/block.hpp"
#include "collectives.cuh"

namespace flywheel::detail {

/// The threads of a block that is one warp. "Collective" calls are made by all of its lanes, in the same order; as those of
/// larger blocks, they meet as in sync().
class OneWarp : public WarpLanes {
 public:
  static constexpr int kWarps = 1;
  __device__ static int rank() { return lane(); }
  __host__ __device__ static constexpr int size() { return kLanes; }
  __device__ static bool leader() { return rank() == 0; }
  __device__ static int warp() { return 0; }
  /// Collective. All threads of the block meet; each sees what the others wrote before.
  __device__ static void sync() { __syncwarp(); }

  /// Collective. Calls f(i) for i = 0..n-1, distributed over the lanes.
  template <class F>
  __device__ void for_each(int n, F&& f) const {
    for (int i = rank(); i < n; i += size()) f(i);
    __syncwarp();  // lanes with one item more rejoin
  }
  /// Collective. See OneThread::stream().
  template <class N, class... In, class... Out, class F>
  __device__ void stream(N n, const Reads<In...>& in, const Writes<Out...>& out, F&& f) const {
    detail::stream_part<GlobalVectors, kLanes>(rank(), n, in, out, f);
    __syncwarp();  // as in for_each()
  }
  template <class N, class... In, class F>
  __device__ void stream(N n, const Reads<In...>& in, F&& f) const {
    stream(n, in, Writes<>{}, f);
  }
  /// Collective. See OneThread::stream_reduce() and ComputeThreads.
  template <class N, class... In, class T, class Op, class F>
  __device__ T stream_reduce(N n, const Reads<In...>& in, T init, Op&& op, F&& f) const {
    check_exchanged<T>();
    T total = init;
    const std::uint32_t threads = detail::reduce_part<GlobalVectors, kLanes>(rank(), n, in, total, op, f);
    total = detail::shuffle(detail::reduce_lanes(total, 0, threads, op), 0);
    return threads ? op(init, total) : init;
  }

  /// Collective. Combines one value of each thread (at most 16 bytes) in a fixed order; every thread gets the result.
  template <class T, class Op>
  __device__ T reduce(T value, Op&& op) const {
    check_exchanged<T>();
    sync();
#pragma unroll
    for (std::uint32_t distance = 16; distance; distance /= 2) value = op(value, detail::shuffle_down(value, distance));
    return detail::shuffle(value, 0);
  }
  /// Collective. See ComputeThreads.
  template <class T, class Op>
  __device__ static T inclusive_scan(T value, Op&& op) {
    check_exchanged<T>();
    sync();
    return detail::scan_lanes(value, op);
  }
  template <class T, class Op>
  __device__ static T exclusive_scan(T value, Op&& op, std::type_identity_t<T> init) {
    check_exchanged<T>();
    sync();
    const T before = detail::shuffle_up(detail::scan_lanes(value, op), 1);
    return lane() ? op(init, before) : init;
  }
  template <class T>
  __device__ static T broadcast(T value, int from_rank) {
    check_exchanged<T>();
    sync();
    return detail::shuffle(value, static_cast<std::uint32_t>(from_rank));
  }

  /// Collective. All threads meet as in sync(). In how many of them `vote` is true, or whether it is in any, or in all.
  __device__ static int count(bool vote) {
    sync();  // a ballot alone orders nothing
    return __popc(ballot(vote));
  }
  __device__ static bool any(bool vote) { return count(vote) != 0; }
  __device__ static bool all(bool vote) { return count(vote) == size(); }
};

/// A warp's share of a worker's scratch memory.
__device__ inline std::uint32_t warp_scratch_bytes(const DeviceState& dev) {
  return dev.scratch_bytes / kComputeWarps / 16 * 16;
}

template <class List>
class WarpBlock : public BlockCore<ThreadPlatform, List>, public OneWarp {
 public:
  __device__ WarpBlock(TaskContext& context, unsigned char* scratch, std::uint32_t scratch_bytes)
      : BlockCore<ThreadPlatform, List>(context),
        scratch_(scratch),
        scratch_bytes_(scratch_bytes) {}

  static constexpr bool kOnGpu = true;

  /// Collective. Memory for n values, aligned to 16 bytes, shared by the lanes until the body returns. Null, and the task fails
  /// with Status::scratch_exhausted, if an eighth of Options::scratch_bytes is too small.
  template <class T>
  __device__ T* scratch(int n) {
    detail::check_scratch<T>();
    const std::size_t at = (used_ + 15) & ~std::size_t{15};
    used_ = at + sizeof(T) * std::size_t{static_cast<std::uint32_t>(n)};
    if (used_ <= scratch_bytes_) return reinterpret_cast<T*>(scratch_ + at);
    this->fail_with(static_cast<std::uint32_t>(Status::scratch_exhausted));
    return nullptr;
  }
  /// Collective. See CpuBlock::spawn_n().
  template <class Make>
  [[nodiscard]] __device__ std::uint32_t spawn_n(std::uint32_t n, Make&& make, Priority priority = Priority::inherit) {
    return this->spawn_group(*this, n, make, priority);
  }
  /// Nothing to borrow: other warps use it.
  __device__ static void borrow_handoffs() {}

  template <class T = void>
  __device__ static bool grid_sync() {
    static_assert(sizeof(T*) == 0, "grid_sync() is for grid tasks, and a grid task is not a warp task: leave out `Grain`");
    return false;
  }

 private:
  unsigned char* scratch_;
  std::uint32_t scratch_bytes_;
  std::size_t used_ = 0;
};

}  // namespace flywheel::detail
