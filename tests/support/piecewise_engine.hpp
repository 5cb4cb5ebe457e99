// CPU workers behind an engine that takes uploads in small pieces and brings them to their place later, as a GPU does.
#pragma once

#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "support/forwarding_engine.hpp"
#include "support/internals.hpp"

namespace flywheel::testing {

class PiecewiseEngine final : public ForwardingEngine {
 public:
  PiecewiseEngine(const KernelEntry& entry, const Options& options, std::size_t piece)
      : ForwardingEngine(make_cpu_engine(entry, options)),
        piece_(piece) {}

  std::string name() const override { return "piecewise"; }

  std::span<unsigned char> stage(void*, std::size_t bytes) override {
    ++taken_;
    const std::size_t size = std::min(bytes, piece_);
    return {static_cast<unsigned char*>(::operator new(size, kAlignment)), size};
  }
  std::uint64_t send(void* device, std::span<unsigned char> piece, std::size_t used) override {
    std::scoped_lock lock(mutex_);
    late_.push_back({device, piece, used});
    ++sent_;
    if (!holds_back_) bring_all();
    return sent_;
  }
  void drop_piece(std::span<unsigned char> piece) noexcept override {
    ::operator delete(piece.data(), kAlignment);
    --taken_;
  }
  void finish_uploads(std::uint64_t) override {
    std::scoped_lock lock(mutex_);
    bring_all();
  }
  void copy_on_device(void* to, const void* from, std::size_t bytes) override {
    finish_uploads(0);  // as work of one stream
    inner_->copy_on_device(to, from, bytes);
  }

  void hold_back(bool yes) { holds_back_ = yes; }
  std::uint64_t sent() const { return sent_; }
  int taken() const { return taken_; }
  std::size_t waiting() {
    std::scoped_lock lock(mutex_);
    return late_.size();
  }

 private:
  static constexpr std::align_val_t kAlignment{128};  // of a record
  struct Late {
    void* device;
    std::span<unsigned char> piece;
    std::size_t used;
  };
  void bring_all() {
    for (const Late& late : std::exchange(late_, {})) {
      std::memcpy(late.device, late.piece.data(), late.used);
      drop_piece(late.piece);
    }
  }

  std::size_t piece_;
  std::atomic<bool> holds_back_{false};
  std::atomic<int> taken_{0};
  std::mutex mutex_;
  std::vector<Late> late_;
  std::uint64_t sent_ = 0;
};

}  // namespace flywheel::testing
