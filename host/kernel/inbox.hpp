// The host's end of the inbox: writes messages for the inbox poller of the resident kernel. runtime/records/inbox.hpp
// describes the ring. The dispatcher owns the writer; admission, ending and the kernel's lifetime use it.
#pragma once

#include "../../runtime/records/device_state.hpp"

namespace flywheel::detail {

/// One writer at a time: the caller holds the dispatcher's mutex.
class InboxWriter {
 public:
  explicit InboxWriter(const DeviceState& dev) : inbox_(Views<CpuPlatform>{dev}.inbox()) {}

  /// True if `entries` more entries are free. A submission asks for more than one entry, for the cancel and park
  /// messages that may follow it.
  bool has_room(std::uint32_t entries) const {
    // Acquire: pairs with the release store in Inbox::release(). The poller has read the entries that write() may
    // overwrite next.
    return next_ - CpuPlatform::system(*inbox_.consumed).load(Order::acquire) + entries <= inbox_.capacity;
  }
  /// True if the inbox poller has read all messages. Acquire: pairs with Inbox::release(), as in has_room().
  bool all_read() const { return CpuPlatform::system(*inbox_.consumed).load(Order::acquire) == next_; }
  /// Writes one message. There must be room: a submission leaves two entries for cancel and park messages.
  /// Inbox::write() names the orders.
  void write(const Message& message) { inbox_.write(next_++, message); }
  /// Writes a cancel or park message.
  void write(InboxOp op, std::uint32_t slot = 0, std::uint32_t generation = 0) {
    Message message{};
    message.run.op = static_cast<std::uint32_t>(op);
    message.run.slot = slot;
    message.run.generation = generation;
    write(message);
  }

 private:
  Inbox<CpuPlatform> inbox_;
  std::uint64_t next_ = 0;
};

}  // namespace flywheel::detail
