// The inbox: a ring of messages from the host to the resident kernel (submit, cancel, park, suspend).
//
// Its 128-byte entries are in host memory, and the GPU reads them across PCIe. There is one writer (the host thread that holds
// the dispatcher's mutex, host/kernel/inbox.hpp) and one reader (the inbox poller). Each 8-byte word has a 32-bit tag beside
// its 32-bit payload, so one coalesced read shows both that the entry is complete and what it contains (README.md).
#pragma once

#include <cstdint>

#include "../base/platform.hpp"
#include "run.hpp"

namespace flywheel::detail {

/// `park`: the kernel ends once all admitted runs have ended. `suspend`: it ends as soon as the workers can leave; the runs
/// go on in the next launch, see runtime/dynamic/README.md.
enum class InboxOp : std::uint32_t { submit = 1, cancel = 2, park = 3, suspend = 4 };

/// One message.
struct alignas(128) InboxEntry {
  std::uint64_t words[kRunWords];  // {tag:32 | payload:32}
};

/// Plain handle of the inbox for both ends. The payload is a RunConstants, of which `cancel` uses slot and generation.
template <class P>
struct Inbox {
  InboxEntry* entries;      // host memory
  std::uint32_t capacity;   // a power of two
  std::uint64_t* consumed;  // host memory: entries that the inbox poller has read and the host may overwrite

  /// The tag of entry `number`. Each use of an entry has another tag, so words need no reset.
  FLYWHEEL_TASK static constexpr std::uint32_t tag(std::uint64_t number) { return static_cast<std::uint32_t>(number + 1); }

  /// Host side: writes entry `number`. The caller holds the dispatcher's mutex and knows that the entry is free.
  FLYWHEEL_TASK void write(std::uint64_t number, const RunConstants& message) const {
    InboxEntry& entry = entries[number & (capacity - 1)];
    const auto* payload = reinterpret_cast<const std::uint32_t*>(&message);
    for (std::uint32_t i = 0; i < kRunWords; ++i)
      // Release: pairs with the acquire loads in read(). It publishes the run's parameters and the loaded graph.
      P::system(entry.words[i]).store((std::uint64_t{tag(number)} << 32) | payload[i], Order::release);
  }

  /// Device side, called by all lanes: true if entry `number` is complete. Then lane i holds words i, i + lanes, ... of
  /// it in `mine`, which has room for kRunWords / lanes of them (at least one).
  FLYWHEEL_TASK bool read(std::uint64_t number, std::uint32_t* mine) const {
    InboxEntry& entry = entries[number & (capacity - 1)];
    bool missing = false;
    for (std::uint32_t i = P::lane(), k = 0; i < kRunWords; i += P::lanes(), ++k) {
      // Acquire: pairs with the release stores in write(). The run's parameters and the loaded graph come with the entry.
      const std::uint64_t word = P::system(entry.words[i]).load(Order::acquire);
      missing |= static_cast<std::uint32_t>(word >> 32) != tag(number);
      mine[k] = static_cast<std::uint32_t>(word);
    }
    return !P::any(missing);
  }

  /// Device side: lets the host overwrite the entries below `number`.
  FLYWHEEL_TASK void release(std::uint64_t number) const {
    // Release: pairs with the acquire load in InboxWriter::has_room(). The loads in read() come before the host's next stores.
    P::system(*consumed).store(number, Order::release);
  }
};

}  // namespace flywheel::detail
