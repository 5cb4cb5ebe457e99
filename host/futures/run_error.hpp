// The error of a run or single task that did not end well, for Run and Future.
#pragma once

#include "../base/error.hpp"
#include "../submit/completion.hpp"

namespace flywheel::detail {

/// Throws the RunError of work that ended with `code`, which is not 0. `task` names the task, `cause` tells more; both may
/// be empty.
[[noreturn]] inline void throw_run_error(std::uint32_t code, const std::string& task, const std::string& cause) {
  const std::string remedy = describe(static_cast<Status>(code)).remedy;
  throw RunError(code, failure_text(code, task, cause) + ". Remedy: " + remedy + ".");
}

}  // namespace flywheel::detail
