#include "gpu_staging.hpp"

#include <algorithm>
#include <thread>

#include "../base/cuda_error.hpp"

namespace flywheel::detail {

GpuStaging::GpuStaging(CudaStream stream) : stream_(stream) {
  FLYWHEEL_CUDA(cudaHostAlloc(&memory_, kPieces * kPieceBytes, cudaHostAllocPortable));
  for (CUevent_st*& event : events_) FLYWHEEL_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  for (std::size_t piece = kPieces; piece-- > 0;) free_.push_back(static_cast<unsigned char*>(memory_) + piece * kPieceBytes);
}

GpuStaging::~GpuStaging() {
  for (CUevent_st* event : events_) cuda_note(cudaEventDestroy(event), "cudaEventDestroy");
  cuda_note(cudaFreeHost(memory_), "cudaFreeHost");
}

std::span<unsigned char> GpuStaging::take(std::size_t bytes) {
  std::unique_lock lock(mutex_);
  collect();  // also while there are others: the piece that comes back last is in the caches, and is the next to be taken
  while (free_.empty()) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
    collect();
  }
  unsigned char* const piece = free_.back();
  free_.pop_back();
  return {piece, std::min(bytes, kPieceBytes)};
}

std::uint64_t GpuStaging::send(void* device, std::span<unsigned char> piece, std::size_t used) {
  std::scoped_lock lock(mutex_);
  FLYWHEEL_CUDA(cudaMemcpyAsync(device, piece.data(), used, cudaMemcpyHostToDevice, stream_));
  FLYWHEEL_CUDA(cudaEventRecord(events_[(last_ + 1) % kPieces], stream_));
  sent_.push_back({++last_, piece.data()});
  return last_;
}

void GpuStaging::drop(std::span<unsigned char> piece) noexcept {
  std::scoped_lock lock(mutex_);
  free_.push_back(piece.data());  // within the capacity that the constructor has used
}

/// Relaxed: the event orders the copy with what follows, and a number that is seen late costs a query.
bool GpuStaging::has_arrived(std::uint64_t number) {
  std::uint64_t known = arrived_.load(std::memory_order_relaxed);
  if (known >= number) return true;
  const cudaError_t answer = cudaEventQuery(events_[number % kPieces]);
  if (answer == cudaErrorNotReady) return false;
  cuda_check(answer, "cudaEventQuery");
  while (known < number && !arrived_.compare_exchange_weak(known, number, std::memory_order_relaxed)) continue;
  return true;
}

/// Takes back the pieces whose copies have ended. The caller holds the mutex.
void GpuStaging::collect() {
  while (!sent_.empty() && has_arrived(sent_.front().number)) {
    free_.push_back(sent_.front().piece);
    sent_.pop_front();
  }
}

/// If another thread records the event anew meanwhile, the copy has ended, and that thread has noted it.
void GpuStaging::finish(std::uint64_t number) {
  while (!has_arrived(number)) std::this_thread::yield();
}

}  // namespace flywheel::detail
