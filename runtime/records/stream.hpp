// Values a run streams to the host while it goes on: tokens, residuals.
//
// A ring in host memory for each run slot. Tickets are device atomics; each cell's tag says which ticket it holds.
#pragma once

#include <cstdint>

#include "../base/platform.hpp"
#include "../base/wait.hpp"
#include "run.hpp"

namespace flywheel {

struct StreamCell {
  std::uint64_t tag;  // ticket + 1, written last
  std::uint64_t value;
};

/// One run's stream, both ends.
template <class P>
struct Stream {
  StreamCell* cells;       // host memory
  std::uint64_t* consumed; // host memory, written by the host: tickets below are read
  std::uint32_t capacity;  // a power of two

  /// Device side, one thread. Tickets order the values of one task; values of tasks that run at once interleave.
  FLYWHEEL_TASK bool write(RunState& run, std::uint64_t value, const WaitContext& wait) const {
    const std::uint64_t ticket = P::device(run.emitted).fetch_add(1, Order::relaxed);  // only to be nobody else's
    if (!has_space(run, ticket, wait)) return false;
    StreamCell& cell = cells[ticket & (capacity - 1)];
    P::system(cell.value).store(value, Order::relaxed);
    P::system(cell.tag).store(ticket + 1, Order::release);  // pairs with the acquire in read(): the value goes with it
    return true;
  }

  /// Host side, one reader at a time: value number `ticket`, if it is there.
  FLYWHEEL_TASK bool read(std::uint64_t ticket, std::uint64_t& value) const {
    StreamCell& cell = cells[ticket & (capacity - 1)];
    if (P::system(cell.tag).load(Order::acquire) != ticket + 1) return false;  // pairs with write()
    value = P::system(cell.value).load(Order::relaxed);
    P::system(*consumed).store(ticket + 1, Order::release);  // pairs with has_space(): the cell has been read
    return true;
  }

 private:
  /// The limit is cached in device memory: the word in host memory is a microsecond away.
  FLYWHEEL_TASK bool has_space(RunState& run, std::uint64_t ticket, const WaitContext& wait) const {
    // Acquire: pairs with the release store below by whichever thread saw the host's cursor.
    if (ticket < P::device(run.emit_limit).load(Order::acquire)) return true;
    WaitContext limit = wait;
    limit.fatal = false;  // a program that does not read costs this task, not the others
    return spin_until<P>(limit, WaitReason::stream_space, consumed, ticket, [&](std::uint64_t& saw) {
      saw = P::system(*consumed).load(Order::acquire);  // pairs with read()
      if (ticket >= saw + capacity) return false;
      P::device(run.emit_limit).store(saw + capacity, Order::release);  // pairs with the acquire above: the cells are read
      return true;
    });
  }
};

}  // namespace flywheel
