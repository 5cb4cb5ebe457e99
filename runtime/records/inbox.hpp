// The inbox: the host tells the live kernel what to do.
//
// A ring of 128-byte entries in host memory that the GPU reads across PCIe. One writer (whoever holds the host's inbox
// lock), one reader (the inbox poller). Only aligned loads and stores are atomic across PCIe, and a second read would cost
// another microsecond, so each 8-byte word carries a 32-bit tag beside its 32-bit payload: one coalesced read of the
// entry shows both that it is there and what it says. The tag is the entry's number plus one, so nobody resets words.
#pragma once

#include <cstdint>

#include "../base/platform.hpp"
#include "run.hpp"

namespace flywheel {

enum class InboxOp : std::uint32_t { submit = 1, cancel = 2, park = 3 };

struct alignas(128) InboxEntry {
  std::uint64_t words[kRunWords];  // {tag:32 | payload:32}
};

/// Both ends' plain handle. The payload is a RunConstants; `cancel` uses slot and generation only, `park` nothing.
template <class P>
struct Inbox {
  InboxEntry* entries;      // host memory
  std::uint32_t capacity;   // a power of two
  std::uint64_t* consumed;  // host memory: entries the inbox poller has taken, so that the host knows what is free

  FLYWHEEL_TASK static constexpr std::uint32_t tag(std::uint64_t number) {
    return static_cast<std::uint32_t>(number + 1);
  }

  /// Host side. The caller holds the inbox lock and knows that entry `number` is free.
  FLYWHEEL_TASK void write(std::uint64_t number, const RunConstants& message) const {
    InboxEntry& entry = entries[number & (capacity - 1)];
    const auto* payload = reinterpret_cast<const std::uint32_t*>(&message);
    for (std::uint32_t i = 0; i < kRunWords; ++i)
      // Release: pairs with the acquire loads in read(). The run's parameters and the loaded graph go with it.
      P::system(entry.words[i]).store((std::uint64_t{tag(number)} << 32) | payload[i], Order::release);
  }

  /// Device side, collective: true if entry `number` is there; then lane i holds words i, i + lanes, ... of it in
  /// `mine`, which has room for kRunWords / lanes of them (at least one).
  FLYWHEEL_TASK bool read(std::uint64_t number, std::uint32_t* mine) const {
    InboxEntry& entry = entries[number & (capacity - 1)];
    bool missing = false;
    for (std::uint32_t i = P::lane(), k = 0; i < kRunWords; i += P::lanes(), ++k) {
      const std::uint64_t word = P::system(entry.words[i]).load(Order::acquire);  // pairs with write()
      missing |= static_cast<std::uint32_t>(word >> 32) != tag(number);
      mine[k] = static_cast<std::uint32_t>(word);
    }
    return !P::any(missing);
  }

  /// Device side: entries below `number` may be overwritten.
  FLYWHEEL_TASK void release(std::uint64_t number) const {
    // Release: pairs with the host's acquire load before it reuses an entry; the reads in read() are done.
    P::system(*consumed).store(number, Order::release);
  }
};

}  // namespace flywheel
