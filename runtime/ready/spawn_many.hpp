// Collective spawning: all threads of a block spawn many tasks with one reservation of records and one of queue slots.
// The spawn_n() of blocks calls it.
//
//   leader       tokens and tickets of the pool, expectations | idle workers | tickets of the ready queue | tokens there
//   each thread  its record: taken, filled                    |              | its item, and its place in the pool
//
// Between the columns the threads meet. What the tasks wait for is raised before any of them is published, as in spawn_task().
#pragma once

#include "spawn.hpp"

namespace flywheel::detail {

/// What spawned tasks take from the task that spawns them.
struct Spawner {
  const DeviceState& dev;
  const TaskHeader& header;
  std::uint32_t worker, control;  // control: see continuation_of()
  std::uint16_t run;              // slot
  Priority priority;
  std::uint16_t type;  // of what is spawned
};

/// All threads of `block` call each method; P is the platform of one of them.
template <class P, class Block>
class GroupSpawner {
 public:
  FLYWHEEL_TASK GroupSpawner(Block& block, const Spawner& from)
      : block_(block),
        from_(from),
        continuation_(continuation_of(from.header, from.control)),
        views_{from.dev} {}

  /// Spawns make(0), make(1), ... make(n - 1), each made by one thread. Every thread learns how many there was room for: the
  /// first so many. Fewer also if a wait was given up because the runtime was aborted.
  template <class Make>
  FLYWHEEL_TASK std::uint32_t operator()(std::uint32_t n, Make&& make) {
    if constexpr (P::kNearMemory) return one_by_one(n, make);
    std::uint32_t done = 0;
    while (done < n) {
      const Tickets records = reserve(n - done);
      if (!records.count) break;
      const bool mine = rank() < records.count;
      const std::uint32_t index = mine ? fill(records.first + rank(), done + rank(), make) : kNoRecord;
      if (!block_.all(!mine || index != kNoRecord)) break;
      publish(records, index);
      done += records.count;
    }
    return done;
  }

 private:
  /// A CPU worker's one thread. make() may throw there: so it is called before anything is reserved, and once in vain if other
  /// workers have taken the last record meanwhile.
  template <class Make>
  FLYWHEEL_TASK std::uint32_t one_by_one(std::uint32_t n, Make& make) {
    std::uint32_t done = 0;
    while (done < n && views_.spawn_pool().size_hint()) {
      const auto task = make(done);
      const Tickets records = reserve(1);
      if (!records.count) break;
      const std::uint32_t index = fill(records.first, done, [&](std::uint32_t) { return task; });
      if (index == kNoRecord) break;
      publish(records, index);
      ++done;
    }
    return done;
  }

  /// Of a queue, from `first` on. Exchanged between threads.
  struct Tickets {
    std::uint64_t first;
    std::uint32_t count, reserved;
  };

  FLYWHEEL_TASK std::uint32_t rank() const { return static_cast<std::uint32_t>(block_.rank()); }
  FLYWHEEL_TASK WaitContext wait() const { return views_.wait(from_.worker); }

  /// A record for each thread at most.
  FLYWHEEL_TASK Tickets reserve(std::uint32_t wanted) {
    Tickets taken{0, 0, 0};
    const auto threads = static_cast<std::uint32_t>(block_.size());
    // size_hint() is relaxed, as in take_record().
    if (block_.leader() && views_.spawn_pool().size_hint()) {
      taken.count = views_.spawn_pool().take(wanted < threads ? wanted : threads, taken.first);
      if (taken.count) expect_spawned<P>(from_.dev, from_.dev.runs[from_.run], from_.header, continuation_, taken.count);
    }
    return block_.broadcast(taken, 0);
  }

  /// The record of one ticket of the pool, filled with the i-th task; kNoRecord if a wait was given up.
  template <class Make>
  FLYWHEEL_TASK std::uint32_t fill(std::uint64_t ticket, std::uint32_t i, Make&& make) {
    std::uint64_t index = 0;
    if (!views_.spawn_pool().await_item(ticket, index, wait())) return kNoRecord;
    P::acquire_fence();  // acquires the record: pairs with push() in recycle_spawned(), after the record's last read
    const auto task = make(i);
    fill_record(from_.dev.records[from_.dev.spawn_base + index], from_.header, continuation_, from_.type, &task, sizeof(task),
                from_.priority);
    return from_.dev.spawn_base + static_cast<std::uint32_t>(index);
  }

  /// All records are filled. The first of them go to idle workers, as many as there are, the others to the queue.
  FLYWHEEL_TASK void publish(const Tickets& records, std::uint32_t index) {
    const std::uint32_t level =
        level_of(static_cast<std::uint32_t>(from_.priority), from_.dev.runs[from_.run].line.constants.priority);
    Tickets queued{0, 0, 0};
    if (block_.leader()) {
      // Releases what all threads wrote before they met: see Ready::deliver_to_idle(). The places in the pool are not free yet,
      // so they still tell the others' records.
      const auto item_of = [&](std::uint32_t i) {
        return item(from_.dev.spawn_base + static_cast<std::uint32_t>(views_.spawn_pool().item_of(records.first + i)));
      };
      queued.count = records.count - Ready<P>(from_.dev, from_.worker).deliver_to_idle(records.count, item_of);
      if (queued.count) queued.first = views_.ready(level).take_tickets(queued.count);
    }
    queued = block_.broadcast(queued, 0);
    const std::uint32_t delivered = records.count - queued.count;
    if (rank() >= delivered && rank() < records.count) {
      // Release: pairs with the acquire of whoever pops the item. It covers this thread's record, and what the block wrote
      // before the call. An abort that ends the wait in put() ends all else, too.
      P::release_fence();
      views_.ready(level).put(queued.first + rank() - delivered, item(index), wait());
    }
    if (rank() < records.count) views_.spawn_pool().free_again(records.first + rank());
    block_.sync();  // a token promises that its item is there soon
    if (block_.leader() && queued.count) views_.ready(level).add_tokens(queued.count);
  }
  FLYWHEEL_TASK std::uint64_t item(std::uint32_t index) const { return Item{index, from_.run, false}.pack(); }

  Block& block_;
  const Spawner& from_;
  const std::uint32_t continuation_;
  const Views<P> views_;
};

}  // namespace flywheel::detail
