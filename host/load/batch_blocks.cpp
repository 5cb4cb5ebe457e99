#include "batch_blocks.hpp"

#include "../base/error.hpp"
#include "../plan/graph.hpp"

namespace flywheel::detail {

BatchBlocks::BatchBlocks(const DeviceState& dev, const KernelEntry& entry) : dev_(dev), entry_(entry) {
  for (std::uint32_t i = 0; i < kBatchBlocks; ++i) free_[i] = i;
}

std::optional<BatchBlocks::Block> BatchBlocks::try_take(Priority priority) {
  const std::uint32_t left = priority == Priority::high ? 0 : priority == Priority::low ? kBatchBlocks / 8 : kBatchBlocks / 16;
  std::scoped_lock lock(mutex_);
  if (free_count_ <= left) return std::nullopt;
  const std::uint32_t first = free_[--free_count_] * kBatchTasks;
  return Block{dev_.batch_records + first, dev_.batch_base + first};
}

void BatchBlocks::give_back(const Block& block) {
  std::scoped_lock lock(mutex_);
  free_[free_count_++] = (block.first - dev_.batch_base) / kBatchTasks;
}

std::uint16_t BatchBlocks::type_index(std::type_index type) const {
  for (std::uint32_t i = 0; i < entry_.type_count; ++i)
    if (type == *entry_.types[i].type) return static_cast<std::uint16_t>(i);
  throw UsageError("task type " + type_name(type) + " is not one of the runtime's: add it to flywheel::start<...>()");
}

}  // namespace flywheel::detail
