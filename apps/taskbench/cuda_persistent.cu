// Peers that launch one kernel and stay in it: one that meets after each step, and the textbook persistent kernel, whose blocks
// draw the number of their next task from one counter.
#include <cooperative_groups.h>
#include <cuda/atomic>

#include <algorithm>

#include "apps/taskbench/cuda_point.cuh"

namespace taskbench {
namespace {

using DeviceWord = cuda::atomic_ref<std::uint32_t, cuda::thread_scope_device>;

/// Point `index` of a step, counted through all graphs.
__device__ void run_nth(const AllGraphs& all, std::uint32_t step, std::uint32_t index, const RunSettings& settings) {
  const std::uint32_t count = live_points(all.graphs[0].shape, step).count;
  const GraphData& graph = all.graphs[index / count];
  PeerBlock block;
  run_point(block, graph, PlainCells{graph.cells}, step, live_points(graph.shape, step).first + index % count, settings);
}

__global__ void __launch_bounds__(kPeerThreads)
    run_cooperative(const __grid_constant__ AllGraphs all, const RunSettings* settings) {
  const auto grid = cooperative_groups::this_grid();
  for (std::uint32_t step = 0; step < all.graphs[0].shape.steps; ++step) {
    const std::uint32_t points = all.count * live_points(all.graphs[0].shape, step).count;
    for (std::uint32_t index = blockIdx.x; index < points; index += gridDim.x) run_nth(all, step, index, *settings);
    grid.sync();  // all threads of all blocks: what the step has written is seen in the next
  }
}

/// What the kernel with the counter has besides.
struct Drawing {
  const PointId* tasks;  // in an order in which every task comes after its inputs
  std::uint32_t count;
  std::uint32_t* next;
  std::uint32_t* done[kMostGraphs];  // of each point the number of the run that has done it
};

/// Two seconds at 2 GHz; a task that waits longer is one whose input nobody has drawn.
constexpr long long kWaitBudgetCycles = 4'000'000'000;

/// The block waits for the inputs of a point, a thread for each.
__device__ void wait_for_inputs(const GraphData& graph, const std::uint32_t* done, PointId task, std::uint32_t run) {
  const std::uint32_t set = set_of(graph.shape, task.step);
  for (std::uint32_t k = threadIdx.x; k < candidate_count(graph.shape); k += kPeerThreads) {
    const std::int64_t from = input_of(graph.shape, set, task.step, task.point, k);
    if (from == kNoInput) continue;
    // An atomic reference to a word that this kernel only reads here, so without const.
    const DeviceWord word(
        const_cast<std::uint32_t&>(done[cell_index(graph.shape, task.step - 1, static_cast<std::uint32_t>(from))]));
    const long long begin = clock64();
    // Acquire: pairs with the release after the input's run_point().
    while (word.load(cuda::memory_order_acquire) != run && clock64() - begin < kWaitBudgetCycles) {}
  }
  __syncthreads();  // each thread has seen its inputs done, so all threads see what those have written
}

__global__ void __launch_bounds__(kPeerThreads)
    run_drawn(const __grid_constant__ AllGraphs all, const __grid_constant__ Drawing drawing, const RunSettings* settings) {
  __shared__ std::uint32_t drawn;
  for (;;) {
    // Relaxed: a number alone; the inputs' words order what tasks have written.
    if (threadIdx.x == 0) drawn = DeviceWord(*drawing.next).fetch_add(1, cuda::memory_order_relaxed);
    __syncthreads();  // all threads see the number that thread 0 has written
    const std::uint32_t number = drawn;
    if (number >= drawing.count) return;
    const PointId task = drawing.tasks[number];
    const GraphData& graph = all.graphs[task.graph];
    wait_for_inputs(graph, drawing.done[task.graph], task, settings->run);
    PeerBlock block;
    run_point(block, graph, PlainCells{graph.cells}, task.step, task.point, *settings);
    __syncthreads();  // all threads have written, before thread 0 says so and draws again
    std::uint32_t& done = drawing.done[task.graph][cell_index(graph.shape, task.step, task.point)];
    // Release: pairs with the acquire in wait_for_inputs().
    if (threadIdx.x == 0) DeviceWord(done).store(settings->run, cuda::memory_order_release);
  }
}

/// As many blocks as there are points in a step, or as the GPU has room for at once.
std::uint32_t blocks_for(const void* kernel, const Problem& problem) {
  int of_each_sm = 0;
  measure::check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_each_sm, kernel, kPeerThreads, 0),
                      "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  const std::size_t points = problem.width() * problem.graphs.size();
  return static_cast<std::uint32_t>(std::min<std::size_t>(points, std::size_t(of_each_sm) * measure::sm_count()));
}

/// All blocks are there at once, as those that wait for each other need.
class Persistent : public PeerSystem {
 public:
  Persistent(const Problem& problem, const void* kernel)
      : PeerSystem(problem),
        kernel_(kernel),
        blocks_(blocks_for(kernel, problem)) {}

