// The kernel's task types: a compile-time list with static dispatch.
#pragma once

#include <type_traits>
#include <utility>

#include "runtime/block.hpp"

namespace flywheel {

namespace detail {
/// A body is portable: called with the block, it returns nothing or a small plain value.
template <class Task, class Block>
FLYWHEEL_TASK void run_body(const TaskRecord& record, Block& block) {
  const Task& task = *reinterpret_cast<const Task*>(record.args);
  using Result = decltype(task(block));
  if constexpr (std::is_void_v<Result>) {
    task(block);
  } else {
    const Result result = task(block);
    if (block.rank() == 0) block.write_result(result);
  }
}
}  // namespace detail

template <class... Tasks>
struct TaskList {
  static constexpr std::uint32_t kSize = sizeof...(Tasks);

  /// Position of `Task` in the list.
  template <class Task>
  FLYWHEEL_TASK static constexpr std::uint32_t index_of() {
    static_assert((std::is_same_v<Task, Tasks> || ...),
                  "this task type is not in the list given to flywheel::start<...>(): add it there");
    std::uint32_t at = 0;
    const bool found = ((std::is_same_v<Task, Tasks> || (++at, false)) || ...);
    return found ? at : kSize;
  }

  /// Runs the record's body on the calling block.
  template <class Block>
  FLYWHEEL_TASK static void run(const TaskRecord& record, Block& block) {
    std::uint32_t at = 0;
    const std::uint32_t type = record.header.type;
    (void)((at++ == type && (detail::run_body<Tasks>(record, block), true)) || ...);
  }
};

/// Stands in for the list where only a body's return type is asked for.
struct AnyTaskList {
  template <class Task>
  FLYWHEEL_TASK static constexpr std::uint32_t index_of() {
    return 0;
  }
};

}  // namespace flywheel
