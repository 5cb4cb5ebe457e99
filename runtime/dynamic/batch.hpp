// Batches: tasks without a graph, which travel to the device in blocks of up to kBatchTasks records. The executors
// (device/executor.cuh, cpu/executor.hpp) include it; host/load/batch_blocks.hpp has the host's end.
//
// The host writes the records of a block to pinned memory and submits a run. Its message carries the record of a task of
// the library's own, which copies the block to device memory with all threads of a worker and then publishes the tasks as
// the roots of the run. So the records cross PCIe once, in large pieces, and no worker waits for that but this one.
#pragma once

#include "task_list.hpp"

namespace flywheel::detail {

/// Copies the records to the arena, shared out over the threads of the block.
template <class Block>
FLYWHEEL_TASK void copy_batch(const FetchBatch& batch, TaskRecord* records, Block& block) {
  struct alignas(16) Piece {
    std::uint64_t words[2];
  };
  constexpr int kAtOnce = Block::kOnGpu ? 8 : 1;  // loads under way for each thread: a trip across PCIe takes 1 us
  const auto* from = reinterpret_cast<const Piece*>(batch.from);
  auto* to = reinterpret_cast<Piece*>(records + batch.first);
  const int n = static_cast<int>(batch.count * (sizeof(TaskRecord) / sizeof(Piece)));
  for (int base = block.rank(); base < n; base += kAtOnce * block.size()) {
    Piece pieces[kAtOnce];
    for (int k = 0; k < kAtOnce; ++k)
      if (base + k * block.size() < n) pieces[k] = from[base + k * block.size()];
    for (int k = 0; k < kAtOnce; ++k)
      if (base + k * block.size() < n) to[base + k * block.size()] = pieces[k];
  }
}

/// The body of that task.
template <class Block>
FLYWHEEL_COLD void fetch_batch(const TaskRecord& record, Block& block) {
  const FetchBatch& batch = *reinterpret_cast<const FetchBatch*>(record.args);
  if (batch.count == 0) return;  // of a run that only follows others
  copy_batch(batch, block.records(), block);
  block.sync();  // publish_own_roots() releases what all threads wrote
  if (block.leader()) block.publish_own_roots();
}

/// Runs the body of a task of a dynamic run: one of the list's types, or fetch_batch(). `Runs` is the list, or what calls
/// its bodies in its place.
template <class Runs, class Block>
FLYWHEEL_TASK void run_dynamic(const TaskRecord& record, Block& block) {
  if (record.header.type != kFetchBatchType) return Runs::run(record, block);
  Block copy = block;  // the call takes its address: the caller's own block stays in registers
  fetch_batch(record, copy);
}

}  // namespace flywheel::detail
