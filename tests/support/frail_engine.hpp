// CPU workers behind an engine that fails when it is told to, as a GPU does whose context has died.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "host/base/error.hpp"
#include "support/forwarding_engine.hpp"
#include "support/internals.hpp"

namespace flywheel::testing {

/// What an engine shall do, and what it was asked for; the test and the engine share it.
struct Frailty {
  std::atomic<bool> refuses_launches{false};
  std::atomic<bool> refuses_copies{false};
  std::atomic<bool> refuses_one_copy{false};  // back to the host
  std::atomic<int> pieces_left{1 << 20};      // of memory, that it gives
  std::atomic<int> pieces{0};                 // that it has given and not taken back
  std::atomic<bool> never_starts{false};      // launches go well, but no worker comes until it is false again, as on a busy GPU
  std::atomic<bool> lost{false};
  std::atomic<bool> blocks_in_launch{false};  // until it is false again
  std::function<void()> called_back;          // by a stream that never gets there; keeps the runtime, so let it go in the end
  const std::uint32_t* awaited = nullptr;     // by a stream
  std::uint32_t awaited_value = 0;
};

class FrailEngine final : public ForwardingEngine {
 public:
  FrailEngine(const KernelEntry& entry, const Options& options, std::shared_ptr<Frailty> frailty)
      : ForwardingEngine(make_cpu_engine(entry, options)),
        frailty_(std::move(frailty)) {}

  std::string name() const override { return "frail"; }

  void* allocate_device(std::size_t bytes) override {
    refuse_if(frailty_->pieces_left-- == 0);
    ++frailty_->pieces;
    return inner_->allocate_device(bytes);
  }
  void free_device(void* memory) noexcept override {
    --frailty_->pieces;
    inner_->free_device(memory);
  }
  void* allocate_shared(std::size_t bytes) override { return allocate_device(bytes); }
  void free_shared(void* memory) noexcept override { free_device(memory); }
  void copy_to_device(void* device, const void* host, std::size_t bytes) override {
    refuse_if(frailty_->refuses_copies);
    inner_->copy_to_device(device, host, bytes);
  }
  void copy_to_host(void* host, const void* device, std::size_t bytes) override {
    refuse_if(frailty_->refuses_copies || frailty_->refuses_one_copy.exchange(false));
    inner_->copy_to_host(host, device, bytes);
  }

  void launch(const DeviceState& dev) override {
    if (frailty_->refuses_launches) throw LaunchRefused("the test does not want it");
    if (frailty_->blocks_in_launch) {
      wait_in_launch();
      // Relaxed: only the value counts. Workers would leave at once, and nobody would join their threads.
      if (CpuPlatform::device(dev.control->broadcast.abort).load(Order::relaxed)) return;
    }
    dev_ = dev;
    queued_ = frailty_->never_starts;
    if (!queued_) inner_->launch(dev);
  }
  EngineState state(std::string& why) override {
    if (frailty_->lost) return lose(why);
    if (queued_ && frailty_->never_starts) return EngineState::running;
    if (std::exchange(queued_, false)) inner_->launch(dev_);
    return inner_->state(why);
  }

  void after_stream(CudaStream, std::function<void()> then) override { frailty_->called_back = std::move(then); }
  void make_stream_wait(CudaStream, const std::uint32_t* word, std::uint32_t at_least) override {
    frailty_->awaited = word;
    frailty_->awaited_value = at_least;
  }

 private:
  void wait_in_launch() const {
    const std::shared_ptr<Frailty> frailty = frailty_;
    while (frailty->blocks_in_launch) flywheel::detail::cpu_pause(100000);
  }
  static void refuse_if(bool refused) {
    if (refused) throw DeviceError("the test does not want it");
  }
  /// The threads end before the memory goes.
  EngineState lose(std::string& why) {
    why = "the test has taken the device away";
    if (inner_->state(why) == EngineState::parked) return EngineState::lost;
    CpuPlatform::device(dev_.control->broadcast.abort).store(1, Order::relaxed);
    std::string unused;
    while (inner_->state(unused) == EngineState::running) flywheel::detail::cpu_pause(100000);
    return EngineState::lost;
  }

  std::shared_ptr<Frailty> frailty_;
  DeviceState dev_{};
  bool queued_ = false;  // a launch that waits for the device
};

}  // namespace flywheel::testing
