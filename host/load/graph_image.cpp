#include "graph_image.hpp"

#include <algorithm>

#include "../plan/graph_cycle.hpp"
#include "../plan/operand_check.hpp"
#include "../plan/task_name.hpp"

namespace flywheel::detail {

namespace {

std::uint16_t type_index(const GraphNode& node, const KernelEntry& entry) {
  for (std::uint32_t i = 0; i < entry.type_count; ++i)
    if (node.type == *entry.types[i].type) return static_cast<std::uint16_t>(i);
  throw GraphError("task type " + type_name(node.type) + " is not one of the runtime's: add it to flywheel::start<...>()");
}

TaskRecord make_record(const GraphNode& node, std::uint32_t local, const KernelEntry& entry) {
  TaskRecord record{};
  record.header.type = type_index(node, entry);
  record.header.priority = static_cast<std::uint8_t>(node.priority);
  record.header.result_offset = node.result_offset;
  record.header.local = local;
  std::copy(node.args.begin(), node.args.end(), record.args);
  return record;
}

void add_edges(GraphImage& image, const Graph& graph, const TaskLists& predecessors, const TaskLists& successors) {
  const auto edge_to = [&](std::uint32_t task) {
    return Edge{task, static_cast<std::uint32_t>(predecessors[task].size()),
                static_cast<std::uint32_t>(graph.nodes()[task].priority), 0};
  };
  for (std::uint32_t task = 0; task < graph.size(); ++task) {
    TaskHeader& header = image.records[task].header;
    header.first_edge = static_cast<std::uint32_t>(image.edges.size());
    header.edge_count = static_cast<std::uint32_t>(successors[task].size());
    for (const std::uint32_t next : successors[task]) image.edges.push_back(edge_to(next));
    if (header.edge_count) {
      const Edge& first = image.edges[header.first_edge];
      header.edge_task = first.task;
      header.edge_predecessors = first.predecessors;
      header.edge_priority = first.priority;
    }
    image.run.sinks += successors[task].empty();
    image.counters.push_back(predecessors[task].size());
  }
  image.run.first_root = static_cast<std::uint32_t>(image.edges.size());
  image.run.flags = kRootsUniform | kRootsDense;
  for (std::uint32_t task = 0; task < graph.size(); ++task) {
    if (!predecessors[task].empty()) continue;
    image.edges.push_back(edge_to(task));
    if (graph.nodes()[task].priority != Priority::inherit) image.run.flags &= ~kRootsUniform;
    if (task != image.run.root_count) image.run.flags &= ~kRootsDense;
    image.run.root_task = task;
    ++image.run.root_count;
  }
}

void add_phases(GraphImage& image, const Graph& graph) {
  for (std::uint32_t task = 0; task < graph.size(); ++task) {
    const GraphNode& node = graph.nodes()[task];
    if (image.phases.empty() || graph.nodes()[image.phases.back().first].phase != node.phase)
      image.phases.push_back({task, 0, node.grid, 0});
    ++image.phases.back().count;
  }
  image.run.flags = kPhased;
  image.run.sinks = 1;
  image.exec.phase_count = static_cast<std::uint32_t>(image.phases.size());
}

}  // namespace

GraphImage compile_image(const Graph& graph, const KernelEntry& entry, std::uint32_t workers, const Compiled& how) {
  check_operands(graph);
  return image_of_plan(make_schedule(graph, workers, how), graph, entry);
}

GraphImage image_of_plan(const SchedulePlan& plan, const Graph& graph, const KernelEntry& entry) {
  validate_schedule(plan, graph);
  std::vector<TaskRecord> records;
  for (std::uint32_t task = 0; task < graph.size(); ++task) records.push_back(make_record(graph.nodes()[task], task, entry));
  GraphImage image;
  image.schedule = make_schedule_image(plan, graph, records);
  image.run.flags = kCompiled;
  image.run.sinks = 1;
  return image;
}

namespace {
void refuse_what_needs_a_plan(const Graph& graph) {
  if (!graph.gangs().empty())
    throw GraphError("tasks of Graph::together() need a plan that keeps workers for them: load the graph with `compiled`");
  for (std::uint32_t task = 0; task < graph.size(); ++task) {
    const std::uint32_t worker = graph.nodes()[task].worker;
    if (worker != kAnyWorker)
      throw GraphError(name_of(graph, task) + " is placed on worker " + std::to_string(worker) +
                       ", but here any worker takes any "
                       "task: load the graph with `compiled`, or leave Graph::place() out");
  }
}
}  // namespace

GraphImage make_image(const Graph& graph, const KernelEntry& entry) {
  if (graph.size() == 0) throw GraphError("the graph has no tasks: add() some before load()");
  refuse_what_needs_a_plan(graph);
  GraphImage image;
  for (std::uint32_t task = 0; task < graph.size(); ++task)
    image.records.push_back(make_record(graph.nodes()[task], task, entry));
  if (graph.phase_count()) {
    add_phases(image, graph);
    return image;
  }
  const std::string cycle = find_cycle(graph);
  if (!cycle.empty()) throw GraphError("the graph has a cycle: " + cycle + ". Remove one of these dependencies.");
  const TaskLists predecessors = predecessors_of(graph);
  add_edges(image, graph, predecessors, successors_of(predecessors));
  return image;
}

}  // namespace flywheel::detail
