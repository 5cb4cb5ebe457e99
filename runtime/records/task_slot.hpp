// What a worker's loop and its executor exchange: the task to run, and how a phased run ended.
#pragma once

#include "run.hpp"
#include "task.hpp"

namespace flywheel::detail {

/// A worker's copies of a task's record and of its run's line, for the worker's loop and the task body.
struct TaskSlot {
  TaskRecord record;
  RunLine run;
};

/// How a worker's part of a phased run ended.
struct PhasesEnd {
  std::uint32_t pass;   // the last pass, from 0
  bool early;           // it ended at a vote to stop or an abort, not after its last pass
  bool end_of_pass;     // it ended after the last phase of that pass
  std::uint32_t phase;  // the next phase of that pass, unless `end_of_pass`
};

}  // namespace flywheel::detail
