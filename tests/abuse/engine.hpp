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
  /// How many there are of each runtime that may leave nothing behind.
  template <class MayLeave>
  std::map<std::uint32_t, std::size_t> left(MayLeave&& may_leave) {
    std::scoped_lock lock(mutex_);
    std::map<std::uint32_t, std::size_t> counts;
    for (const auto& [piece, runtime] : pieces_)
      if (!may_leave(runtime)) ++counts[runtime];
    return counts;
  }

 private:
  std::mutex mutex_;
  std::map<void*, std::uint32_t> pieces_;
};
inline Pieces& pieces() {
  static auto& all = *new Pieces;
  return all;
}

class CountedEngine final : public testing::ForwardingEngine {
 public:
  CountedEngine(const KernelEntry& entry, const Options& options, std::shared_ptr<testing::Frailty> frailty,
                std::uint32_t runtime)
      : ForwardingEngine(std::make_unique<testing::FrailEngine>(entry, options, std::move(frailty))),
        runtime_(runtime) {}

  void* allocate_device(std::size_t bytes) override { return counted(inner_->allocate_device(bytes)); }
  void free_device(void* memory) noexcept override { inner_->free_device(uncounted(memory)); }
  void* allocate_shared(std::size_t bytes) override { return counted(inner_->allocate_shared(bytes)); }
  void free_shared(void* memory) noexcept override { inner_->free_shared(uncounted(memory)); }
  /// The stream is through at once, or a moment later on a thread of its own.
  void after_stream(CudaStream, std::function<void()> then) override {
    if (streams_.fetch_add(1, std::memory_order_relaxed) % 2) return then();
    std::thread(std::move(then)).detach();
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

  std::uint32_t runtime_;
  std::atomic<std::uint32_t> streams_{0};
};

}  // namespace flywheel::abuse
