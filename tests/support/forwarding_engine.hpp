// An engine that passes every call on to another one, on CPU workers. The engines of the tests override what they are about.
#pragma once

#include <memory>
#include <utility>

#include "host/engine/engine.hpp"
#include "support/internals.hpp"

namespace flywheel::testing {

class ForwardingEngine : public Engine {
 public:
  explicit ForwardingEngine(std::unique_ptr<Engine> inner) : inner_(std::move(inner)) {}

  std::string name() const override { return inner_->name(); }
  bool is_gpu() const override { return false; }
  std::uint32_t workers() const override { return inner_->workers(); }
  bool drains() const override { return inner_->drains(); }
  std::uint32_t operand_pages() const override { return 0; }
  void* allocate_device(std::size_t bytes) override { return inner_->allocate_device(bytes); }
  void free_device(void* memory) noexcept override { inner_->free_device(memory); }
  void* allocate_shared(std::size_t bytes) override { return inner_->allocate_shared(bytes); }
  void free_shared(void* memory) noexcept override { inner_->free_shared(memory); }
  void copy_to_device(void* device, const void* host, std::size_t bytes) override {
    inner_->copy_to_device(device, host, bytes);
  }
  void clear(void* device, std::size_t bytes) override { inner_->clear(device, bytes); }
  void copy_to_host(void* host, const void* device, std::size_t bytes) override { inner_->copy_to_host(host, device, bytes); }
  std::string check_pointer(const void* pointer) const override { return inner_->check_pointer(pointer); }
  void launch(const DeviceState& dev) override { inner_->launch(dev); }
  EngineState state(std::string& why_lost) override { return inner_->state(why_lost); }
  void after_stream(CudaStream stream, std::function<void()> then) override { inner_->after_stream(stream, std::move(then)); }
  void make_stream_wait(CudaStream stream, const std::uint32_t* word, std::uint32_t at_least) override {
    inner_->make_stream_wait(stream, word, at_least);
  }

 protected:
  const std::unique_ptr<Engine> inner_;
};

}  // namespace flywheel::testing
