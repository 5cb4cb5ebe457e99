// Tasks that work side by side, and what the next ones wait for.
#pragma once

#include <flywheel/flywheel.hpp>

#include <vector>

namespace llama {

using namespace flywheel;

using Stage = std::vector<TaskRef<>>;

inline After after_all(const Stage& stage) {
  After waits;
  for (const TaskRef<>& task : stage) waits.add(task);
  return waits;
}

}  // namespace llama
