// An engine that fails when it is told to, and keeps account of its memory.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "support/frail_engine.hpp"

namespace flywheel::abuse {

/// Pieces of memory that engines have given and not taken back. What lies here is not lost: the leak checker looks into it.
class Pieces {
 public:
  void add(void* piece, std::uint32_t runtime) {
    std::scoped_lock lock(mutex_);
    pieces_[piece] = runtime;
  }
  void remove(void* piece) {
    std::scoped_lock lock(mutex_);
    pieces_.erase(piece);
  }
  /// Of runtimes that may leave nothing behind.
  template <class MayLeave>
  std::size_t left(MayLeave&& may_leave) {
    std::scoped_lock lock(mutex_);
    std::size_t count = 0;
    for (const auto& [piece, runtime] : pieces_) count += !may_leave(runtime);
    return count;
  }

 private:
  std::mutex mutex_;
  std::map<void*, std::uint32_t> pieces_;
};
inline Pieces& pieces() {
  static auto& all = *new Pieces;
  return all;
}

class CountedEngine final : public Engine {
 public:
  CountedEngine(const KernelEntry& entry, const Options& options, std::shared_ptr<testing::Frailty> frailty,
                std::uint32_t runtime)
      : inner_(std::make_unique<testing::FrailEngine>(entry, options, std::move(frailty))),
        runtime_(runtime) {}

  std::string name() const override { return inner_->name(); }
  bool is_gpu() const override { return false; }
  std::uint32_t workers() const override { return inner_->workers(); }
  bool drains() const override { return inner_->drains(); }
  std::uint32_t operand_pages() const override { return 0; }
  void* allocate_device(std::size_t bytes) override { return counted(inner_->allocate_device(bytes)); }
  void free_device(void* memory) noexcept override { inner_->free_device(uncounted(memory)); }
  void* allocate_shared(std::size_t bytes) override { return counted(inner_->allocate_shared(bytes)); }
  void free_shared(void* memory) noexcept override { inner_->free_shared(uncounted(memory)); }
  void copy_to_device(void* device, const void* host, std::size_t bytes) override {
    inner_->copy_to_device(device, host, bytes);
  }
  void clear(void* device, std::size_t bytes) override { inner_->clear(device, bytes); }
  void copy_to_host(void* host, const void* device, std::size_t bytes) override { inner_->copy_to_host(host, device, bytes); }
  std::string check_pointer(const void* pointer) const override { return inner_->check_pointer(pointer); }
  void launch(const DeviceState& dev) override { inner_->launch(dev); }
  EngineState state(std::string& why) override { return inner_->state(why); }
  /// The stream is through at once, or a moment later on a thread of its own.
  void after_stream(CudaStream, std::function<void()> then) override {
    if (streams_.fetch_add(1, std::memory_order_relaxed) % 2) return then();
    std::thread(std::move(then)).detach();
  }
  void make_stream_wait(CudaStream stream, const std::uint32_t* word, std::uint32_t at_least) override {
    inner_->make_stream_wait(stream, word, at_least);
  }

 private:
  void* counted(void* piece) const {
    pieces().add(piece, runtime_);
    return piece;
  }
  static void* uncounted(void* piece) {
    pieces().remove(piece);
    return piece;
  }

  std::unique_ptr<Engine> inner_;
  std::uint32_t runtime_;
  std::atomic<std::uint32_t> streams_{0};
};

}  // namespace flywheel::abuse
