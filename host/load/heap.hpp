// The program's device memory: allocated up front and handed out by the runtime, because cudaMalloc and cudaFree may
// wait for a resident kernel that never ends.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "../base/free_list.hpp"
#include "../engine/engine.hpp"

namespace flywheel {

class Heap {
 public:
  Heap(Engine& engine, std::size_t first_chunk);
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  /// 256-byte aligned, or null if no chunk has room: then park the kernel and grow().
  void* try_allocate(std::size_t bytes);
  void release(void* memory);
  /// `bytes` of another chunk, which nobody else gets on the way. The kernel must be parked.
  void* grow(std::size_t bytes);
  void leak() { leaked_.store(true, std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kUnit = 256;
  struct Chunk {
    unsigned char* base;
    std::size_t bytes;
    FreeList free;
  };
  static std::size_t units_of(std::size_t bytes) { return (bytes + kUnit - 1) / kUnit; }

  Engine& engine_;
  std::size_t chunk_bytes_;
  std::mutex mutex_;
  std::vector<Chunk> chunks_;
  std::atomic<bool> leaked_{false};  // several threads may say so; whoever looks has seen them let go
};

}  // namespace flywheel
