// Compiled: how Runtime::load() compiles a graph. Programs get it through <flywheel/flywheel.hpp>.
#pragma once

#include <vector>

namespace flywheel {

/// How to compile a graph: rt.load(graph, compiled), or rt.load(graph, Compiled{costs}) with measured costs.
struct Compiled {
  /// The time of each task in ns, in the order of Graph::add(); Trace::costs() measures it. Where it is 0, or the
  /// vector is empty, the task type's own `double cost_ns() const` counts, or 2000 ns if it has none: more than
  /// a hop, so that tasks that can run at once get workers of their own.
  std::vector<double> costs;
  /// The time in ns from the end of a task to the start of a successor on another worker.
  double hop_ns = 1500;
};
inline const Compiled compiled{};

}  // namespace flywheel
