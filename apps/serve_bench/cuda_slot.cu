#include "apps/serve_bench/cuda_slot.cuh"

namespace serve {
namespace {

/// One thread works, as in the bodies of flywheel_service.cu; the others wait for it at the barrier.
__device__ void do_task(const KernelTask& task, std::uint64_t seed, std::uint32_t turn) {
  const std::uint64_t value = stir(word_of(seed, task.first + blockIdx.x));
  spin_for(task.ticks);
  // Relaxed: the release below orders it before the answer, for the earlier tasks of a graph the end of their kernels does; the
  // host copies the sum once it has seen all answers.
  cuda::atomic_ref<std::uint64_t, cuda::thread_scope_device>(*task.sum).fetch_add(value, cuda::memory_order_relaxed);
  if (!task.replies) return;
  SlotWords::Reply& reply = task.words->replies[blockIdx.x];
  reply.value = value;
  // Release at system scope: pairs with the acquire in Slot::done(), so that the host that sees the turn sees the value.
  cuda::atomic_ref<std::uint32_t, cuda::thread_scope_system>(reply.turn).store(turn, cuda::memory_order_release);
}

/// A word that the host wrote before the launch, which orders it. Relaxed at system scope: no cache may keep what it was for
/// the request before.
template <class T>
__device__ T read_word(T& word) {
  return cuda::atomic_ref<T, cuda::thread_scope_system>(word).load(cuda::memory_order_relaxed);
}

class LaunchSlot final : public Slot {
 public:
  LaunchSlot(const Workload& workload, std::uint64_t* sum, std::int64_t ticks, int priority)
      : Slot(workload, sum, ticks, priority),
        side_(priority) {}

 private:
  void launch(std::uint64_t seed, std::uint32_t turn) override {
    if (workload().kind != Kind::graph) return launch_on(stream(), 0, seed, turn);
    launch_on(stream(), 0, seed, turn);
    fork_.record(stream());
    fork_.let_wait(side_);
    launch_on(stream(), 1, seed, turn);
    launch_on(side_, 2, seed, turn);
    join_.record(side_);
    join_.let_wait(stream());
    launch_on(stream(), 3, seed, turn);
  }

  void launch_on(const measure::Stream& to, std::uint32_t first, std::uint64_t seed, std::uint32_t turn) const {
    KernelTask task = part(first);
    void* arguments[] = {&task, &seed, &turn};
    const unsigned blocks = workload().kind == Kind::batch ? kBatchTasks : 1;
    measure::check_cuda(cudaLaunchKernel(reinterpret_cast<const void*>(serve_launched), dim3(blocks), dim3(kTaskThreads),
                                         arguments, 0, to.get()),
                        "cudaLaunchKernel", "The kernel may not be built for this GPU: see FLYWHEEL_CUDA_ARCHITECTURES");
  }

  const measure::Stream side_;
  const measure::Event fork_, join_;
};

class GraphSlot final : public Slot {
 public:
  GraphSlot(const Workload& workload, std::uint64_t* sum, std::int64_t ticks, int priority)
      : Slot(workload, sum, ticks, priority),
        exec_(build(priority), stream()) {}

 private:
  void launch(std::uint64_t, std::uint32_t) override { exec_.launch(stream()); }

  measure::Graph build(int priority) const {
    measure::Graph graph;
    if (workload().kind != Kind::graph) {
      add(graph, 0, {}, priority);
      return graph;
    }
    const cudaGraphNode_t first[] = {add(graph, 0, {}, priority)};
    const cudaGraphNode_t middle[] = {add(graph, 1, first, priority), add(graph, 2, first, priority)};
    add(graph, 3, middle, priority);
    return graph;
  }

  /// A node does not take the priority of the stream that its graph is launched in: it has its own.
  cudaGraphNode_t add(const measure::Graph& graph, std::uint32_t first, std::span<const cudaGraphNode_t> before,
                      int priority) const {
    KernelTask task = part(first);
    void* arguments[] = {&task};
    const int blocks = workload().kind == Kind::batch ? static_cast<int>(kBatchTasks) : 1;
    const cudaGraphNode_t node = graph.add(reinterpret_cast<const void*>(serve_node), blocks, kTaskThreads, before, arguments);
    cudaLaunchAttributeValue value{};
    value.priority = priority;
    measure::check_cuda(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributePriority, &value),
                        "cudaGraphKernelNodeSetAttribute");
    return node;
  }

  const measure::GraphExec exec_;
};

}  // namespace

__global__ void serve_launched(KernelTask task, std::uint64_t seed, std::uint32_t turn) {
  if (threadIdx.x == 0) do_task(task, seed, turn);
  __syncthreads();
}

__global__ void serve_node(KernelTask task) {
  if (threadIdx.x == 0) do_task(task, read_word(task.words->seed), read_word(task.words->turn));
  __syncthreads();
}

bool Slot::done() const {
  for (std::uint32_t i = 0; i < reply_count(); ++i) {
    // Acquire: pairs with the kernel's release of the turn, in do_task().
    if (std::atomic_ref<std::uint32_t>(words_.host().replies[i].turn).load(std::memory_order_acquire) != turn_) return false;
  }
  return true;
}

std::uint64_t Slot::value() const {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < reply_count(); ++i) sum += words_.host().replies[i].value;
  return sum;
}

KernelTask Slot::part(std::uint32_t first) const {
  KernelTask task = task_;
  task.first = first;
  task.replies = workload_.kind != Kind::graph || first + 1 == kGraphTasks;
  return task;
}

std::unique_ptr<Slot> make_launch_slot(const Workload& workload, std::uint64_t* sum, std::int64_t ticks, int priority) {
  return std::make_unique<LaunchSlot>(workload, sum, ticks, priority);
}

std::unique_ptr<Slot> make_graph_slot(const Workload& workload, std::uint64_t* sum, std::int64_t ticks, int priority) {
  return std::make_unique<GraphSlot>(workload, sum, ticks, priority);
}

}  // namespace serve
