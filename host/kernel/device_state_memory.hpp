// Owns the device and host memory behind a DeviceState, the plain struct that kernel and host share. A runtime's core
// holds one and passes its DeviceState to the loader and the dispatcher.
#pragma once

#include <atomic>
#include <vector>

#include "../engine/engine.hpp"

namespace flywheel::detail {

class DeviceStateMemory {
 public:
  /// Allocates all memory, fills the queues and empties the mailboxes. Throws CapacityError for options that cannot
  /// work, DeviceError if memory cannot be allocated.
  DeviceStateMemory(Engine& engine, const Options& options);
  ~DeviceStateMemory();
  DeviceStateMemory(const DeviceStateMemory&) = delete;
  DeviceStateMemory& operator=(const DeviceStateMemory&) = delete;

  const DeviceState& dev() const { return dev_; }
  DeviceState& dev() { return dev_; }
  /// The size of the graph arena, in records. It begins with the spawn pool, the records that messages carry and the blocks
  /// of batches; the loader gives out the rest.
  std::uint64_t arena_units() const { return arena_units_; }
  std::uint64_t first_graph_unit() const { return std::uint64_t{dev_.batch_base} + kBatchBlocks * kBatchTasks; }
  /// Moves the arena to new memory of so many units. Indices into it stay valid, addresses do not. The kernel must be
  /// parked, and nobody else may use the arena meanwhile. Throws CapacityError and changes nothing if there is too
  /// little memory, or if it would take more than the indices of records and edges can reach.
  void grow_arena(std::uint64_t units);
  /// Makes room for `slots` items in each ready queue. The kernel must be parked, and no run in flight. Throws like
  /// grow_arena().
  void grow_queues(std::uint64_t slots);
  /// Keeps the memory until the process ends, because a kernel that cannot be stopped may still write to it. Relaxed:
  /// shutdown() calls it before its thread drops its reference to the core, and the destructor runs after the last
  /// reference is dropped.
  void leak() { leaked_.store(true, std::memory_order_relaxed); }

 private:
  DeviceStateMemory(Engine& engine, const DeviceState& sizes);
  template <class T>
  T* device(std::size_t count);
  template <class T>
  T* shared(std::size_t count);
  void take_trace();
  void fill_queues();
  void point_at_arena(void* memory);
  std::size_t queue_slots() const { return std::size_t{kPriorities} * dev_.queue_capacity + dev_.spawn_capacity; }
  void* replace(void* old, std::size_t bytes);
  void empty_mailboxes();

  Engine& engine_;
  DeviceState dev_{};
  std::uint64_t arena_units_ = 0;
  std::vector<void*> device_;
  std::vector<void*> shared_;
  std::atomic<bool> leaked_{false};  // atomic since several threads may call leak() at once
};

}  // namespace flywheel::detail
