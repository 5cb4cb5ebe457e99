// What the workers of a search by regions share. Each worker owns a region, a range of vertices. Whoever lowers the distance of
// another worker's vertex leaves a message in that worker's inbox.
#pragma once

#include "apps/bfs/graph.hpp"
#include "apps/bfs/words.hpp"

namespace bfs {

/// A vertex and the distance that it was given. Never 0.
FLYWHEEL_TASK constexpr std::uint64_t message_of(std::uint32_t vertex, std::uint32_t distance) {
  return std::uint64_t{distance} << 32 | (vertex + 1);
}

/// Of each worker, on a line of its own.
struct alignas(128) RegionWords {
  std::uint32_t tail;     // places of the inbox that senders have taken; more than there are: they have set `rescan`
  std::uint32_t rescan;   // 1: messages had no room; the owner looks through its whole region
  std::uint32_t pending;  // worker 0's alone: messages that are on their way, or whose consequences are
};

struct RegionMemory {
  GraphView graph;
  std::uint32_t* distance;
  std::uint32_t* expanded;  // of each vertex the distance with which it has passed on; by its owner alone
  std::uint64_t* inboxes;   // `capacity` messages for each worker; 0: none yet. A place is used once a search
  RegionWords* words;
  std::uint32_t capacity;
  std::uint32_t region;  // vertices of a region; the last may have fewer

  FLYWHEEL_TASK std::uint32_t owner_of(std::uint32_t vertex) const { return vertex / region; }
  FLYWHEEL_TASK std::uint64_t& place(std::uint32_t owner, std::uint32_t at) const {
    return inboxes[std::uint64_t{owner} * capacity + at];
  }
  FLYWHEEL_TASK Shared<std::uint32_t> pending() const { return Shared<std::uint32_t>(words[0].pending); }

  /// One thread, for a message that counts as pending already.
  ///
  /// Release of the tail: pairs with the acquire in RegionSearch::settle(), so that the owner's subtraction from `pending`
  /// comes after the sender's addition. Relaxed store: the message is the one word, and the receiver needs nothing else.
  FLYWHEEL_TASK void send(std::uint32_t owner, std::uint64_t message) const {
    const std::uint32_t at = Shared<std::uint32_t>(words[owner].tail).fetch_add(1, Order::release);
    if (at < capacity) Shared<std::uint64_t>(place(owner, at)).store(message, Order::relaxed);
    else ask_to_rescan(owner);
  }
  /// The same for a message that there is no room for. A request that has not been seen yet is enough for both.
  ///
  /// acq_rel: pairs with the owner's exchange, which is to see the distance that the caller has lowered.
  FLYWHEEL_TASK void ask_to_rescan(std::uint32_t owner) const {
    const bool asked = Shared<std::uint32_t>(words[owner].rescan).exchange(1, Order::acq_rel) != 0;
    if (asked) pending().add(~0u, Order::relaxed);  // relaxed: the request that was there still counts as pending
  }
};

/// Nothing is reached; the root's owner has a message.
template <class Block>
FLYWHEEL_TASK void reset_regions(Block& block, const RegionMemory& memory, std::uint32_t root) {
  for_all(block, memory.graph.vertices, [&](std::uint64_t v) {
    memory.distance[v] = v == root ? 0 : kNone;
    memory.expanded[v] = kNone;
  });
  const std::uint64_t first = std::uint64_t{memory.owner_of(root)} * memory.capacity;
  for_all(block, std::uint64_t{memory.capacity} * block.workers(),
          [&](std::uint64_t i) { memory.inboxes[i] = i == first ? message_of(root, 0) : 0; });
  for_all(block, block.workers(), [&](std::uint64_t w) {
    memory.words[w].tail = w == memory.owner_of(root) ? 1 : 0;
    memory.words[w].rescan = 0;
    memory.words[w].pending = w == 0 ? 1 : 0;
  });
}

}  // namespace bfs
