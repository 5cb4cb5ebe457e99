// Words that all workers share, what a waiting worker does, and loops over all threads of all workers. For the searches of this
// folder, on a GPU and on CPU workers.
#pragma once

#include <flywheel/flywheel.hpp>

#include <cstdint>

#ifndef __CUDA_ARCH__
#include <thread>
#endif

namespace bfs {

using flywheel::Order;

template <class T>
using Shared = flywheel::AtomicRef<T, flywheel::Scope::device>;
template <class T>
using InBlock = flywheel::AtomicRef<T, flywheel::Scope::block>;

inline constexpr std::uint32_t kNone = 0xffffffffu;  // no vertex, and the distance of what is not reached

/// The word becomes `value` if it was greater. Returns what it was. Relaxed: only the value counts; what follows from it goes
/// to other threads behind a barrier, or in a message that holds the value itself.
FLYWHEEL_TASK inline std::uint32_t lower(std::uint32_t& word, std::uint32_t value) {
#ifdef __CUDA_ARCH__
  return atomicMin(&word, value);
#else
  const Shared<std::uint32_t> shared(word);
  for (;;) {
    const std::uint32_t held = shared.load(Order::relaxed);
    if (held <= value || shared.compare_exchange(held, value, Order::relaxed)) return held;
  }
#endif
}

/// The number of the lowest bit that is set. There is one.
FLYWHEEL_TASK inline std::uint32_t lowest_bit(std::uint32_t bits) {
#ifdef __CUDA_ARCH__
  return static_cast<std::uint32_t>(__ffs(static_cast<int>(bits))) - 1;
#else
  return static_cast<std::uint32_t>(__builtin_ctz(bits));
#endif
}

/// Asks for the line of memory to come to L2. Only a hint.
FLYWHEEL_TASK inline void fetch_ahead([[maybe_unused]] const void* at) {
#ifdef __CUDA_ARCH__
  asm volatile("prefetch.global.L2 [%0];" ::"l"(at) : "memory");
#endif
}

/// A CPU worker that waits for another lets it have the core.
FLYWHEEL_TASK inline void let_others_run() {
#ifndef __CUDA_ARCH__
  std::this_thread::yield();
#endif
}

/// Which warp this is, of all workers' warps. Warps that follow each other are of different workers.
template <class Block>
FLYWHEEL_TASK std::uint32_t warp_of_all(const Block& block) {
  return static_cast<std::uint32_t>(block.warp()) * block.workers() + block.worker();
}
template <class Block>
FLYWHEEL_TASK std::uint32_t all_warps(const Block& block) {
  return static_cast<std::uint32_t>(Block::kWarps) * block.workers();
}

/// Calls f(i) for i = 0..n-1, shared out over the threads of all workers, which all call it.
template <class Block, class F>
FLYWHEEL_TASK void for_all(Block& block, std::uint64_t n, F&& f) {
  const std::uint64_t size = static_cast<std::uint64_t>(block.size());
  const std::uint64_t step = size * block.workers();
  for (std::uint64_t i = size * block.worker() + static_cast<std::uint64_t>(block.rank()); i < n; i += step) f(i);
  block.sync_warp();  // the lanes of a warp that had one item more rejoin
}

/// The sum of the lanes' values before this lane's own.
template <class Block, class T>
FLYWHEEL_TASK T sum_before(Block& block, T value) {
  T sum = value;
  for (int distance = 1; distance < Block::kLanes; distance *= 2) {
    const T other = block.shuffle(sum, block.lane() - distance + Block::kLanes);
    if (block.lane() >= distance) sum += other;
  }
  return sum - value;
}
/// The value of the last lane, in all lanes.
template <class Block, class T>
FLYWHEEL_TASK T of_last_lane(Block& block, T value) {
  return block.shuffle(value, Block::kLanes - 1);
}

}  // namespace bfs
