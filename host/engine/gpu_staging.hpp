// Pinned pieces of host memory through which uploads reach the GPU. The host fills one piece while the copy engine
// reads others, and nobody waits for the stream: each copy has an event. The GPU engine owns one.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "../base/cuda_stream.hpp"

struct CUevent_st;

namespace flywheel::detail {

/// Thread-safe. Functions throw DeviceError if a CUDA call fails. The caller makes the stream's device current.
class GpuStaging {
 public:
  explicit GpuStaging(CudaStream stream);
  ~GpuStaging();
  GpuStaging(const GpuStaging&) = delete;
  GpuStaging& operator=(const GpuStaging&) = delete;

  // Each piece costs four CUDA calls. The last one is copied when the host has nothing left to do, in some 10 us.
  static constexpr std::size_t kPieceBytes = std::size_t{512} << 10;
  static constexpr std::size_t kPieces = 16;

  /// A piece of at most `bytes` bytes. Waits for the oldest copy if all pieces are on their way.
  std::span<unsigned char> take(std::size_t bytes);
  /// Begins to copy `used` bytes of the piece to the device. Returns the number of the copy, from 1.
  std::uint64_t send(void* device, std::span<unsigned char> piece, std::size_t used);
  void drop(std::span<unsigned char> piece) noexcept;
  /// Waits until this copy and all before it have ended.
  void finish(std::uint64_t number);

 private:
  struct Sent {
    std::uint64_t number;
    unsigned char* piece;
  };

  bool has_arrived(std::uint64_t number);
  void collect();

  const CudaStream stream_;
  void* memory_ = nullptr;
  // Copy n records event n % kPieces. At most kPieces copies are on their way, so the event's copy before n has ended.
  std::array<CUevent_st*, kPieces> events_{};
  std::atomic<std::uint64_t> arrived_{0};  // copies up to this one are known to have ended
  std::mutex mutex_;                       // guards what follows, and keeps copies and their events in order
  std::vector<unsigned char*> free_;
  std::deque<Sent> sent_;
  std::uint64_t last_ = 0;  // number of the latest copy
};

}  // namespace flywheel::detail
