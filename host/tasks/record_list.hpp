// The records of a graph's tasks, as add() writes them and load() copies them to the device. They lie in chunks, so
// that a growing list copies none of them. Included by task_store.hpp.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "../../runtime/records/task.hpp"
#include "chunk_pool.hpp"

namespace flywheel::detail {

/// Move-only.
class RecordList {
 public:
  static constexpr std::uint32_t kPerChunk = kChunkBytes / sizeof(TaskRecord);

  RecordList() = default;
  RecordList(RecordList&& other) noexcept { swap(other); }
  RecordList& operator=(RecordList&& other) noexcept {
    RecordList taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~RecordList() {
    for (TaskRecord* chunk : chunks_) give_back_chunk(chunk);
  }
  void swap(RecordList& other) noexcept {
    std::swap(chunks_, other.chunks_);
    std::swap(size_, other.size_);
  }

  std::uint32_t size() const { return size_; }
  const TaskRecord& operator[](std::uint32_t i) const { return chunks_[i / kPerChunk][i % kPerChunk]; }
  TaskRecord& operator[](std::uint32_t i) { return chunks_[i / kPerChunk][i % kPerChunk]; }
  /// Adds a record with any content.
  TaskRecord& add() {
    if (size_ == chunks_.size() * kPerChunk) [[unlikely]]
      add_chunk();
    return (*this)[size_++];
  }
  /// Removes the records from `size` on.
  void cut(std::uint32_t size) { size_ = size; }
  /// The records from `first` on that lie side by side, at most `most`.
  std::span<const TaskRecord> piece(std::uint32_t first, std::size_t most) const {
    const std::size_t here = std::min(kPerChunk - first % kPerChunk, size_ - first);
    return {&(*this)[first], std::min(here, most)};
  }

 private:
  void add_chunk() {
    if (chunks_.size() == chunks_.capacity()) chunks_.reserve(2 * chunks_.size() + 1);  // the next line must not throw late
    chunks_.push_back(static_cast<TaskRecord*>(take_chunk()));
  }

  std::vector<TaskRecord*> chunks_;
  std::uint32_t size_ = 0;
};

}  // namespace flywheel::detail
