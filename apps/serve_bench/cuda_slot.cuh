// One request of a peer in flight: its streams or its CUDA graph, and pinned memory through which the answer comes back. A
// kernel writes the answer there and the client polls it, which is faster than any CUDA call that asks whether a kernel has
// ended.
#pragma once

#include <cuda/atomic>

#include <atomic>

#include "apps/measure/cuda_objects.hpp"
#include "apps/serve_bench/work.hpp"

namespace serve {

/// In pinned memory that the GPU sees as well.
struct SlotWords {
  struct Reply {
    std::uint64_t value;
    std::uint32_t turn;
  };
  std::uint64_t seed;  // of the request; these two for kernels of a CUDA graph, whose arguments stay as they are
  std::uint32_t turn;  // counts the requests of the slot
  Reply replies[kBatchTasks];
};

/// What a kernel needs to know besides the request.
struct KernelTask {
  SlotWords* words;
  std::uint64_t* sum;  // of all values, in device memory
  std::int64_t ticks;
  std::uint32_t first;  // block b does task first + b
  bool replies;
};

/// One block of 256 threads a task, as wide as a task of the runtime.
inline constexpr int kTaskThreads = 256;
/// With the request as arguments.
__global__ void serve_launched(KernelTask task, std::uint64_t seed, std::uint32_t turn);
/// With the request in the slot's words.
__global__ void serve_node(KernelTask task);

class Slot {
 public:
  Slot(const Workload& workload, std::uint64_t* sum, std::int64_t ticks, int priority)
      : workload_(workload),
        stream_(priority),
        task_{words_.device(), sum, ticks, 0, true} {}
  virtual ~Slot() = default;

  void begin(std::uint64_t seed) {
    words_.host().seed = seed;
    words_.host().turn = ++turn_;
    launch(seed, turn_);
  }
  bool done() const;
  /// The sum of the replies, which are there.
  std::uint64_t value() const;
  const measure::Stream& stream() const { return stream_; }

 protected:
  virtual void launch(std::uint64_t seed, std::uint32_t turn) = 0;
  const Workload& workload() const { return workload_; }
  /// The kernel's part for the task with this index and, in a batch, those behind it.
  KernelTask part(std::uint32_t first) const;

 private:
  std::uint32_t reply_count() const { return workload_.kind == Kind::batch ? kBatchTasks : 1; }

  const Workload workload_;
  measure::MappedObject<SlotWords> words_;
  measure::Stream stream_;
  const KernelTask task_;
  std::uint32_t turn_ = 0;
};

/// A launch a task; the diamond on two streams with events between them.
std::unique_ptr<Slot> make_launch_slot(const Workload& workload, std::uint64_t* sum, std::int64_t ticks, int priority);
/// An instance of a CUDA graph, launched once a request.
std::unique_ptr<Slot> make_graph_slot(const Workload& workload, std::uint64_t* sum, std::int64_t ticks, int priority);

}  // namespace serve
