#include "batch_blocks.hpp"

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

std::vector<std::string> BatchBlocks::type_names() const {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < entry_.type_count; ++i) names.push_back(type_name(*entry_.types[i].type));
  return names;
}

}  // namespace flywheel::detail
