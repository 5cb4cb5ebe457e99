// The host's end of the inbox: writes messages for the inbox poller of the resident kernel. runtime/records/inbox.hpp
// describes the ring. The dispatcher owns the writer; admission, ending, the kernel's lifetime and single tasks use it.
#pragma once

#include <atomic>

#include "../../runtime/records/device_state.hpp"

namespace flywheel::detail {

/// Thread-safe: each writer takes a ticket. The ring never overflows. A single task has at most one message in it, and room
/// for those is kept back from has_room(), which all other writers ask first, with the dispatcher's mutex held.
class InboxWriter {
 public:
  explicit InboxWriter(const DeviceState& dev)
      : inbox_(Views<CpuPlatform>{dev}.inbox()),
        room_(dev.inbox_capacity - dev.single_slots) {}

  /// True if `entries` more entries are free. A submission asks for more than one entry, for the cancel and park
  /// messages that may follow it.
  bool has_room(std::uint32_t entries) const {
    // Acquire: pairs with the release store in Inbox::release(). The poller has read the entries that write() may
    // overwrite next.
    return next() - CpuPlatform::system(*inbox_.consumed).load(Order::acquire) + entries <= room_;
  }
  /// True if so many messages have not been read that a submission of normal or low priority waits: the ring is first in, first
  /// out, and one of high priority should not find a long one. The poller takes 128 messages at once, and is 64 ahead of what
  /// it has told. Acquire: as in has_room().
  bool is_crowded() const {
    constexpr std::uint64_t kMostUnread = 192;
    return next() - CpuPlatform::system(*inbox_.consumed).load(Order::acquire) >= kMostUnread;
  }
  /// True if the inbox poller has read all messages. Acquire: pairs with Inbox::release(), as in has_room().
  bool all_read() const { return CpuPlatform::system(*inbox_.consumed).load(Order::acquire) == next(); }
  /// Writes one message. There must be room: a submission leaves two entries for cancel and park messages.
  /// Inbox::write() names the orders. Relaxed: the tickets only have to differ.
  void write(const Message& message) { inbox_.write(next_.fetch_add(1, std::memory_order_relaxed), message); }
  /// Writes a cancel or park message.
  void write(InboxOp op, std::uint32_t slot = 0, std::uint32_t generation = 0) {
    Message message{};
    message.run.op = static_cast<std::uint32_t>(op);
    message.run.slot = slot;
    message.run.generation = generation;
    write(message);
  }

 private:
  /// Relaxed: pairs with the add in write(); only the count matters, and single tasks may raise it at any time.
  std::uint64_t next() const { return next_.load(std::memory_order_relaxed); }

  Inbox<CpuPlatform> inbox_;
  const std::uint64_t room_;
  alignas(64) std::atomic<std::uint64_t> next_{0};  // all writers add to it, so no word that they only read is beside it
};

}  // namespace flywheel::detail
