// RegionSearch: breadth-first search without levels that all workers share. Each worker goes level by level through its own
// region, with frontiers in scratch memory and a barrier of its block alone, and sends what it finds for others. A distance is
// lowered until nobody finds a smaller one, so the result is exact in whatever order messages come. For graphs of many small
// levels whose neighbours mostly have near numbers, as grids and road networks have.
#pragma once

#include "apps/bfs/region_memory.hpp"

namespace bfs {

/// A vertex that passes on, and its row.
struct RegionEntry {
  std::uint32_t vertex, first, last, distance;
};

/// What the threads of one worker share, in scratch memory. Two sides: rounds use them in turns.
struct RegionShared {
  static constexpr std::uint32_t kEntries = 704, kMessages = 256;
  RegionEntry entries[2][kEntries];
  std::uint64_t messages[2][kMessages];
  std::uint32_t entry_count[2], message_count[2];  // they also count what had no room
  std::uint32_t head;                              // of the inbox: messages taken
  std::uint32_t credits;                           // of `pending`, to be given back when all is quiet here
  std::uint32_t lacked_room;                       // 1: an entry had no room, so the region is looked through
  std::uint32_t looks;                             // 1: it is, in this round
  std::uint32_t over;
};

template <class Block>
class RegionWorker {
 public:
  FLYWHEEL_TASK RegionWorker(Block& block, const RegionMemory& memory, RegionShared& shared)
      : block_(block),
        memory_(memory),
        shared_(shared),
        begin_(least(block.worker() * memory.region, memory.graph.vertices)),
        count_(least(memory.region, memory.graph.vertices - begin_)) {}

  /// All threads of all workers, after reset_regions() and a barrier.
  FLYWHEEL_TASK void search() {
    for (std::uint32_t side = 0; !shared_.over; side ^= 1) {
      // While all threads pass on, the last warp sends what the round before has left, and the one before it receives.
      pass_on(side);
      if (shared_.looks) look_through_region(side ^ 1);
      if (block_.warp() == Block::kWarps - 1) send(side);
      if (block_.warp() == (Block::kWarps > 1 ? Block::kWarps - 2 : 0)) receive(side ^ 1);
      block_.sync();  // the next frontier is whole
      if (block_.leader()) settle(side);
      block_.sync();
    }
  }

 private:
  static constexpr int kLanesOfRow = Block::kLanes < 4 ? Block::kLanes : 4;
  static constexpr std::uint32_t kAhead = 48;  // vertices with near numbers follow soon: their rows may come to L2 meanwhile

  FLYWHEEL_TASK static std::uint32_t least(std::uint32_t a, std::uint32_t b) { return a < b ? a : b; }

  FLYWHEEL_TASK void pass_on(std::uint32_t side) {
    const std::uint32_t count = least(shared_.entry_count[side], RegionShared::kEntries);
    const auto rank = static_cast<std::uint32_t>(block_.rank());
    for (std::uint32_t e = rank / kLanesOfRow; e < count; e += static_cast<std::uint32_t>(block_.size()) / kLanesOfRow) {
      const RegionEntry entry = shared_.entries[side][e];
      const std::uint32_t lane = rank % kLanesOfRow;
      // Relaxed: only a hint for look_through_region(). A vertex may be in a frontier twice; then either distance will do.
      if (lane == 0) Shared<std::uint32_t>(memory_.expanded[entry.vertex]).store(entry.distance, Order::relaxed);
      for (std::uint32_t at = entry.first + lane; at < entry.last; at += kLanesOfRow)
        relax(memory_.graph.targets[at], entry.distance + 1, side ^ 1);
    }
    block_.sync_warp();  // lanes with one edge more rejoin
  }

  /// The row of an own vertex is loaded beside the operation on its distance, whether it will be needed or not.
  FLYWHEEL_TASK void relax(std::uint32_t vertex, std::uint32_t distance, std::uint32_t next) {
    const bool is_own = vertex - begin_ < count_;
    const std::uint32_t first = is_own ? memory_.graph.offsets[vertex] : 0,
                        last = is_own ? memory_.graph.offsets[vertex + 1] : 0;
    if (lower(memory_.distance[vertex], distance) <= distance) return;
    if (is_own) add_entry(next, {vertex, first, last, distance});
    else add_message(next, memory_.owner_of(vertex), message_of(vertex, distance));
  }

  // Relaxed, both: each place is given out once; the barrier of the block after the round orders the rest.
  FLYWHEEL_TASK void add_entry(std::uint32_t side, const RegionEntry& entry) {
    const std::uint32_t at = InBlock<std::uint32_t>(shared_.entry_count[side]).fetch_add(1, Order::relaxed);
    if (at < RegionShared::kEntries) shared_.entries[side][at] = entry;
    else InBlock<std::uint32_t>(shared_.lacked_room).store(1, Order::relaxed);
    fetch_ahead(memory_.graph.offsets + least(entry.vertex + kAhead, memory_.graph.vertices));
    fetch_ahead(memory_.graph.targets + least(entry.first + kAhead * (entry.last - entry.first), memory_.graph.places - 1));
  }
  /// Counts as pending before it is sent; one for which there is no room becomes a request at once.
  FLYWHEEL_TASK void add_message(std::uint32_t side, std::uint32_t owner, std::uint64_t message) {
    const std::uint32_t at = InBlock<std::uint32_t>(shared_.message_count[side]).fetch_add(1, Order::relaxed);
    if (at < RegionShared::kMessages) {
      shared_.messages[side][at] = message;
      return;
    }
    memory_.pending().add(1, Order::relaxed);
    memory_.ask_to_rescan(owner);
  }

