// What compute and store parts of tasks get in an unchecked compiled run: WarpBlock, the block of a store part, and
// PlainParts, which names the types. compiled.cuh includes it; checked.cuh has the same for checked runs.
#pragma once

#include "../../runtime/dynamic/task_list.hpp"
#include "handoff.cuh"
#include "page.cuh"

namespace flywheel::detail {

/// The block of a store part: one warp. Methods that GpuBlock has, too, mean the same for the lanes of the warp.
template <class List>
class WarpBlock : public BlockCore<ThreadPlatform, List>, public WarpLanes {
 public:
  __device__ WarpBlock(TaskContext& context, HandoffConsumer& consumer)
      : BlockCore<ThreadPlatform, List>(context),
        consumer_(consumer) {}
  static constexpr bool kOnGpu = true;
  static constexpr int kWarps = 1;
  __device__ static int rank() { return lane(); }
  __device__ static constexpr int warp() { return 0; }
  __host__ __device__ static constexpr int size() { return 32; }
  __device__ static bool leader() { return rank() == 0; }
  /// All lanes of the store warp meet; each sees what the others wrote before.
  __device__ static void sync() { __syncwarp(); }

  /// Calls f(i) for i = 0..n-1, distributed over the lanes. All lanes.
  template <class F>
  __device__ void for_each(int n, F&& f) const {
    for (int i = rank(); i < n; i += size()) f(i);
    __syncwarp();  // see GpuBlock::for_each()
  }
  /// See OneThread::stream() and stream_reduce(). All lanes.
  template <class N, class... In, class... Out, class F>
  __device__ void stream(N n, const Reads<In...>& in, const Writes<Out...>& out, F&& f) const {
    detail::stream_part<GlobalVectors, 32>(rank(), streamed_count(n), in, out, f);
    __syncwarp();
  }
  template <class N, class... In, class F>
  __device__ void stream(N n, const Reads<In...>& in, F&& f) const {
    stream(n, in, Writes<>{}, f);
  }
  template <class N, class... In, class T, class Op, class F>
  __device__ T stream_reduce(N n, const Reads<In...>& in, T init, Op&& op, F&& f) const {
    check_exchanged<T>();
    T total = init;
    const std::uint32_t threads = detail::reduce_part<GlobalVectors, 32>(rank(), streamed_count(n), in, total, op, f);
    total = shuffle(detail::reduce_lanes(total, 0, threads, op), 0);
    return threads ? op(init, total) : init;
  }
  // For early tasks, see operands.hpp. All lanes.
  __device__ bool await() const { return detail::await_before(consumer_.number()); }
  __device__ bool await_sent() const { return detail::await_sent(consumer_.number()); }
  /// Signals that the task has put all its stamped words. Relaxed, see flywheel::signal_sent(); the words' stamps tell
  /// whether they are there.
  __device__ void sent() const {
    __syncwarp();  // the leader signals after all lanes have put their words
    if (leader()) consumer_.signal_sent();
  }
  /// Waits until ready() is true in all lanes. False if a task before this one has failed, or the runtime was aborted.
  template <class Ready>
  __device__ bool spin(Ready&& ready) const {
    return detail::spin(*this->context_->dev, consumer_.number(), ready);
  }
  /// Loads or stores two neighbouring stamped words; `at` is aligned to 16 bytes. Relaxed, see ptx::load_two().
  __device__ static StampedPair load_stamped_pair(const Stamped* at) { return ptx::load_two(at); }
  __device__ static void store_stamped_pair(Stamped* at, const StampedPair& pair) { ptx::store_two(at, pair); }

  /// Combines one value of each lane; every lane gets the result.
  template <class T, class Op>
  __device__ T reduce(T value, Op&& op) const {
#pragma unroll
    for (int distance = 16; distance; distance /= 2) value = op(value, shuffle_xor(value, distance));
    return value;
  }
  /// The values of lanes 0 to the calling one, combined in the order of lanes.
  template <class T, class Op>
  __device__ static T inclusive_scan(T value, Op&& op) {
    check_exchanged<T>();
    return detail::scan_lanes(value, op);
  }
  /// `init` and the values of the lanes before the calling one.
  template <class T, class Op>
  __device__ static T exclusive_scan(T value, Op&& op, std::type_identity_t<T> init) {
    check_exchanged<T>();
    const T before = detail::shuffle_up(detail::scan_lanes(value, op), 1);
    return leader() ? init : op(init, before);
  }
  /// The value of the lane named, modulo size().
  template <class T>
  __device__ static T broadcast(T value, int from_rank) {
    check_exchanged<T>();
    return shuffle(value, from_rank);
  }
  /// All lanes meet as in sync(). In how many of them `vote` is true, or whether it is in any, or in all.
  __device__ static int count(bool vote) {
    sync();  // each lane sees what the others wrote before; a ballot alone orders nothing
    return __popc(ballot(vote));
  }
  __device__ static bool any(bool vote) { return count(vote) != 0; }
  __device__ static bool all(bool vote) { return count(vote) == size(); }

  /// Waits for the next handoff of the task's compute part (kHandoffBytes of shared memory). Null when the compute part has
  /// ended and all its handoffs were taken.
  template <class T>
  __device__ const T* consumer_wait() {
    return static_cast<const T*>(consumer_.consumer_wait());
  }
  /// Returns the place that consumer_wait() gave, once the whole warp has read it.
  __device__ void consumer_release() { consumer_.consumer_release(); }

 protected:
  HandoffConsumer& consumer_;
};

/// The types that compute_role() and store_role() give to the parts of tasks, and what they call after each part.
template <class Tasks>
struct PlainParts {
  using List = Tasks;
  using Operands = PageOperands;
  using Block = GpuBlock<Tasks>;
  using StoreBlock = WarpBlock<Tasks>;

  __device__ static void end_compute(RolesShared&, RoleSlot&) {}
  __device__ static void end_store(RolesShared&, std::uint32_t) {}
};

}  // namespace flywheel::detail
