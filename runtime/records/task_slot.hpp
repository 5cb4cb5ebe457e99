// What the worker's loop and its executor hand each other: the task to run, and how a phased run ended.
#pragma once

#include "run.hpp"
#include "task.hpp"

namespace flywheel {

/// Copies of a task's record and of its run's line, where bodies and the worker's loop find them.
struct TaskSlot {
  TaskRecord record;
  RunLine run;
};

struct PhasesEnd {
  std::uint32_t pass;  // in which it ended
  bool early;
};

}  // namespace flywheel
