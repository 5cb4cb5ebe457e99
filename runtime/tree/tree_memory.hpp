// The memory of a tree: chunks of nodes, the queues of those that are full and of those that are free, and the words by which
// the warps know whether any of them has work. All of it is in global memory.
//
//   ring      a warp's own nodes, in scratch memory: it takes the newest, so that a tree goes down before it goes wide
//   list      a warp's own chunks, where the oldest nodes of a ring go that is half full
//   mail      in scratch memory, for the warps of one worker: nodes of one that has many for one that has none
//   ready     chunks that any worker may take; a warp that sees a worker without work gives its own away
//
// A worker looks for a chunk when none of its warps has work, or one has waited for mail in vain. `active` counts those that
// have, and full mail; `pending` the workers that are active, and the chunks in the queue. When it is 0 the tree is over. Who
// gives nodes away counts them before it does, and who takes them counts for them from then on; so neither count reaches 0 in
// between.
#pragma once

#include "../base/queue.hpp"
#include "node_type.hpp"

namespace flywheel::detail {

inline constexpr std::uint32_t kNoChunk = ~0u;

struct TreeWords {
  Padded<std::uint64_t> pending;
  Padded<std::uint32_t> looking;  // workers that look for a chunk, and kTreeStops
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
  // An eighth of the usual Options::scratch_bytes: the ring, with a word in front, and a part of the mail.
  static constexpr std::uint32_t kWarpBytes = 4096, kMailBytes = 256, kRingBytes = kWarpBytes - kMailBytes;
  static constexpr std::uint32_t kEntryWords = sizeof(TreeEntry<Node>) / 4;
  static constexpr std::uint32_t kRing = (kRingBytes - 16) / sizeof(TreeEntry<Node>);
  static constexpr std::uint32_t kChunk = kRing / 4;
  static constexpr std::uint32_t kHeaderWords = 2;  // entries, and the chunk below in a warp's list
  static constexpr std::uint32_t kChunkWords = kHeaderWords + kChunk * kEntryWords;
};

/// What the warps of a worker share, in scratch memory. All words are atomic, but for `count`.
template <class Node, std::uint32_t kWarps>
struct TreeMail {
  static constexpr std::uint32_t kBytes = kWarps * TreeShape<Node>::kMailBytes;
  static constexpr std::uint32_t kEntries = (kBytes - 32) / sizeof(TreeEntry<Node>);
  enum State : std::uint32_t { kEmpty, kHeld, kFull };

  std::uint32_t active;   // warps with work, and 1 while the mail is full
  std::uint32_t looking;  // warps without
  std::uint32_t state;    // kHeld: one warp fills or empties it
  std::uint32_t seeks;    // 1 while one of them looks for a chunk for all
  std::uint32_t over;     // 1: the tree is
  std::uint32_t count;    // entries, while full
  alignas(16) TreeEntry<Node> entries[kEntries];

  FLYWHEEL_TASK void reset(bool has_root) {
    active = has_root;
    looking = state = seeks = over = count = 0;
  }
};

/// Plain handle, an argument of the tree's task.
struct TreeMemory {
  TreeWords* words;
  std::uint64_t* slots;   // 2 x chunks: of the queue of ready chunks, and of free ones
  std::uint32_t* chunks;  // TreeShape::kChunkWords each
  unsigned char* sums;    // a Sum of each worker
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
