// The peer: a CUDA graph with a kernel for each step, of the same code as the runtime's task. How many levels there are, and
// how many blocks each has work for, it knows from a search with the host in between.
#include <algorithm>
#include <chrono>

#include "apps/bfs/level_bottom_up.hpp"
#include "apps/bfs/level_peer.hpp"
#include "apps/measure/cuda_objects.hpp"

namespace bfs {
namespace {

using measure::check_cuda;

constexpr int kPeerThreads = 256;

/// A block of a plain kernel, with what the steps ask of a block of the runtime.
struct PeerBlock {
  static constexpr int kLanes = 32, kWarps = kPeerThreads / 32;
  static constexpr int kVerticesInHand = 4;
  __device__ static int rank() { return static_cast<int>(threadIdx.x); }
  __device__ static int size() { return kPeerThreads; }
  __device__ static bool leader() { return threadIdx.x == 0; }
  __device__ static int lane() { return static_cast<int>(threadIdx.x % 32); }
  __device__ static int warp() { return static_cast<int>(threadIdx.x / 32); }
  __device__ static std::uint32_t worker() { return blockIdx.x; }
  __device__ static std::uint32_t workers() { return gridDim.x; }
  __device__ static void sync_warp() { __syncwarp(); }  // all lanes of the warp have come, and see what the others have stored
  __device__ static std::uint32_t ballot(bool vote) { return __ballot_sync(0xffffffffu, vote); }
  __device__ static bool any_warp(bool vote) { return __any_sync(0xffffffffu, vote); }
  template <class T>
  __device__ static T shuffle(T value, int lane) {
    return __shfl_sync(0xffffffffu, value, lane % 32);
  }
};

__global__ void __launch_bounds__(kPeerThreads)
    reset_kernel(const __grid_constant__ LevelMemory memory, const std::uint32_t root) {
  PeerBlock block;
  reset_levels(block, memory, root);
}

/// The size of the frontier is read from memory, as in a search that does not know its course.
template <Step kStep>
__global__ void __launch_bounds__(kPeerThreads)
    step_kernel(const __grid_constant__ LevelMemory memory, const __grid_constant__ LevelCourse at) {
  PeerBlock block;
  LevelCourse course = at;
  course.step = kStep;
  course.items = memory.frontier_count(course.turn).items;
  run_step(block, memory, course);
}

const void* kernel_of(Step step) {
  if (step == Step::top_down) return reinterpret_cast<const void*>(step_kernel<Step::top_down>);
  if (step == Step::bottom_up) return reinterpret_cast<const void*>(step_kernel<Step::bottom_up>);
  return reinterpret_cast<const void*>(step_kernel<Step::gather>);
}

/// As many blocks as the GPU has room for at once.
int most_blocks(const void* kernel) {
  int each_sm = 0;
  check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each_sm, kernel, kPeerThreads, 0),
             "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
             "The kernel may not be built for this GPU: see FLYWHEEL_CUDA_ARCHITECTURES");
  return std::max(each_sm, 1) * measure::sm_count();
}

class GraphOfLevels final : public LevelPeer {
 public:
  GraphOfLevels(const LevelMemory& memory, bool chooses) : memory_(memory), chooses_(chooses) {}
  ~GraphOfLevels() override { measure::report_cuda(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize"); }

  void prepare(std::uint32_t root) override {
    exec_.reset();
    steps_.clear();
    measure::Graph made;
    std::vector<cudaGraphNode_t> before;
    const auto add = [&](const void* kernel, int blocks, void** arguments) {
      launch(kernel, blocks, arguments);
      before = {made.add(kernel, blocks, kPeerThreads, before, arguments)};
    };
    void* reset_arguments[] = {&memory_, &root};
    add(reinterpret_cast<const void*>(reset_kernel), most_blocks(reinterpret_cast<const void*>(reset_kernel)), reset_arguments);
    LevelCourse course{.chooses = chooses_ ? 1u : 0u, .edges_left = read(memory_.graph.offsets + memory_.graph.vertices)};
    while (course.choose(LevelCount::of(read(&memory_.count_of(course.turn))), memory_.graph.vertices)) {
      void* arguments[] = {&memory_, &course};
      add(kernel_of(course.step), blocks_for(course), arguments);
      steps_ += "tbg"[static_cast<int>(course.step)];
      course.go_on();
    }
    exec_ = std::make_unique<measure::GraphExec>(made, stream_);
  }

  std::string steps() const override { return steps_; }

  double run() override {
    const auto begin = std::chrono::steady_clock::now();
    exec_->launch(stream_);
    stream_.synchronize();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  /// A top-down step has a warp for each piece, as far as there is room.
  static int blocks_for(const LevelCourse& course) {
    const int most = most_blocks(kernel_of(course.step));
    if (course.step != Step::top_down) return most;
    return static_cast<int>(std::min<std::uint64_t>((course.items + PeerBlock::kWarps - 1) / PeerBlock::kWarps, most));
  }
  void launch(const void* kernel, int blocks, void** arguments) const {
    check_cuda(cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(blocks)), dim3(kPeerThreads), arguments, 0, stream_.get()),
               "cudaLaunchKernel");
  }
  template <class T>
  T read(const T* from) const {
    T value{};
    check_cuda(cudaMemcpyAsync(&value, from, sizeof value, cudaMemcpyDeviceToHost, stream_.get()), "cudaMemcpyAsync");
    stream_.synchronize();
    return value;
  }

  LevelMemory memory_;
  const bool chooses_;
  measure::Stream stream_;
  std::unique_ptr<measure::GraphExec> exec_;
  std::string steps_;
};

}  // namespace

std::unique_ptr<LevelPeer> make_level_peer(const LevelMemory& memory, bool chooses) {
  return std::make_unique<GraphOfLevels>(memory, chooses);
}

}  // namespace bfs
