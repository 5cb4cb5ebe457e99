// The runtime's executions: the same graph dynamic, compiled with each task placed, and compiled as the plan sees fit.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <chrono>
#include <stdexcept>

#include "apps/taskbench/system.hpp"

namespace taskbench {

using flywheel::Executable;
using flywheel::Runtime;

struct PointTask {
  GraphData graph;
  flywheel::Param<RunSettings> settings;
  std::uint32_t step, point;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    run_point(block, graph, step, point, block.param(settings));
  }
};

namespace {

/// What the tasks of one graph work on.
struct GraphBuffers {
  GraphBuffers(Runtime& rt, const Problem& problem, std::uint32_t graph)
      : cells(rt.allocate<Cell>(std::size_t{problem.width()} * problem.steps())),
        scratch(rt.allocate<Chunk>(std::size_t{problem.width()} * 2 * problem.pieces() * kPieceChunks)),
        data(data_of(problem, graph)) {}
  flywheel::Buffer<Cell> cells;
  flywheel::Buffer<Chunk> scratch;
  GraphData data;
};

enum class Execution { dynamic, compiled, unplaced };

/// With as many points as workers or more, neighbours share a worker; with fewer, the graphs lie beside each other.
std::uint32_t worker_of(const Problem& problem, std::uint32_t graph, std::uint32_t point, std::uint32_t workers) {
  const std::uint64_t width = problem.width();
  return static_cast<std::uint32_t>(width >= workers ? point * std::uint64_t{workers} / width
                                                     : (graph * width + point) % workers);
}

/// Adds the tasks of all graphs, a step after the other.
class Builder {
 public:
  Builder(const Problem& problem, const std::vector<GraphBuffers>& buffers, std::uint32_t workers, bool placed)
      : problem_(problem),
        buffers_(buffers),
        workers_(workers),
        placed_(placed),
        before_(buffers.size(), Row(problem.width())),
        row_(before_) {
    settings = graph.param<RunSettings>();
    for (std::uint32_t step = 0; step < problem.steps(); ++step) {
      for (std::uint32_t g = 0; g < buffers.size(); ++g) add_row(g, step);
      before_.swap(row_);
    }
  }
  flywheel::Graph graph;
  flywheel::Param<RunSettings> settings{};

 private:
  using Row = std::vector<flywheel::TaskRef<>>;

  void add_row(std::uint32_t g, std::uint32_t step) {
    const Shape& shape = problem_.graphs[g];
    const Live live = live_points(shape, step);
    for (std::uint32_t point = live.first; point < live.first + live.count; ++point) {
      waits_.clear();
      for (const std::uint32_t from : inputs_of(shape, step, point)) waits_.push_back(before_[g][from]);
      row_[g][point] = graph.add(PointTask{buffers_[g].data, settings, step, point}, flywheel::after(waits_));
      if (placed_) graph.place(row_[g][point], worker_of(problem_, g, point, workers_));
    }
  }

  const Problem& problem_;
  const std::vector<GraphBuffers>& buffers_;
  const std::uint32_t workers_;
  const bool placed_;
  std::vector<Row> before_, row_;  // of each graph: the tasks of two steps
  Row waits_;
};

class RuntimeSystem final : public System {
 public:
  RuntimeSystem(Runtime& rt, const Problem& problem, Execution execution) : rt_(rt), faults_(rt.allocate<Faults>(1)) {
    for (std::uint32_t g = 0; g < problem.graphs.size(); ++g) {
      GraphBuffers& made = buffers_.emplace_back(rt, problem, g);
      made.data.cells = made.cells.data();
      made.data.scratch = made.scratch.data();
      made.data.faults = faults_.data();
    }
    const Builder built(problem, buffers_, rt.workers(), execution == Execution::compiled);
    settings_ = built.settings;
    executable_ = execution == Execution::dynamic ? rt.load(built.graph) : rt.load(built.graph, flywheel::compiled);
  }
  double run(const RunSettings& settings) override {
    const auto begin = std::chrono::steady_clock::now();
    rt_.submit(executable_, set(settings_, settings)).wait();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  }
  std::vector<Cell> cells(std::uint32_t graph) override { return buffers_.at(graph).cells.read(); }
  Faults faults() override { return faults_.read().front(); }

 private:
  Runtime& rt_;
  flywheel::Buffer<Faults> faults_;
  std::vector<GraphBuffers> buffers_;
  flywheel::Param<RunSettings> settings_{};
  Executable executable_;
};

flywheel::Options options_for(bool on_gpu, std::uint32_t workers) {
  flywheel::Options options;
  options.target = on_gpu ? flywheel::Target::gpu : flywheel::Target::cpu;
  options.mode = flywheel::Mode::resident;
  options.workers = workers;
  return options;
}

class RuntimeHost final : public Host {
 public:
  RuntimeHost(bool on_gpu, std::uint32_t workers) : rt_(flywheel::start<PointTask>(options_for(on_gpu, workers))) {}
  std::uint32_t workers() const override { return rt_.workers(); }
  std::string device() const override { return rt_.device(); }
  std::unique_ptr<System> make(const std::string& name, const Problem& problem) override {
    const std::vector<std::string> names = runtime_names();
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == name) return std::make_unique<RuntimeSystem>(rt_, problem, static_cast<Execution>(i));
    throw std::invalid_argument("the runtime has no execution '" + name + "': see --systems");
  }
  std::shared_ptr<void> pause() override { return std::make_shared<flywheel::Pause>(rt_); }

 private:
  Runtime rt_;
};

}  // namespace

std::unique_ptr<Host> start_host(bool on_gpu, std::uint32_t workers) { return std::make_unique<RuntimeHost>(on_gpu, workers); }

}  // namespace taskbench
