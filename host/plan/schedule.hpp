// Compiles a graph: every task gets a worker and a place in that worker's order, and edges between workers become waits
// on counters. The loader calls make_schedule() and validate_schedule().
#pragma once

#include <string>
#include <vector>

#include "../../runtime/records/schedule.hpp"
#include "../base/compiled.hpp"
#include "graph.hpp"

namespace flywheel::detail {

/// Where and when a task runs. Where warps of a worker run tasks of their own (SchedulePlan::warps), each of them counts as a
/// worker here: `warp * workers + worker`.
struct TaskPlan {
  std::uint32_t worker;
  std::uint32_t place;                // in the worker's order
  std::uint32_t signal = kNoCounter;  // the counter that it increments when it ends
  std::vector<CounterWait> waits;     // before it starts, without those that the orders of workers imply
  double begin_ns = 0;                // by the cost model, like end_ns
  double end_ns = 0;
};

/// A compiled graph: each worker's order, the counters, and totals.
struct SchedulePlan {
  std::vector<TaskPlan> tasks;                    // by graph-local index
  std::vector<std::vector<std::uint32_t>> order;  // of each worker: graph-local indices
  std::vector<std::uint32_t> arrivals;            // of each counter: the number of arrivals in one pass
  std::uint32_t warps = 0;  // not 0: all are warp tasks, and so many warps of each worker have an order of their own
  std::uint32_t sinks = 0;
  std::uint32_t leader = 0;  // the worker of the sink that ends last
  std::uint64_t edges = 0;   // in the graph, without duplicates
  std::uint64_t waits = 0;   // that are left after pruning
  double makespan_ns = 0;    // by the cost model
  double critical_ns = 0;    // longest path of the graph without hops: a lower bound for any schedule
};

/// Compiles the graph by list scheduling with the cost model. Throws GraphError for a graph that cannot be compiled: no
/// tasks, a cycle, phases, a task placed on a worker that does not exist, costs that are negative or not finite.
///
/// A failure propagates along all that the plan orders: no successor of a failed task runs, and later tasks on the same
/// worker may be skipped too.
///
/// `most_warps`: the warps of a worker that can run tasks of their own; 0: none can. A graph of warp tasks alone, without
/// gangs, uses as many of them as its widest level needs.
SchedulePlan make_schedule(const Graph& graph, std::uint32_t workers, const Compiled& how, std::uint32_t most_warps = 0);

/// Proves that the plan is right, from the plan and the graph alone: every task is in exactly one order; waits and
/// orders imply every edge; every counter gets exactly its arrivals; and no worker gets stuck, whatever the timing.
/// Throws GraphError that names the tasks and workers at fault.
void validate_schedule(const SchedulePlan& plan, const Graph& graph);

/// The plan as text: the totals, then each worker's order with times, waits and signals.
std::string describe_schedule(const SchedulePlan& plan, const Graph& graph);

}  // namespace flywheel::detail
