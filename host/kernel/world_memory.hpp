// Owner of the memory behind a World.
#pragma once

#include <atomic>
#include <vector>

#include "host/engine/engine.hpp"

namespace flywheel {

class WorldMemory {
 public:
  /// Throws CapacityError for options that cannot work, DeviceError if the memory is not to be had.
  WorldMemory(Engine& engine, const Options& options);
  ~WorldMemory();
  WorldMemory(const WorldMemory&) = delete;
  WorldMemory& operator=(const WorldMemory&) = delete;

  const World& world() const { return world_; }
  World& world() { return world_; }
  /// Leaves everything to the process: a kernel that cannot be stopped may still write to it.
  void leak() { leaked_.store(true, std::memory_order_relaxed); }

 private:
  WorldMemory(Engine& engine, const World& sizes);
  template <class T>
  T* device(std::size_t count);
  template <class T>
  T* shared(std::size_t count);
  void take_trace();
  void fill_queues();
  void empty_mailboxes();

  Engine& engine_;
  World world_{};
  std::vector<void*> device_;
  std::vector<void*> shared_;
  std::atomic<bool> leaked_{false};  // several threads may say so; whoever looks has seen them let go
};

}  // namespace flywheel
