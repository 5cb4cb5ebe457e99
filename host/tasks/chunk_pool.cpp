#include "chunk_pool.hpp"

#include <mutex>
#include <new>
#include <vector>

namespace flywheel::detail {

namespace {
constexpr std::align_val_t kChunkAlignment{128};
constexpr std::size_t kMostKept = (std::size_t{64} << 20) / kChunkBytes;

struct Pool {
  std::mutex mutex;
  std::vector<void*> chunks;
};

/// Never destroyed: graphs with static storage duration give chunks back at the end of the process.
Pool& pool() {
  static Pool& only = *[] {
    auto* made = new Pool;
    made->chunks.reserve(kMostKept);
    return made;
  }();
  return only;
}

/// Tries for a moment to lock the pool. A thread of the parent may have held the mutex at a fork(): in the child it is
/// locked for ever, and chunks come from the heap.
std::unique_lock<std::mutex> lock_if_free(Pool& pool) {
  constexpr int kTries = 100;
  std::unique_lock lock(pool.mutex, std::try_to_lock);
  for (int i = 1; !lock.owns_lock() && i < kTries; ++i) lock.try_lock();
  return lock;
}
}  // namespace

void* take_chunk() {
  {
    Pool& from = pool();
    const auto lock = lock_if_free(from);
    if (lock && !from.chunks.empty()) {
      void* chunk = from.chunks.back();
      from.chunks.pop_back();
      return chunk;
    }
  }
  return ::operator new(kChunkBytes, kChunkAlignment);
}

void give_back_chunk(void* chunk) noexcept {
  {
    Pool& to = pool();
    const auto lock = lock_if_free(to);
    if (lock && to.chunks.size() < kMostKept) return to.chunks.push_back(chunk);  // within what was reserved
  }
  ::operator delete(chunk, kChunkAlignment);
}

std::size_t kept_chunks() {
  std::scoped_lock lock(pool().mutex);
  return pool().chunks.size();
}

}  // namespace flywheel::detail
