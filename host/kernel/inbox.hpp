// The host's end of the inbox: writes messages for the inbox poller of the live kernel. See runtime/records/inbox.hpp.
#pragma once

#include "../../runtime/records/device_state.hpp"

namespace flywheel {

/// One writer at a time: the caller holds the dispatcher's mutex.
class InboxWriter {
 public:
  explicit InboxWriter(const DeviceState& dev) : inbox_(Views<CpuPlatform>{dev}.inbox()) {}

  /// Room for `entries` more. A submission leaves some for the cancel and park messages that may follow.
  bool has_room(std::uint32_t entries) const {
    // Acquire: pairs with the inbox poller's release in Inbox::release(); it has read what we are about to overwrite.
    return next_ - CpuPlatform::system(*inbox_.consumed).load(Order::acquire) + entries <= inbox_.capacity;
  }
  bool all_read() const { return CpuPlatform::system(*inbox_.consumed).load(Order::acquire) == next_; }
  void write(const RunConstants& message) { inbox_.write(next_++, message); }
  /// Other messages than a submission.
  void write(InboxOp op, std::uint32_t slot = 0, std::uint32_t generation = 0) {
    RunConstants words{};
    words.op = static_cast<std::uint32_t>(op);
    words.slot = slot;
    words.generation = generation;
    write(words);
  }

 private:
  Inbox<CpuPlatform> inbox_;
  std::uint64_t next_ = 0;
};

}  // namespace flywheel
