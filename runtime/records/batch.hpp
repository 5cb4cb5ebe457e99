// What the host and the workers share of batches: tasks without a graph, see runtime/dynamic/batch.hpp.
#pragma once

#include <cstdint>

#include "task.hpp"

namespace flywheel::detail {

inline constexpr std::uint32_t kBatchTasks = 512;  // most tasks of a block
inline constexpr std::uint32_t kBatchBlocks = 64;

/// The type of the library's own task that begins the run of a block, in place of a position in the list of task types.
inline constexpr std::uint16_t kFetchBatchType = 0xffff;
/// Its index in the batch, which names no task of the program.
inline constexpr std::uint32_t kNoLocal = 0xfffffffeu;

/// Its arguments.
struct FetchBatch {
  const TaskRecord* from;  // in pinned memory
  std::uint32_t first;     // in the record arena
  std::uint32_t count;
};

}  // namespace flywheel::detail
