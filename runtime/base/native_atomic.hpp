// The atomic type beneath AtomicRef: cuda::atomic_ref with its scope under nvcc, std::atomic_ref elsewhere. Only
// platform.hpp includes this header. It also defines FLYWHEEL_TASK, which marks functions for host and device.
#pragma once

#include "order.hpp"

#ifdef __CUDACC__
#include <cuda/atomic>
#define FLYWHEEL_TASK __host__ __device__
#else
#include <atomic>
#define FLYWHEEL_TASK
#endif

namespace flywheel::detail {

#ifdef __CUDACC__
template <class T, Scope S>
struct NativeAtomic {
  using type = cuda::atomic_ref<T, S == Scope::block    ? cuda::thread_scope_block
                                   : S == Scope::device ? cuda::thread_scope_device
                                                        : cuda::thread_scope_system>;
};
namespace native_std = cuda::std;
#else
template <class T, Scope S>
struct NativeAtomic {
  using type = std::atomic_ref<T>;
};
namespace native_std = std;
#endif

/// The standard library's name of an order.
FLYWHEEL_TASK constexpr native_std::memory_order native(Order order) {
  switch (order) {
    case Order::relaxed:
      return native_std::memory_order_relaxed;
    case Order::acquire:
      return native_std::memory_order_acquire;
    case Order::release:
      return native_std::memory_order_release;
    default:
      return native_std::memory_order_acq_rel;
  }
}

}  // namespace flywheel::detail
