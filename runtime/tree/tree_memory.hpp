// The memory of a tree: chunks of nodes, the queues of those that are full and of those that are free, and the words by which
// the warps know whether any of them has work. All of it is in global memory.
//
//   ring      a warp's own nodes, in scratch memory: it takes the newest, so that a tree goes down before it goes wide
//   list      a warp's own chunks, where the oldest nodes of a ring go that is half full
//   ready     chunks that any warp may take; a warp that sees others look for work gives its own away
//
// A tree is over when `pending` is 0: it counts the warps that have work and the chunks in the queue. Who gives a chunk away
// counts it before it pushes it, and who takes it counts for it from then on; so the count does not reach 0 in between.
#pragma once

#include "../records/device_state.hpp"
#include "node_type.hpp"

namespace flywheel::detail {

inline constexpr std::uint32_t kNoChunk = ~0u;
inline constexpr std::uint32_t kMostTreeThreads = 256;  // of a worker

struct TreeWords {
  Padded<std::uint64_t> pending;
  Padded<std::uint32_t> looking;  // warps that look for a chunk, and kTreeStops
  Padded<std::int64_t> ready_count, free_count;
  QueueWords ready, free;
};
inline constexpr std::uint32_t kTreeStops = 1u << 31;  // the run was cancelled, or a node has failed

/// A node, and the indices for which it is still to run: first, ..., first + count - 1.
template <class Node>
struct TreeEntry {
  Node node;
  std::uint32_t first, count;
};

/// How many nodes fit the ring of a warp, and a chunk.
template <class Node>
struct TreeShape {
  static constexpr std::uint32_t kRingBytes = 4096;  // with a word in front: an eighth of the usual Options::scratch_bytes
  static constexpr std::uint32_t kEntryWords = sizeof(TreeEntry<Node>) / 4;
  static constexpr std::uint32_t kRing = (kRingBytes - 16) / sizeof(TreeEntry<Node>);
  static constexpr std::uint32_t kChunk = kRing / 4;
  static constexpr std::uint32_t kHeaderWords = 2;  // entries, and the chunk below in a warp's list
  static constexpr std::uint32_t kChunkWords = kHeaderWords + kChunk * kEntryWords;
};

/// Plain handle, an argument of the tree's task.
struct TreeMemory {
  TreeWords* words;
  std::uint64_t* slots;   // 2 x chunks: of the queue of ready chunks, and of free ones
  std::uint32_t* chunks;  // TreeShape::kChunkWords each
  unsigned char* sums;    // a Sum of each thread
  std::uint32_t count;    // chunks, a power of two

  template <class P>
  FLYWHEEL_TASK Queue<P> ready() const {
    return {&words->ready_count.value, &words->ready, slots, count};
  }
  template <class P>
  FLYWHEEL_TASK Queue<P> free() const {
    return {&words->free_count.value, &words->free, slots + count, count};
  }

  /// Thread i of n: its share of what a new tree needs. Plain: a boundary follows.
  FLYWHEEL_TASK void reset(std::uint32_t i, std::uint32_t n) const {
    using Slots = Queue<CpuPlatform>;
    if (i == 0) {
      words->pending.value = 1;
      words->looking.value = 0;
      words->ready_count.value = 0;
      words->free_count.value = count;
      words->ready.head.value = words->ready.tail.value = words->free.head.value = 0;
      words->ready.peak.value = words->free.peak.value = 0;
      words->free.tail.value = count;
    }
    for (std::uint32_t s = i; s < count; s += n) {
      slots[s] = Slots::free_slot(0);
      slots[count + s] = Slots::full_slot(0, s);
    }
  }
};

}  // namespace flywheel::detail
