// The blocks in which tasks without a graph travel to the device, see runtime/dynamic/task_list.hpp. A runtime's core owns
// them; Runtime fills a block for each part of a batch, and the part's run returns it when the run has left its slot.
#pragma once

#include <array>
#include <mutex>
#include <optional>
#include <string>
#include <typeindex>
#include <vector>

#include "../../runtime/records/device_state.hpp"
#include "../../runtime/records/entry.hpp"
#include "graph_image.hpp"

namespace flywheel::detail {

/// Thread-safe.
class BatchBlocks {
 public:
  struct Block {
    TaskRecord* records;  // pinned memory for kBatchTasks records
    std::uint32_t first;  // index in the record arena of the place that they are copied to
  };

  BatchBlocks(const DeviceState& dev, const KernelEntry& entry);
  /// A block that no run uses, if there is one. As with run slots, normal batches leave a sixteenth to high ones, and low
  /// batches an eighth.
  std::optional<Block> try_take(Priority priority);
  void give_back(const Block& block);
  /// The position of a task type in the kernel's list. Throws GraphError if it is not there.
  std::uint16_t type_index(std::type_index type) const { return detail::type_index(type, entry_); }
  /// The names of the types in that list.
  std::vector<std::string> type_names() const;

 private:
  const DeviceState& dev_;
  const KernelEntry entry_;
  std::mutex mutex_;
  std::array<std::uint32_t, kBatchBlocks> free_;
  std::uint32_t free_count_ = kBatchBlocks;
};

}  // namespace flywheel::detail
