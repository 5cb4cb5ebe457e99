// Compiling a graph: every task gets a worker and a place in that worker's order, and edges become waits on counters.
#pragma once

#include <string>
#include <vector>

#include "graph.hpp"
#include "../../runtime/records/schedule.hpp"

namespace flywheel {

/// How to compile a graph: rt.load(graph, compiled), or with costs of one's own.
struct Compiled {
  /// What each task takes, in ns, in the order of Graph::add(); see Trace::costs(). Where it is 0, or there are none: what the
  /// task type says of itself (`double cost_ns() const`), else 1000.
  std::vector<double> costs;
  /// What an edge between two workers takes.
  double hop_ns = 1500;
};
inline const Compiled compiled{};

/// Where and when one task runs.
struct TaskPlan {
  std::uint32_t worker;
  std::uint32_t place;                // in the worker's order
  std::uint32_t signal = kNoCounter;  // the counter it arrives at when done
  std::vector<CounterWait> waits;     // before it starts; those that the worker's own order implies are left out
  double begin_ns = 0;                // by the cost model
  double end_ns = 0;
};

struct SchedulePlan {
  std::vector<TaskPlan> tasks;                    // by graph-local index
  std::vector<std::vector<std::uint32_t>> order;  // of each worker: graph-local indices
  std::vector<std::uint32_t> arrivals;            // of each counter, in one pass
  std::uint32_t sinks = 0;
  std::uint32_t leader = 0;  // the worker of the sink that ends last
  std::uint64_t edges = 0;    // of the graph, without duplicates
  std::uint64_t waits = 0;    // left after pruning
  double makespan_ns = 0;     // by the cost model
  double critical_ns = 0;     // the longest path of the graph on one worker: no schedule is shorter
};

/// List scheduling over the cost model. Throws GraphError for a graph that cannot be compiled: no tasks, a cycle,
/// phases, a task placed on a worker there is not, costs that make no sense.
///
/// A failure travels along everything the plan orders: no successor of a failed task runs, and tasks that come later on
/// the same worker may be left out too.
SchedulePlan make_schedule(const Graph& graph, std::uint32_t workers, const Compiled& how);

/// Proves that the plan is right, from the plan and the graph alone: every task stands in exactly one order; every edge
/// is implied by waits and worker orders; every counter gets exactly its arrivals; and following the orders never gets
/// stuck, whatever the timing. Throws GraphError that names the tasks and workers at fault.
void validate_schedule(const SchedulePlan& plan, const Graph& graph);

/// The plan for a person to read: totals first, then each worker's order with times, waits and signals.
std::string describe_schedule(const SchedulePlan& plan, const Graph& graph);

}  // namespace flywheel
