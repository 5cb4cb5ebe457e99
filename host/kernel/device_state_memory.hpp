// Owner of the memory behind a DeviceState.
#pragma once

#include <atomic>
#include <vector>

#include "../engine/engine.hpp"

namespace flywheel {

class DeviceStateMemory {
 public:
  /// Throws CapacityError for options that cannot work, DeviceError if the memory is not to be had.
  DeviceStateMemory(Engine& engine, const Options& options);
  ~DeviceStateMemory();
  DeviceStateMemory(const DeviceStateMemory&) = delete;
  DeviceStateMemory& operator=(const DeviceStateMemory&) = delete;

  const DeviceState& dev() const { return dev_; }
  DeviceState& dev() { return dev_; }
  /// Leaves everything to the process: a kernel that cannot be stopped may still write to it.
  void leak() { leaked_.store(true, std::memory_order_relaxed); }

 private:
  DeviceStateMemory(Engine& engine, const DeviceState& sizes);
  template <class T>
  T* device(std::size_t count);
  template <class T>
  T* shared(std::size_t count);
  void take_trace();
  void fill_queues();
  void empty_mailboxes();

  Engine& engine_;
  DeviceState dev_{};
  std::vector<void*> device_;
  std::vector<void*> shared_;
  std::atomic<bool> leaked_{false};  // several threads may say so; whoever looks has seen them let go
};

}  // namespace flywheel
