// Tasks that a program submits one by one, without a graph: Runtime::submit(task). The dispatcher owns them, but their way
// goes past its mutex, so that many threads submit at once: a slot from a lock-free queue, a ticket of the inbox, a message
// that carries the task's record. The result comes back in the completion slot.
//
// To the device a single task is a run in a slot behind those of the dispatcher's runs. The thread that waits for it
// collects it; sweep() collects those that no thread waits for.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <typeindex>
#include <vector>

#include "../../runtime/base/status.hpp"
#include "../../runtime/records/device_state.hpp"
#include "../kernel/inbox.hpp"

namespace flywheel::detail {

/// A single task from its submission to its end. Shared by the program's Future and, while it is in flight, by its slot.
struct SingleTask {
  SingleTask(std::type_index of, std::uint32_t in, std::uint32_t nth) : type(of), slot(in), generation(nth) {}

  const std::type_index type;
  const std::uint32_t slot;
  const std::uint32_t generation;
  /// True once the members below are written. Stored with release under the slot's lock, loaded with acquire.
  std::atomic<bool> done{false};
  std::uint32_t code = 0;
  std::string cause;  // for codes of the library: what exactly happened
  alignas(16) std::array<unsigned char, kInlineResultBytes> result;

  /// True once it has ended well; then what it wrote is visible. Acquire: pairs with the release store of `done`.
  bool ended_well() const { return done.load(std::memory_order_acquire) && code == 0; }
};

/// Thread-safe.
class SingleTasks {
 public:
  SingleTasks(const DeviceState& dev, InboxWriter& inbox);
  ~SingleTasks();

  /// Sends the task's record to the device. Null if all slots are taken: then sweep() may free some.
  std::shared_ptr<SingleTask> try_submit(TaskRecord record, std::type_index type, Priority priority);
  /// True if the task is done; collects it if the device has ended it.
  bool collect(SingleTask& task);
  /// Collects all tasks that the device has ended, and frees their slots.
  void sweep();

  /// Keeps the slot of a task that runs follow, and so its end and its result on the device, until unpin(). False if the task
  /// is done and its slot is not its own any more.
  bool pin(const SingleTask& task);
  void unpin(const SingleTask& task);

  /// Tasks whose slots are taken. Sequentially consistent: see Dispatcher::submit() and Dispatcher::park_if_idle().
  std::uint32_t in_flight() const { return in_flight_.load(std::memory_order_seq_cst); }
  /// Tasks submitted so far. Relaxed: pairs with the add in try_submit(); only the count matters.
  std::uint64_t submitted() const { return submitted_.load(std::memory_order_relaxed); }

  /// The slots of single tasks, as indices of run slots go.
  std::uint32_t first_slot() const { return dev_.run_slots; }
  std::uint32_t size() const { return dev_.single_slots; }
  bool owns(std::uint32_t slot) const { return slot >= first_slot(); }
  /// The generation of the task in a slot, 0 if it is free.
  std::uint32_t generation_in(std::uint32_t slot);
  /// The name of the task in a slot, for messages.
  std::string name_in(std::uint32_t slot);
  /// The task in the slot is over for the program: it fails with this status. The slot stays taken until the device has
  /// ended it. False if there is no task.
  bool fail(std::uint32_t slot, Status status, const std::string& cause);
  /// The same for all tasks in flight. `forget`: the device will not end them, so their slots are never free again.
  void fail_all(Status status, const std::string& cause, bool forget);

 private:
  /// One slot.
  struct alignas(64) Place {
    std::atomic_flag lock;             // of the members below; held for some 20 ns
    std::shared_ptr<SingleTask> task;  // null: free
    std::uint32_t generation = 0;      // of the task, or of the last one
    std::uint32_t pins = 0;            // see pin()
    /// The generation while there is a task, else 0: so that sweep() needs no lock for most slots. Stored relaxed under the
    /// lock; take_up() looks again with the lock held.
    std::atomic<std::uint32_t> taken{0};
  };
  struct FreeSlots;
  class Locked;

  bool take_up(std::uint32_t slot, std::uint32_t generation);
  void finish(SingleTask& task) const;

  const DeviceState& dev_;
  InboxWriter& inbox_;
  std::vector<Place> places_;
  std::unique_ptr<FreeSlots> free_;
  std::atomic<std::uint32_t> in_flight_{0};
  std::atomic<std::uint64_t> submitted_{0};
};

}  // namespace flywheel::detail
