// Peers that launch: a CUDA graph with a kernel for each step of each graph, the same with programmatic dependent launch, a
// CUDA graph with a node for each task, and a launch a task in streams, with events.
#include <nv/target>

#include "apps/taskbench/cuda_point.cuh"

namespace taskbench {
namespace {

/// Points `first` and on of one step, a block for each. With programmatic dependent launch the next step's blocks may come at
/// once; they wait where this one does, until all of the step before has ended and can be seen. Without it both do nothing.
__global__ void __launch_bounds__(kPeerThreads)
    run_level(GraphData graph, std::uint32_t step, std::uint32_t first, const RunSettings* settings) {
  NV_IF_TARGET(NV_PROVIDES_SM_90, (cudaTriggerProgrammaticLaunchCompletion(); cudaGridDependencySynchronize();))
  PeerBlock block;
  run_point(block, graph, PlainCells{graph.cells}, step, first + blockIdx.x, *settings);
}

const void* const kLevel = reinterpret_cast<const void*>(run_level);

/// The arguments of run_level() for some points.
struct Level {
  GraphData graph;
  std::uint32_t step, first;
  const RunSettings* settings;
  std::array<void*, 4> arguments() { return {&graph, &step, &first, &settings}; }
};

/// A CUDA graph whose chains, one for each graph, run side by side.
class Levels final : public PeerSystem {
 public:
  Levels(const Problem& problem, bool early) : PeerSystem(problem), exec_(early ? capture() : build(), stream()) {}

 private:
  void launch() override { exec_.launch(stream()); }

  Level level_of(std::uint32_t g, std::uint32_t step) const {
    return {all().graphs[g], step, live_points(problem().graphs[g], step).first, settings()};
  }
  std::uint32_t blocks_of(std::uint32_t g, std::uint32_t step) const { return live_points(problem().graphs[g], step).count; }

  measure::Graph build() const {
    measure::Graph made;
    for (std::uint32_t g = 0; g < all().count; ++g) {
      std::vector<cudaGraphNode_t> before;
      for (std::uint32_t step = 0; step < problem().steps(); ++step) {
        Level level = level_of(g, step);
        before = {made.add(kLevel, static_cast<int>(blocks_of(g, step)), kPeerThreads, before, level.arguments().data())};
      }
    }
    return made;
  }

  /// Programmatic edges come from a stream's launches. All but the first of a chain may begin early.
  measure::Graph capture() const {
    measure::Graph made;
    std::vector<measure::Stream> streams(all().count);
    const measure::Event fork, join;
    measure::check_cuda(
        cudaStreamBeginCaptureToGraph(streams[0].get(), made.get(), nullptr, nullptr, 0, cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCaptureToGraph");
    fork.record(streams[0]);
    for (std::uint32_t g = 0; g < all().count; ++g) {
      if (g > 0) fork.let_wait(streams[g]);
      capture_chain(streams[g], g);
      if (g == 0) continue;
      join.record(streams[g]);
      join.let_wait(streams[0]);
    }
    cudaGraph_t captured = nullptr;
    measure::check_cuda(cudaStreamEndCapture(streams[0].get(), &captured), "cudaStreamEndCapture");
    return made;
  }
  void capture_chain(const measure::Stream& stream, std::uint32_t g) const {
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    for (std::uint32_t step = 0; step < problem().steps(); ++step) {
      Level level = level_of(g, step);
      launch_kernel(stream, kLevel, blocks_of(g, step), level.arguments().data(), {&early, step > 0 ? 1u : 0u});
    }
  }

  const measure::GraphExec exec_;
};

class Nodes final : public PeerSystem {
 public:
  explicit Nodes(const Problem& problem) : PeerSystem(problem), exec_(build(), stream()) {}

 private:
  void launch() override { exec_.launch(stream()); }

  measure::Graph build() const {
    measure::Graph made;
    for (std::uint32_t g = 0; g < all().count; ++g) {
      const Shape& shape = problem().graphs[g];
      std::vector<cudaGraphNode_t> nodes(std::size_t{shape.width} * shape.steps), before;
      for_each_point(shape, [&](std::uint32_t step, std::uint32_t point) {
        before.clear();
        for_each_input(shape, step, point,
                       [&](std::uint32_t from) { before.push_back(nodes[cell_index(shape, step - 1, from)]); });
        Level level{all().graphs[g], step, point, settings()};
        nodes[cell_index(shape, step, point)] = made.add(kLevel, 1, kPeerThreads, before, level.arguments().data());
      });
    }
    return made;
  }

  const measure::GraphExec exec_;
};

/// A stream and an event for each point of each graph.
class Streams final : public PeerSystem {
 public:
  explicit Streams(const Problem& problem)
      : PeerSystem(problem),
        streams_(std::size_t{problem.width()} * problem.graphs.size()),
        ended_(streams_.size()) {}
  ~Streams() override {
    for (const measure::Stream& one : streams_) measure::report_cuda(cudaStreamSynchronize(one.get()), "cudaStreamSynchronize");
  }

 private:
  void launch() override {
    for (std::uint32_t step = 0; step < problem().steps(); ++step)
      for (std::uint32_t g = 0; g < all().count; ++g) launch_step(g, step);
    for (std::size_t i = 0; i < ended_.size(); ++i) {
      ended_[i].record(streams_[i]);
      ended_[i].let_wait(stream());
    }
  }

  /// All waits of a step come before its events are recorded, which are then those of this step.
  void launch_step(std::uint32_t g, std::uint32_t step) {
    const Shape& shape = problem().graphs[g];
    const Live live = live_points(shape, step);
    const std::size_t first = std::size_t{g} * shape.width;
    for (std::uint32_t point = live.first; point < live.first + live.count; ++point) {
      for_each_input(shape, step, point, [&](std::uint32_t from) {
        if (from != point) ended_[first + from].let_wait(streams_[first + point]);
      });
      Level level{all().graphs[g], step, point, settings()};
      launch_kernel(streams_[first + point], kLevel, 1, level.arguments().data());
    }
    for (std::uint32_t point = live.first; point < live.first + live.count; ++point)
      ended_[first + point].record(streams_[first + point]);
  }

  std::vector<measure::Stream> streams_;
  std::vector<measure::Event> ended_;
};

}  // namespace

std::unique_ptr<System> make_levels(const Problem& problem, bool early) { return std::make_unique<Levels>(problem, early); }
std::unique_ptr<System> make_nodes(const Problem& problem) { return std::make_unique<Nodes>(problem); }
std::unique_ptr<System> make_streams(const Problem& problem) { return std::make_unique<Streams>(problem); }

}  // namespace taskbench
