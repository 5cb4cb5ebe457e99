// What compute and store parts of tasks get in an unchecked compiled run: StoreBlock, the block of a store part, and
// PlainParts, which names the types. compiled.cuh includes it; checked.cuh has the same for checked runs.
#pragma once

#include "../../runtime/dynamic/task_list.hpp"
#include "handoff.cuh"
#include "page.cuh"

namespace flywheel::detail {

/// The block of a store part: one warp. Methods that GpuBlock has, too, mean the same for the lanes of the warp.
template <class List>
class StoreBlock : public BlockCore<ThreadPlatform, List>, public OneWarp {
 public:
  __device__ StoreBlock(TaskContext& context, HandoffConsumer& consumer)
      : BlockCore<ThreadPlatform, List>(context),
        consumer_(consumer) {}
  static constexpr bool kOnGpu = true;

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

  /// As OneWarp::reduce() with one exchange less, for an op that is commutative.
  template <class T, class Op>
  __device__ T reduce(T value, Op&& op) const {
#pragma unroll
    for (int distance = 16; distance; distance /= 2) value = op(value, shuffle_xor(value, distance));
    return value;
  }

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
  using StoreBlock = detail::StoreBlock<Tasks>;

  __device__ static void end_compute(RolesShared&, RoleSlot&) {}
  __device__ static void end_store(RolesShared&, std::uint32_t) {}
};

}  // namespace flywheel::detail
