// Translates a plan into the instruction streams that workers read. Included by graph_image.hpp, which the loader uses.
#pragma once

#include "../../runtime/compiled/operands.hpp"
#include "schedule.hpp"

namespace flywheel::detail {

/// All instruction streams of a schedule, one worker's after the other's.
struct ScheduleImage {
  struct Stream {
    std::size_t first;  // index of its first instruction
    std::uint32_t count;
    std::uint64_t operands_at;  // offset in bytes into the operands of all workers
    std::size_t first_operand_task;
    std::uint32_t operand_tasks;
  };
  std::vector<Instruction> instructions;
  std::vector<Stream> streams;
  std::vector<OperandTask> operand_tasks;
  std::uint64_t operand_bytes = 0;
  std::uint32_t counters = 0;
  std::uint32_t sinks = 0;
  std::uint32_t leader = 0;
  std::uint32_t warps = 0;  // as SchedulePlan::warps
  bool bare = false;        // no task has parts or operands, and none is early
};

/// Makes the streams. `records` are the graph's tasks, by graph-local index.
ScheduleImage make_schedule_image(const SchedulePlan& plan, const Graph& graph, const std::vector<TaskRecord>& records);

}  // namespace flywheel::detail
