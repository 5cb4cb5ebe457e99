#include "apps/taskbench/runtime_system.hpp"

#include <chrono>
#include <stdexcept>

#include "apps/measure/stats.hpp"
#include "apps/taskbench/early_task.hpp"
#include "apps/taskbench/point_task.hpp"

namespace taskbench {

using flywheel::Executable;
using flywheel::Runtime;

namespace {

enum class Execution { dynamic, compiled, unplaced, stamped, warps };

/// What the tasks of one graph work on. The cells are plain or in stamped words.
struct GraphBuffers {
  GraphBuffers(Runtime& rt, const Problem& problem, std::uint32_t graph, bool stamped, Faults* faults)
      : data(data_of(problem, graph)) {
    const std::size_t count = std::size_t{problem.width()} * problem.steps();
    if (stamped) words = rt.allocate<flywheel::Stamped>(kWordsOfCell * count);
    else cells = rt.allocate<Cell>(count);
    scratch = rt.allocate<Chunk>(std::size_t{problem.width()} * 2 * problem.pieces() * kPieceChunks);
    data.cells = cells.data();
    data.scratch = scratch.data();
    data.faults = faults;
  }
  std::vector<Cell> read() const {
    if (words.size() == 0) return cells.read();
    const std::vector<flywheel::Stamped> all = words.read();
    std::vector<Cell> read;
    for (std::size_t i = 0; i < all.size(); i += kWordsOfCell)
      read.push_back(cell_of({all[i], all[i + 1], all[i + 2], all[i + 3]}));
    return read;
  }
  flywheel::Buffer<Cell> cells;
  flywheel::Buffer<flywheel::Stamped> words;
  flywheel::Buffer<Chunk> scratch;
  GraphData data;
};

/// With as many points as workers or more, neighbours share a worker; with fewer, the graphs lie beside each other.
std::uint32_t worker_of(const Problem& problem, std::uint32_t graph, std::uint32_t point, std::uint32_t workers) {
  const std::uint64_t width = problem.width();
  return static_cast<std::uint32_t>(width >= workers ? point * std::uint64_t{workers} / width
                                                     : (graph * width + point) % workers);
}

/// Adds the tasks of all graphs, a step after the other.
class Builder {
 public:
  Builder(const Problem& problem, const std::vector<GraphBuffers>& buffers, std::uint32_t workers, Execution execution)
      : problem_(problem),
        buffers_(buffers),
        workers_(workers),
        execution_(execution),
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
      row_[g][point] = add(buffers_[g], step, point);
      if (execution_ != Execution::dynamic && execution_ != Execution::unplaced)
        graph.place(row_[g][point], worker_of(problem_, g, point, workers_));
    }
  }

  flywheel::TaskRef<> add(const GraphBuffers& of, std::uint32_t step, std::uint32_t point) {
    const flywheel::After waits = flywheel::after(waits_);
    if (execution_ == Execution::stamped)
      return graph.add(EarlyPointTask{of.data, of.words.data(), settings, step, point}, waits);
    const PointTask task{of.data, settings, step, point};
    return execution_ == Execution::warps ? graph.add(WarpPointTask{task}, waits) : graph.add(task, waits);
  }

  const Problem& problem_;
  const std::vector<GraphBuffers>& buffers_;
  const std::uint32_t workers_;
  const Execution execution_;
  std::vector<Row> before_, row_;  // of each graph: the tasks of two steps
  Row waits_;
};

class RuntimeSystem final : public System {
 public:
  RuntimeSystem(Runtime& rt, const Problem& problem, Execution execution) : rt_(rt), faults_(rt.allocate<Faults>(1)) {
    for (std::uint32_t g = 0; g < problem.graphs.size(); ++g)
      buffers_.emplace_back(rt, problem, g, execution == Execution::stamped, faults_.data());
    const Builder built(problem, buffers_, rt.workers(), execution);
    settings_ = built.settings;
    executable_ = execution == Execution::dynamic ? rt.load(built.graph) : rt.load(built.graph, flywheel::compiled);
  }
  double run(const RunSettings& settings) override {
    const auto begin = std::chrono::steady_clock::now();
    rt_.submit(executable_, set(settings_, settings)).wait();
    return measure::microseconds_since(begin);
  }
  std::vector<Cell> cells(std::uint32_t graph) override { return buffers_.at(graph).read(); }
  Faults faults() override { return faults_.read().front(); }

 private:
  Runtime& rt_;
  flywheel::Buffer<Faults> faults_;
  std::vector<GraphBuffers> buffers_;
  flywheel::Param<RunSettings> settings_{};
  Executable executable_;
};

}  // namespace

std::unique_ptr<System> make_runtime_system(Runtime& rt, const std::string& name, const Problem& problem) {
  const std::vector<std::string> names = runtime_names();
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return std::make_unique<RuntimeSystem>(rt, problem, static_cast<Execution>(i));
  throw std::invalid_argument("the runtime has no execution '" + name + "': see --systems");
}

}  // namespace taskbench
