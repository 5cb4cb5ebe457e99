// A queue with its memory, started at any ticket, so that tests can cross the wrap of its laps.
#pragma once

#include <vector>

#include "runtime/base/queue.hpp"
#include "support/internals.hpp"

namespace flywheel::testing {

template <class P = CpuPlatform>
struct QueueMemory {
  std::int64_t count = 0;
  QueueWords words{};
  std::vector<std::uint64_t> slots;

  explicit QueueMemory(std::uint32_t capacity, std::uint64_t first_ticket = 0) : slots(capacity) {
    reset_queue(count, words, slots.data(), capacity);
    words.head.value = words.tail.value = first_ticket;
    for (std::uint64_t t = first_ticket; t < first_ticket + capacity; ++t)
      slots[t % capacity] = Queue<P>::free_slot(t / capacity);
  }

  Queue<P> queue() { return {&count, &words, slots.data(), static_cast<std::uint32_t>(slots.size())}; }
};

}  // namespace flywheel::testing