 protected:
  void launch_with(void** arguments) const {
    cudaLaunchAttribute together{};
    together.id = cudaLaunchAttributeCooperative;
    together.val.cooperative = 1;
    launch_kernel(stream(), kernel_, blocks_, arguments, {&together, 1});
  }

 private:
  const void* const kernel_;
  const std::uint32_t blocks_;
};

class Cooperative final : public Persistent {
 public:
  explicit Cooperative(const Problem& problem) : Persistent(problem, reinterpret_cast<const void*>(run_cooperative)) {}

 private:
  void launch() override {
    AllGraphs graphs = all();
    const RunSettings* settings = this->settings();
    void* arguments[] = {&graphs, &settings};
    launch_with(arguments);
  }
};

/// Step by step, and the graphs in turns.
std::vector<PointId> tasks_of(const Problem& problem) {
  std::vector<PointId> tasks;
  for (std::uint32_t step = 0; step < problem.steps(); ++step)
    for (std::uint16_t graph = 0; graph < problem.graphs.size(); ++graph) {
      const Live live = live_points(problem.graphs[graph], step);
      for (std::uint32_t i = 0; i < live.count; ++i) tasks.push_back({step, static_cast<std::uint16_t>(live.first + i), graph});
    }
  return tasks;
}

class Counter final : public Persistent {
 public:
  explicit Counter(const Problem& problem)
      : Persistent(problem, reinterpret_cast<const void*>(run_drawn)),
        tasks_(problem.tasks()),
        next_(1),
        done_(problem.graphs.size() * problem.width() * problem.steps()) {
    const std::vector<PointId> tasks = tasks_of(problem);
    measure::check_cuda(cudaMemcpyAsync(tasks_.get(), tasks.data(), tasks_.bytes(), cudaMemcpyHostToDevice, stream().get()),
                        "cudaMemcpyAsync");
    done_.fill(0, stream());
    stream().synchronize();
    drawing_ = {.tasks = tasks_.get(), .count = static_cast<std::uint32_t>(tasks.size()), .next = next_.get(), .done = {}};
    for (std::uint32_t g = 0; g < problem.graphs.size(); ++g)
      drawing_.done[g] = done_.get() + std::size_t{g} * problem.width() * problem.steps();
  }

 private:
  void prepare() override { next_.fill(0, stream()); }
  void launch() override {
    AllGraphs graphs = all();
    const RunSettings* settings = this->settings();
    void* arguments[] = {&graphs, &drawing_, &settings};
    launch_with(arguments);
  }

  const measure::DeviceBuffer<PointId> tasks_;
  const measure::DeviceBuffer<std::uint32_t> next_, done_;
  Drawing drawing_{};
};

}  // namespace

std::unique_ptr<System> make_cooperative(const Problem& problem) { return std::make_unique<Cooperative>(problem); }
std::unique_ptr<System> make_counter(const Problem& problem) { return std::make_unique<Counter>(problem); }

}  // namespace taskbench