  /// One warp. Relaxed: send() releases the addition, which sync_warp() has brought before all lanes' messages.
  FLYWHEEL_TASK void send(std::uint32_t side) {
    const std::uint32_t count = least(shared_.message_count[side], RegionShared::kMessages);
    if (count == 0) return;
    if (block_.lane() == 0) memory_.pending().add(count, Order::relaxed);
    block_.sync_warp();
    for (std::uint32_t m = static_cast<std::uint32_t>(block_.lane()); m < count; m += Block::kLanes) {
      const std::uint64_t message = shared_.messages[side][m];
      memory_.send(memory_.owner_of(static_cast<std::uint32_t>(message) - 1), message);
    }
    block_.sync_warp();  // lanes with one message more rejoin
  }

  /// One warp: takes the messages that have come, in the order of their places, as many as it has lanes.
  FLYWHEEL_TASK void receive(std::uint32_t next) {
    const std::uint32_t at = shared_.head + static_cast<std::uint32_t>(block_.lane());
    std::uint64_t message = 0;
    // Relaxed: all of the message is in the word, see RegionMemory::send().
    if (at < memory_.capacity) message = Shared<std::uint64_t>(memory_.place(block_.worker(), at)).load(Order::relaxed);
    const std::uint32_t come = block_.ballot(message != 0);
    const std::uint32_t taken = ~come ? lowest_bit(~come) : 32;
    if (block_.lane() < static_cast<int>(taken)) {
      const std::uint32_t vertex = static_cast<std::uint32_t>(message) - 1;
      const std::uint32_t first = memory_.graph.offsets[vertex], last = memory_.graph.offsets[vertex + 1];
      add_entry(next, {vertex, first, last, static_cast<std::uint32_t>(message >> 32)});
    }
    block_.sync_warp();  // all lanes have read `head`
    if (block_.lane() == 0) shared_.head += taken, shared_.credits += taken;
  }

  /// All threads: whoever has a smaller distance than it has passed on goes into the next frontier.
  FLYWHEEL_TASK void look_through_region(std::uint32_t next) {
    block_.for_each(static_cast<int>(count_), [&](int i) {
      const std::uint32_t vertex = begin_ + static_cast<std::uint32_t>(i);
      // Relaxed: a distance that is lowered later comes with a message or a request of its own.
      const std::uint32_t distance = Shared<std::uint32_t>(memory_.distance[vertex]).load(Order::relaxed);
      if (distance >= memory_.expanded[vertex]) return;
      add_entry(next, {vertex, memory_.graph.offsets[vertex], memory_.graph.offsets[vertex + 1], distance});
    });
  }

  /// One thread, when all others wait: makes the next round ready.
  FLYWHEEL_TASK void settle(std::uint32_t side) {
    shared_.entry_count[side] = shared_.message_count[side] = shared_.looks = 0;
    if (shared_.entry_count[side ^ 1] || shared_.message_count[side ^ 1]) return;
    // Relaxed, both: hints, and loaded together. That nothing is pending stays so, since nobody has anything to send then.
    Shared<std::uint32_t> rescan(memory_.words[block_.worker()].rescan);
    const std::uint32_t asked = rescan.load(Order::relaxed), pending = memory_.pending().load(Order::relaxed);
    // acq_rel: sees the distances of those who ask, see RegionMemory::ask_to_rescan().
    if (asked && rescan.exchange(0, Order::acq_rel)) ++shared_.credits, shared_.lacked_room = 1;
    shared_.looks = shared_.lacked_room;
    shared_.lacked_room = 0;
    if (shared_.looks) return;
    if (shared_.credits) return give_back();
    shared_.over = pending == 0 || block_.cancelled();
    let_others_run();
  }

  /// Nothing is left here that follows from the messages taken. Acquire of the tail, of a value that all their senders have
  /// added to: pairs with RegionMemory::send(), so that this subtraction comes after the additions. Then relaxed is enough.
  FLYWHEEL_TASK void give_back() {
    Shared<std::uint32_t> tail(memory_.words[block_.worker()].tail);
    while (tail.load(Order::acquire) < shared_.head) {}
    memory_.pending().add(0u - shared_.credits, Order::relaxed);
    shared_.credits = 0;
  }

  Block& block_;
  const RegionMemory& memory_;
  RegionShared& shared_;
  const std::uint32_t begin_, count_;  // the own vertices
};

struct RegionSearch {
  RegionMemory memory;
  flywheel::Param<std::uint32_t> root;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const RegionMemory here = memory;  // in registers
    reset_regions(block, here, block.param(root));
    RegionShared* const shared = block.template scratch<RegionShared>(1);
    if (shared && block.leader()) {
      shared->entry_count[0] = shared->entry_count[1] = shared->message_count[0] = shared->message_count[1] = 0;
      shared->head = shared->credits = shared->lacked_room = shared->looks = shared->over = 0;
    }
    if (!block.grid_sync() || !shared) return;
    RegionWorker<Block>(block, here, *shared).search();
  }
};

}  // namespace bfs
