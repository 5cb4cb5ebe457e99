// Prints a plan as text. Every line names what it is about, so that it can be understood in the output of grep.
#include <algorithm>

#include <fmt/format.h>

#include "schedule.hpp"
#include "task_name.hpp"

namespace flywheel::detail {

namespace {

double us(double ns) { return ns / 1000; }

double busy_ns(const SchedulePlan& plan, const std::vector<std::uint32_t>& order) {
  double busy = 0;
  for (const std::uint32_t task : order) busy += plan.tasks[task].end_ns - plan.tasks[task].begin_ns;
  return busy;
}

/// Of one of the plan's workers: which of the runtime's it is, and where those have several orders which of its warps.
std::string number_of(const SchedulePlan& plan, std::size_t worker) {
  if (!plan.warps) return std::to_string(worker);
  const std::size_t workers = plan.order.size() / plan.warps;
  return fmt::format("{}.{}", worker % workers, worker / workers);
}

std::string totals(const SchedulePlan& plan) {
  const auto used = std::count_if(plan.order.begin(), plan.order.end(), [](const auto& o) { return !o.empty(); });
  double busy = 0;
  for (const auto& order : plan.order) busy += busy_ns(plan, order);
  const double idle = 1 - busy / (plan.makespan_ns * static_cast<double>(plan.order.size()));
  return fmt::format("schedule: {} tasks, {} of {} {} used, {} sinks, worker {} speaks\n", plan.tasks.size(), used,
                     plan.order.size(), plan.warps ? "warps" : "workers", plan.sinks, number_of(plan, plan.leader)) +
         fmt::format("edges: {}, as {} waits for {} counters\n", plan.edges, plan.waits, plan.arrivals.size()) +
         fmt::format("makespan: {:.1f} us by the cost model, critical path {:.1f} us, workers idle {:.1f}%\n",
                     us(plan.makespan_ns), us(plan.critical_ns), 100 * idle);
}

std::vector<bool> sinks_of(const Graph& graph) {
  std::vector<bool> sink(graph.size(), true);
  for (const GraphNode& node : graph.nodes())
    for (const std::uint32_t before : node.predecessors) sink[before] = false;
  return sink;
}

std::string name_in_line(const Graph& graph, std::uint32_t task) {
  const std::uint32_t gang = graph.nodes()[task].gang;
  const std::string name = name_of(graph, task);
  return gang == kNoGang ? name : fmt::format("{}  together with {}", name, graph.gangs()[gang].size() - 1);
}

std::string task_line(const TaskPlan& task, const std::string& worker, const std::string& name, bool sink) {
  std::string line =
      fmt::format("  w{}[{}] {:.3f}..{:.3f} us  {}", worker, task.place, us(task.begin_ns), us(task.end_ns), name);
  if (!task.waits.empty()) line += "  waits";
  for (const CounterWait& wait : task.waits) line += fmt::format(" c{}({})", wait.counter, wait.arrivals);
  if (sink) return line + "  sink\n";
  return task.signal == kNoCounter ? line + "\n" : line + fmt::format("  signals c{}\n", task.signal);
}

}  // namespace

std::string describe_schedule(const SchedulePlan& plan, const Graph& graph) {
  const std::vector<bool> sink = sinks_of(graph);
  std::string text = totals(plan);
  for (std::size_t worker = 0; worker < plan.order.size(); ++worker) {
    const auto& order = plan.order[worker];
    const std::string number = number_of(plan, worker);
    text += fmt::format("worker {}: {} tasks, busy {:.1f} of {:.1f} us\n", number, order.size(), us(busy_ns(plan, order)),
                        us(plan.makespan_ns));
    for (const std::uint32_t task : order) text += task_line(plan.tasks[task], number, name_in_line(graph, task), sink[task]);
  }
  return text;
}

}  // namespace flywheel::detail
