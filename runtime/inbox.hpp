// The inbox: the host tells the live kernel what to do.
//
// A ring of 64-byte entries in host memory that the GPU reads across PCIe. One writer (whoever holds the host's inbox
// lock), one reader (the door). Only aligned loads and stores are atomic across PCIe, and a second read would cost
// another microsecond, so each 8-byte word carries a 32-bit tag beside its 32-bit payload: one coalesced read of the
// entry shows both that it is there and what it says. The tag is the entry's number plus one, so nobody resets words.
#pragma once

#include <cstdint>

#include "runtime/platform.hpp"

namespace flywheel {

inline constexpr std::uint32_t kInboxWords = 8;

enum class InboxOp : std::uint32_t { submit = 1, cancel = 2, park = 3 };

struct alignas(64) InboxEntry {
  std::uint64_t words[kInboxWords];  // {tag:32 | payload:32}
};

/// The payload in clear. For `cancel`: run and generation only. `park`: nothing else.
struct InboxMessage {
  InboxOp op;
  std::uint32_t run;
  std::uint32_t exec;
  std::uint32_t generation;
  std::uint32_t repeat;
  std::uint32_t bank;
  std::uint32_t param_bytes;
  std::uint32_t priority;

  FLYWHEEL_TASK constexpr std::uint32_t word(std::uint32_t i) const {
    const std::uint32_t all[kInboxWords] = {static_cast<std::uint32_t>(op), run, exec, generation, repeat, bank,
                                            param_bytes, priority};
    return all[i];
  }
};

/// Both ends' plain handle.
template <class P>
struct Inbox {
  InboxEntry* entries;     // host memory
  std::uint32_t capacity;  // a power of two
  std::uint64_t* consumed; // host memory: entries the door has taken, so that the host knows what is free

  FLYWHEEL_TASK static constexpr std::uint32_t tag(std::uint64_t number) {
    return static_cast<std::uint32_t>(number + 1);
  }

  /// Host side. The caller holds the inbox lock and knows that entry `number` is free.
  FLYWHEEL_TASK void write(std::uint64_t number, const InboxMessage& message) const {
    InboxEntry& entry = entries[number & (capacity - 1)];
    for (std::uint32_t i = 0; i < kInboxWords; ++i)
      // Release: pairs with the acquire loads in read(). The run's parameters and the loaded graph go with it.
      P::system(entry.words[i]).store((std::uint64_t{tag(number)} << 32) | message.word(i), Order::release);
  }

  /// Device side, collective over at least one lane: true if entry `number` is there.
  FLYWHEEL_TASK bool read(std::uint64_t number, InboxMessage& message) const {
    InboxEntry& entry = entries[number & (capacity - 1)];
    std::uint32_t payload[kInboxWords] = {};
    for (std::uint32_t base = 0; base < kInboxWords; base += P::lanes()) {
      const std::uint32_t i = base + P::lane();
      std::uint64_t word = 0;
      if (i < kInboxWords) word = P::system(entry.words[i]).load(Order::acquire);  // pairs with write()
      if (P::ballot(i < kInboxWords && static_cast<std::uint32_t>(word >> 32) != tag(number))) return false;
      for (std::uint32_t k = 0; k < P::lanes() && base + k < kInboxWords; ++k)
        payload[base + k] = P::broadcast(static_cast<std::uint32_t>(word), k);
    }
    message = {static_cast<InboxOp>(payload[0]), payload[1], payload[2], payload[3],
               payload[4], payload[5], payload[6], payload[7]};
    return true;
  }

  /// Device side: entries below `number` may be overwritten.
  FLYWHEEL_TASK void release(std::uint64_t number) const {
    // Release: pairs with the host's acquire load before it reuses an entry; the reads in read() are done.
    P::system(*consumed).store(number, Order::release);
  }
};

}  // namespace flywheel
