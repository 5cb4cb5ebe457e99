#include "schedule_image.hpp"

#include <algorithm>

namespace flywheel::detail {

namespace {

Instruction only_waits(const TaskRecord& record) {
  Instruction instruction{};
  instruction.record.header.local = record.header.local;
  instruction.signal = kNoCounter;
  instruction.flags = kOnlyWaits;
  return instruction;
}

bool waits_for(const GraphNode& node, std::uint32_t task) {
  return std::find(node.predecessors.begin(), node.predecessors.end(), task) != node.predecessors.end();
}

void add_wait(Instruction& instruction, const CounterWait& wait) { instruction.waits[instruction.wait_count++] = wait; }

/// Appends a task. If it has more waits than an instruction can hold, instructions that only wait come first.
void add_task(std::vector<Instruction>& to, const TaskPlan& plan, const GraphNode& node, const TaskRecord& record) {
  std::size_t next = 0;
  while (plan.waits.size() - next > kInstructionWaits) {
    to.push_back(only_waits(record));
    for (std::uint32_t i = 0; i < kInstructionWaits; ++i) add_wait(to.back(), plan.waits[next++]);
  }
  Instruction instruction{};
  instruction.record = record;
  instruction.signal = plan.signal;
  instruction.operand_bytes = node.operand_bytes;
  instruction.dependent_pages = node.dependent_pages;
  while (next < plan.waits.size()) add_wait(instruction, plan.waits[next++]);
  to.push_back(instruction);
}

}  // namespace

ScheduleImage make_schedule_image(const SchedulePlan& plan, const Graph& graph, const std::vector<TaskRecord>& records) {
  ScheduleImage image;
  image.counters = static_cast<std::uint32_t>(plan.arrivals.size());
  image.leader = plan.leader;
  image.warps = plan.warps;
  image.bare = !graph.has_parts();
  std::vector<bool> is_sink(graph.size(), true);
  for (const GraphNode& node : graph.nodes())
    for (const std::uint32_t before : node.predecessors) is_sink[before] = false;
  for (const auto& order : plan.order) {
    // A worker tells of its tasks in order, so its last sink speaks for those before it: an arrival at the gate less for each.
    const auto last_sink = std::find_if(order.rbegin(), order.rend(), [&](std::uint32_t task) { return is_sink[task]; });
    if (last_sink != order.rend()) ++image.sinks;
    ScheduleImage::Stream stream{image.instructions.size(), 0, image.operand_bytes, image.operand_tasks.size(), 0};
    for (std::size_t place = 0; place < order.size(); ++place) {
      const std::uint32_t task = order[place];
      const GraphNode& node = graph.nodes()[task];
      const std::size_t first = image.instructions.size();
      add_task(image.instructions, plan.tasks[task], node, records[task]);
      std::uint32_t& flags = image.instructions.back().flags;
      if (last_sink != order.rend() && task == *last_sink) flags |= kSink;
      if (node.early) flags |= kEarly;
      if (node.gang != kNoGang) flags |= kInGang;
      // An instruction that only waits fails if a predecessor has failed, so the task depends on the instruction before
      // it.
      const bool has_bare_waits = image.instructions.size() - first > 1;
      if (has_bare_waits || (place && waits_for(node, order[place - 1]))) flags |= kAfterPrevious;
      image.operand_bytes += padded_operands(node.operand_bytes);
      if (node.operand_bytes || node.dependent_pages)
        image.operand_tasks.push_back({static_cast<std::uint32_t>(image.instructions.size() - 1 - stream.first),
                                       padded_operands(node.operand_bytes), node.dependent_pages, 0});
    }
    stream.operand_tasks = static_cast<std::uint32_t>(image.operand_tasks.size() - stream.first_operand_task);
    stream.count = static_cast<std::uint32_t>(image.instructions.size() - stream.first);
    image.streams.push_back(stream);
  }
  return image;
}

}  // namespace flywheel::detail
