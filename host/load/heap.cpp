#include "heap.hpp"

#include <algorithm>

namespace flywheel::detail {

Heap::Heap(Engine& engine, std::size_t first_chunk) : engine_(engine), chunk_bytes_(std::max(first_chunk, kUnit)) {
  release(grow(chunk_bytes_));
}

Heap::~Heap() {
  if (leaked_) return;  // seq_cst by default; relaxed would do, see leak()
  for (const Chunk& chunk : chunks_) engine_.free_device(chunk.base);
}

void* Heap::try_allocate(std::size_t bytes) {
  std::scoped_lock lock(mutex_);
  for (Chunk& chunk : chunks_)
    if (const auto at = chunk.free.allocate(units_of(bytes))) return chunk.base + *at * kUnit;
  return nullptr;
}

void Heap::release(void* memory) {
  std::scoped_lock lock(mutex_);
  auto* byte = static_cast<unsigned char*>(memory);
  for (Chunk& chunk : chunks_)
    if (chunk.holds(byte)) return chunk.free.release(static_cast<std::uint64_t>(byte - chunk.base) / kUnit);
}

bool Heap::holds(const void* memory) const {
  const auto* byte = static_cast<const unsigned char*>(memory);
  // Acquire: pairs with the release in grow(). What is read of the chunks was written before, and does not change.
  for (const Chunk* chunk = last_.load(std::memory_order_acquire); chunk; chunk = chunk->before)
    if (chunk->holds(byte)) return true;
  return false;
}

void* Heap::grow(std::size_t bytes) {
  const std::size_t units = units_of(std::max(bytes, chunk_bytes_));
  auto* base = static_cast<unsigned char*>(engine_.allocate_device(units * kUnit));
  std::scoped_lock lock(mutex_);
  // Relaxed: it is only stored under the mutex, which is held.
  chunks_.push_back({base, units * kUnit, last_.load(std::memory_order_relaxed), FreeList(units)});
  // Release: pairs with the acquire in holds(). The chunk is written before it.
  last_.store(&chunks_.back(), std::memory_order_release);
  return base + *chunks_.back().free.allocate(units_of(bytes)) * kUnit;
}

}  // namespace flywheel::detail
