// Chunks of host memory that are used again: a program that builds graphs all the time does not wait for the operating
// system to hand out and clear pages. The lists of a graph's records take them.
#pragma once

#include <cstddef>

namespace flywheel::detail {

inline constexpr std::size_t kChunkBytes = std::size_t{64} << 10;

/// A chunk of kChunkBytes, aligned to 128 bytes, with any content. Thread-safe. Throws std::bad_alloc.
void* take_chunk();
/// Gives a chunk back. The process keeps some of them for take_chunk(). Thread-safe.
void give_back_chunk(void* chunk) noexcept;
/// The number of chunks that are kept now.
std::size_t kept_chunks();

}  // namespace flywheel::detail
