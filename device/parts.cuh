// What the parts of a task are given in a compiled run. checked.cuh has the same for checked runs.
#pragma once

#include "handoff.cuh"
#include "page.cuh"
#include "../runtime/dynamic/task_list.hpp"

namespace flywheel {

/// The block of a store part: one warp.
template <class List>
class WarpBlock : public BlockCore<ThreadPlatform, List> {
 public:
  __device__ WarpBlock(TaskContext& context, HandoffConsumer& consumer) : BlockCore<ThreadPlatform, List>(context), consumer_(consumer) {}
  static constexpr bool kOnGpu = true;
  __device__ static int rank() { return static_cast<int>(threadIdx.x % 32); }
  __device__ static int lane() { return rank(); }
  __host__ __device__ static constexpr int size() { return 32; }
  __device__ static bool leader() { return rank() == 0; }
  __device__ static void sync() { __syncwarp(); }

  template <class F>
  __device__ void for_each(int n, F&& f) const {
    for (int i = rank(); i < n; i += size()) f(i);
  }
  // Early tasks, see operands.hpp. All lanes.
  __device__ bool await() const { return detail::await_before(consumer_.number()); }
  __device__ bool await_sent() const { return detail::await_sent(consumer_.number()); }
  __device__ void sent() const {
    __syncwarp();  // all lanes have put their words
    if (leader()) consumer_.signal_sent();
  }
  template <class Ready>
  __device__ bool spin(Ready&& ready) const {
    return detail::spin(*this->context_->dev, consumer_.number(), ready);
  }
  __device__ static StampedPair load_stamped_pair(const Stamped* at) { return ptx::load_two(at); }
  __device__ static void store_stamped_pair(Stamped* at, const StampedPair& pair) { ptx::store_two(at, pair); }

  template <class T>
  __device__ static T shuffle_xor(T value, int mask) { return detail::shuffle_xor(value, static_cast<std::uint32_t>(mask)); }
  template <class T>
  __device__ static T shuffle(T value, int lane) { return detail::shuffle(value, static_cast<std::uint32_t>(lane)); }
  template <class T, class Op>
  __device__ T reduce(T value, Op&& op) const {
#pragma unroll
    for (int distance = 16; distance; distance /= 2) value = op(value, shuffle_xor(value, distance));
    return value;
  }

  /// What the compute part handed over next; waits for it. Null when there is no more.
  template <class T>
  __device__ const T* take() {
    return static_cast<const T*>(consumer_.take());
  }
  /// The whole warp has read what take() gave.
  __device__ void give_back() { consumer_.give_back(); }

 protected:
  HandoffConsumer& consumer_;
};

/// What compute_role() and store_role() give to the parts of tasks, and what else they do when those have ended.
template <class Tasks>
struct PlainParts {
  using List = Tasks;
  using Operands = PageOperands;
  using Block = GpuBlock<Tasks>;
  using StoreBlock = WarpBlock<Tasks>;

  __device__ static void end_compute(RolesShared&, RoleSlot&) {}
  __device__ static void end_store(RolesShared&, std::uint32_t) {}
};

}  // namespace flywheel
