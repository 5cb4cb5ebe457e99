// Tasks that a program submits one by one, without a graph: Runtime::submit(task). The dispatcher owns them, but their way
// goes past its mutex, so that many threads submit at once: a slot from the thread's own stack of free ones, a ticket of the
// inbox, a message that carries the task's record. The result comes back in the completion slot.
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

  /// Tasks whose slots are taken. 0 only if each stripe had none when it was looked at: a task that came later has been counted
  /// before its message was written. Sequentially consistent: see Dispatcher::submit() and Dispatcher::park_if_idle().
  std::uint32_t in_flight() const;
  /// Tasks submitted so far.
  std::uint64_t submitted() const;

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
    std::uint32_t stripe = 0;          // that counts the task
    std::uint32_t generation = 0;      // of the task, or of the last one
    std::uint32_t pins = 0;            // see pin()
    /// The generation while there is a task, else 0: so that sweep() needs no lock for most slots. Stored relaxed under the
    /// lock; take_up() looks again with the lock held.
    std::atomic<std::uint32_t> taken{0};
  };
  /// What the threads of one index share: counts, and free slots, of which the one used last goes first, while it is in the
  /// thread's cache. So threads seldom write the same lines.
  struct alignas(64) Stripe {
    std::atomic_flag lock;  // of `free`; held for some 20 ns
    std::vector<std::uint32_t> free;
    std::atomic<std::uint32_t> in_flight{0};
    std::atomic<std::uint64_t> submitted{0};
  };
  static constexpr std::uint32_t kStripes = 16;
  class Locked;

  static std::uint32_t own_stripe();
  bool take_free(std::uint32_t own, std::uint32_t& slot);
  bool take_up(std::uint32_t slot, std::uint32_t generation);
  void finish(SingleTask& task) const;

  const DeviceState& dev_;
  InboxWriter& inbox_;
  std::vector<Place> places_;
  std::array<Stripe, kStripes> stripes_;
};

}  // namespace flywheel::detail
