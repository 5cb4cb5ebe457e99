#include "chunk_pool.hpp"

#include <mutex>
#include <new>
#include <vector>

namespace flywheel::detail {

namespace {
constexpr std::align_val_t kAlignment{128};
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
}  // namespace

void* take_chunk() {
  {
    Pool& from = pool();
    std::scoped_lock lock(from.mutex);
    if (!from.chunks.empty()) {
      void* chunk = from.chunks.back();
      from.chunks.pop_back();
      return chunk;
    }
  }
  return ::operator new(kChunkBytes, kAlignment);
}

void give_back_chunk(void* chunk) noexcept {
  {
    Pool& to = pool();
    std::scoped_lock lock(to.mutex);
    if (to.chunks.size() < kMostKept) return to.chunks.push_back(chunk);  // within what was reserved
  }
  ::operator delete(chunk, kAlignment);
}

std::size_t kept_chunks() {
  std::scoped_lock lock(pool().mutex);
  return pool().chunks.size();
}

}  // namespace flywheel::detail
