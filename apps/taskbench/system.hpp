// What is measured: a system runs a problem, over and over. The runtime has five, its peers are others; the turns
// (turns.hpp) see this interface alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/taskbench/point.hpp"

namespace taskbench {

/// Graphs that run side by side, and what their points have besides.
struct Problem {
  std::vector<Shape> graphs = {};
  std::uint32_t scratch_bytes = 64u << 10;  // of each point
  bool plant = false;                       // one point writes a wrong cell

  std::uint32_t width() const { return graphs.front().width; }
  std::uint32_t steps() const { return graphs.front().steps; }
  /// The points of all graphs, and the same in kernel iterations.
  std::uint64_t tasks() const;
  std::uint64_t work(const RunSettings& settings) const;
  std::uint32_t pieces() const { return scratch_bytes / (2 * kPieceBytes); }
};
/// The same shape in several graphs, which differ in what they draw.
Problem make_problem(ShapeOptions shape, std::uint32_t graphs, std::uint32_t scratch_bytes = 64u << 10);
/// The pointers are null. The planted point is the first of the middle step of graph 0.
GraphData data_of(const Problem& problem, std::uint32_t graph);

class System {
 public:
  virtual ~System() = default;
  /// Runs all points. The time in us from submission to the end.
  virtual double run(const RunSettings& settings) = 0;
  /// The cells of a graph, a row for each step, of the last run.
  virtual std::vector<Cell> cells(std::uint32_t graph) = 0;
  /// What the tasks have found since the system was made.
  virtual Faults faults() = 0;
};

/// The runtime, and the systems that are executions of it.
class Host {
 public:
  virtual ~Host() = default;
  virtual std::uint32_t workers() const = 0;
  virtual std::string device() const = 0;
  virtual std::unique_ptr<System> make(const std::string& name, const Problem& problem) = 0;
  /// While it lives the GPU is free of the runtime's kernel.
  virtual std::shared_ptr<void> pause() = 0;
};
/// Workers: 0 for all.
std::unique_ptr<Host> start_host(bool on_gpu, std::uint32_t workers);

/// "dynamic"; "compiled", with each task placed; "unplaced", compiled as the plan sees fit; "stamped", placed early tasks whose
/// cells travel in stamped words; "warps", placed warp tasks.
std::vector<std::string> runtime_names();
/// "levels", a CUDA graph with a kernel a level; "levels_pdl", the same with programmatic dependent launch; "nodes", a node a
/// task; "cooperative", one kernel that meets after each level; "counter", one kernel whose blocks draw tasks from a counter;
/// "streams", a launch a task, with events.
std::vector<std::string> peer_names();
bool is_peer(const std::string& name);
/// Why a peer does not take the problem; empty if it does. Some need a node, an event or a stream for each task.
std::string why_not(const std::string& peer, const Problem& problem);
std::unique_ptr<System> make_peer(const std::string& name, const Problem& problem);

/// Compares the last run of the system with a serial one. Throws std::runtime_error that says what differs, or what a task has
/// found.
void check(System& system, const Problem& problem, const RunSettings& settings);

}  // namespace taskbench
