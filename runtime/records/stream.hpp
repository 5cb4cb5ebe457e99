// Value streams: values that a run sends to the host while it runs, such as tokens or residuals.
//
// Each run slot has a ring of cells in host memory. Tasks take tickets with a device atomic (block.emit()); each cell's
// tag names the ticket that it holds. The host reads the cells in the order of the tickets (host/submit/completion.cpp).
#pragma once

#include <cstdint>

#include "../base/platform.hpp"
#include "../base/wait.hpp"
#include "run.hpp"

namespace flywheel::detail {

/// One streamed value.
struct StreamCell {
  std::uint64_t tag;  // ticket + 1, written last
  std::uint64_t value;
};

/// Plain handle of one run's stream, for both ends.
template <class P>
struct Stream {
  StreamCell* cells;        // host memory
  std::uint64_t* consumed;  // host memory, written by the host: it has read the tickets below
  std::uint32_t capacity;   // a power of two

  /// Device side, one thread: streams one value. Waits while the ring is full. Returns false if the wait ended early.
  /// Values of one task arrive in its order; values of tasks that run at the same time interleave.
  FLYWHEEL_TASK bool write(RunState& run, std::uint64_t value, const WaitContext& wait) const {
    // Relaxed: pairs with the other tasks' fetch_add, which makes tickets unique, and with the load in complete_run(),
    // which follows the task's arrival. The cell's tag orders the value.
    const std::uint64_t ticket = P::device(run.emitted).fetch_add(1, Order::relaxed);
    if (!has_space(run, ticket, wait)) return false;
    StreamCell& cell = cells[ticket & (capacity - 1)];
    // Relaxed: pairs with the load of `value` in read(). The release of the tag publishes it.
    P::system(cell.value).store(value, Order::relaxed);
    // Release: pairs with the acquire load of `tag` in read(). It publishes the value.
    P::system(cell.tag).store(ticket + 1, Order::release);
    return true;
  }

  /// Host side, one reader at a time: reads value number `ticket` and frees its cell. False if it has not arrived.
  FLYWHEEL_TASK bool read(std::uint64_t ticket, std::uint64_t& value) const {
    StreamCell& cell = cells[ticket & (capacity - 1)];
    // Acquire: pairs with the release store of `tag` in write(). The value comes with it.
    if (P::system(cell.tag).load(Order::acquire) != ticket + 1) return false;
    // Relaxed: pairs with the store of `value` in write(), which the tag has acquired.
    value = P::system(cell.value).load(Order::relaxed);
    // Release: pairs with the acquire load in has_space(). The cell is read before a task overwrites it.
    P::system(*consumed).store(ticket + 1, Order::release);
    return true;
  }

 private:
  /// Waits until the cell of `ticket` is free. False if the wait ended early. `emit_limit` in device memory caches the
  /// limit: a load of `consumed` in host memory takes about a microsecond.
  FLYWHEEL_TASK bool has_space(RunState& run, std::uint64_t ticket, const WaitContext& wait) const {
    // Acquire: pairs with the release store of `emit_limit` below, by the thread that has read `consumed`. The host's
    // reads of the cells come before this task's stores.
    if (ticket < P::device(run.emit_limit).load(Order::acquire)) return true;
    WaitContext limit = wait;
    limit.fatal = false;  // a host that does not read fails this task, but does not abort the runtime
    return spin_until<P>(limit, WaitReason::stream_space, consumed, ticket, [&](std::uint64_t& saw) {
      // Acquire: pairs with the release store in read(). The host has read the cells below.
      saw = P::system(*consumed).load(Order::acquire);
      if (ticket >= saw + capacity) return false;
      // Release: pairs with the acquire load of `emit_limit` above, by other tasks. It passes on the acquire of `consumed`.
      P::device(run.emit_limit).store(saw + capacity, Order::release);
      return true;
    });
  }
};

}  // namespace flywheel::detail
