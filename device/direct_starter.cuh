// The inbox poller starts a task itself: its lanes write a message that suits the direct slot into the next task slot of the
// worker beside them, and command the compute warps. That worker's control thread waits at the direct slot meanwhile. It takes
// the task over while the body runs (GpuExecutor::take_started()), so what it has to do first delays no submission.
// kernel.cuh includes this header.
#pragma once

#include "executor_shared.cuh"

namespace flywheel::detail {

/// See DirectDelivery, in whose place InboxPoller uses it. All lanes of the poller have one, while the direct slot is claimed:
/// the control thread uses no task slot before it has seen the item.
class DirectStarter {
 public:
  static constexpr bool kStarts = true;

  /// `next_slot`: the claim has acquired it, see IdleSlot::enroll().
  __device__ explicit DirectStarter(DirectSlot&) : slot_(executor_shared().next_slot) {}

  __device__ RunConstants& constants() const { return executor_shared().task_slots[slot_].run.constants; }
  __device__ TaskRecord& record() const { return executor_shared().task_slots[slot_].record; }

  /// All lanes: puts the record of a loaded graph's task into the slot, unless it is there still.
  __device__ void fetch(const DeviceState& dev, std::uint32_t index, std::uint32_t serial) const {
    SlotTag& tag = executor_shared().tags[slot_];
    const bool is_there = tag.record == index && tag.serial == serial;
    __syncwarp();  // all lanes have read the tag
    if (is_there) return;
    const std::uint32_t lane = threadIdx.x % 32;
    static_assert(sizeof(TaskRecord) == 32 * sizeof(std::uint32_t));
    auto* const from = reinterpret_cast<std::uint32_t*>(dev.records + index);
    // Relaxed: pairs with nothing that still happens. The message has acquired the record, which does not change while a run of
    // its graph is in flight.
    reinterpret_cast<std::uint32_t*>(&record())[lane] = ThreadPlatform::device(from[lane]).load(Order::relaxed);
    if (lane == 0) tag = {index, serial};
  }

  /// The leading lane: starts the body. `carried`: the message has brought the record.
  __device__ void start(RunState& run, Item item, bool carried) const {
    start_task(slot_, &run, item, 0);
    if (carried) executor_shared().tags[slot_].record = SlotTag::kNoRecord;
  }

 private:
  const std::uint32_t slot_;
};

}  // namespace flywheel::detail
