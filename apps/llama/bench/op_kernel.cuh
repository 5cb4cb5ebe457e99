// The kernel of one operation: block b runs task b of a stage.
#pragma once

#include "apps/llama/bench/op_block.cuh"

namespace llama {

/// A launch's argument. Tasks lie kTaskArgBytes apart.
struct OpStage {
  const unsigned char* tasks;
  const OpOperandRange* ranges;   // one a task
  const unsigned char* operands;  // the packed stream
  OpRun run;
  bool ends_step;  // it is the last operation of a step: see OpShared::init()
};

template <class Task>
concept HasStorePart = requires(const Task& task, OpBlock& block, OpOperands& operands, OpStoreBlock& store) {
  task.compute(block, operands);
  task.store(store);
};

namespace op {
/// All threads of the block.
template <class Task>
__device__ void fetch(const Task& task, OpShared& shared) {
  if constexpr (requires(OpFetch fetch) { task.dependents(fetch); }) {
    if (threadIdx.x == 0) task.dependents(OpFetch(shared));
    __syncthreads();
  }
}
template <class Task>
__device__ void compute(const Task& task, OpBlock& block, OpOperands& operands) {
  if constexpr (requires { task.compute(block, operands); }) task.compute(block, operands);
  else task(block);
  if constexpr (HasStorePart<Task>) block.end();
}
template <class Task>
__device__ void store(const Task& task, OpStoreBlock& block) {
  if constexpr (HasStorePart<Task>) task.store(block);
}
}  // namespace op

/// Several blocks an SM, so that one can load while others end or begin; fewer have more registers to load into. What
/// stands before wait_for_last_operation() reads nothing that an operation of the step writes.
template <class Task, int kBlocksOfSm>
__global__ void __launch_bounds__(kOpThreads, kBlocksOfSm) run_op(const __grid_constant__ OpStage stage) {
  __shared__ OpShared shared;
  __shared__ alignas(16) std::uint32_t words[kTaskArgBytes / 4];
  op::launch_dependents();
  const OpOperandRange range = stage.ranges[blockIdx.x];
  OpOperands operands(shared, stage.operands + range.first, range.bytes, stage.run.pages_ahead);
  if (threadIdx.x == 0) {
    operands.prefetch_first();
    shared.init(stage.run);
  }
  if (threadIdx.x < kTaskArgBytes / 4)
    words[threadIdx.x] = reinterpret_cast<const std::uint32_t*>(stage.tasks + blockIdx.x * kTaskArgBytes)[threadIdx.x];
  __syncthreads();
  const Task& task = *reinterpret_cast<const Task*>(words);
  op::wait_for_last_operation();
  op::fetch(task, shared);
  if (threadIdx.x < kOpComputeThreads) {
    OpBlock block(stage.run, shared);
    op::compute(task, block, operands);
  } else {
    OpStoreBlock block(stage.run, shared);
    op::store(task, block);
  }
  if (stage.ends_step && threadIdx.x == 0) ThreadPlatform::device(*stage.run.ended).add(1, Order::relaxed);
}

/// What pack() asks of a block of kOpComputeThreads.
struct OpPackBlock {
  template <class F>
  __device__ void for_each(int n, F&& f) const {
    for (int i = static_cast<int>(threadIdx.x); i < n; i += kOpComputeThreads) f(i);
  }
};

/// Once, before anything is run.
template <class Task>
__global__ void pack_op(const unsigned char* tasks, const OpOperandRange* ranges, unsigned char* operands) {
  OpPackBlock block;
  const Task& task = *reinterpret_cast<const Task*>(tasks + blockIdx.x * kTaskArgBytes);
  task.pack(block, operands + ranges[blockIdx.x].first);
}

}  // namespace llama
