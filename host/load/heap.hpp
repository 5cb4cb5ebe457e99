// The heap of device memory, for the program's buffers and for loaded graphs. It takes large chunks from the engine and
// hands out parts of them, because cudaMalloc and cudaFree may wait for the resident kernel, which does not end.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>

#include "../base/free_list.hpp"
#include "../engine/engine.hpp"

namespace flywheel::detail {

/// Thread-safe.
class Heap {
 public:
  Heap(Engine& engine, std::size_t first_chunk);
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  /// Allocates `bytes`, aligned to 256 bytes. Null if no chunk has room: then the caller parks the kernel and calls
  /// grow().
  void* try_allocate(std::size_t bytes);
  /// Frees what try_allocate() or grow() returned.
  void release(void* memory);
  /// True if a chunk contains this address. Takes no lock: threads that submit tasks ask for each of their buffers.
  bool holds(const void* memory) const;
  /// Allocates another chunk from the engine and `bytes` within it, in one step, so that no other thread can take the
  /// room. The kernel must be parked.
  void* grow(std::size_t bytes);
  /// Keeps the chunks until the process ends, because a kernel that cannot be stopped may still use them. Relaxed:
  /// shutdown() calls it before its thread drops its reference to the core, and the destructor runs after the last
  /// reference is dropped.
  void leak() { leaked_.store(true, std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kUnit = 256;
  /// Stays where it is until the heap is gone, and is reached from the chunk that came after it.
  struct Chunk {
    unsigned char* const base;
    const std::size_t bytes;
    const Chunk* const before;
    FreeList free;  // guarded by the mutex

    bool holds(const unsigned char* byte) const { return byte >= base && byte < base + bytes; }
  };
  static std::size_t units_of(std::size_t bytes) { return (bytes + kUnit - 1) / kUnit; }

  Engine& engine_;
  std::size_t chunk_bytes_;
  std::mutex mutex_;
  std::deque<Chunk> chunks_;
  std::atomic<const Chunk*> last_{nullptr};  // see holds()
  std::atomic<bool> leaked_{false};          // atomic since several threads may call leak() at once
};

}  // namespace flywheel::detail
