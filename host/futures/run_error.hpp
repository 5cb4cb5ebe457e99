// The error of a run or single task that did not end well, for Run and Future.
#pragma once

#include "../base/error.hpp"

namespace flywheel::detail {

/// Throws the RunError of work that ended with `code`, which is not 0. `task` names the task, `cause` tells more; both may
/// be empty.
[[noreturn]] inline void throw_run_error(std::uint32_t code, const std::string& task, const std::string& cause) {
  const StatusText text = describe(static_cast<Status>(code));
  std::string message = text.what;
  if (code >= kUserStatus) message += ", " + std::to_string(code - kUserStatus);
  if (!task.empty()) message += ", in " + task;
  if (!cause.empty()) message += " (" + cause + ")";
  throw RunError(code, message + ". Remedy: " + text.remedy + ".");
}

}  // namespace flywheel::detail
