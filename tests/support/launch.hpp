// One launch of the workers and the inbox poller on a TestDeviceState, on threads of P.
#pragma once

#include "support/device_state_fixture.hpp"

namespace flywheel::testing {

template <class List, class P = CpuPlatform, class Executor = CpuExecutor<P>>
class Launch {
 public:
  /// `first_message` goes on from an earlier launch on the same device state.
  explicit Launch(TestDeviceState& device, std::uint64_t first_message = 0) : dev_(device.dev), next_(first_message) {
    for (std::uint32_t w = 0; w < dev_.workers; ++w)
      threads_.emplace_back([this, w] {
        const auto scratch = std::make_unique<unsigned char[]>(dev_.scratch_bytes + 16);
        Executor executor(dev_, cpu_tasks<List, P>, w, scratch.get());
        Worker<P, Executor>(dev_, w, executor, w == 0 ? &direct_slot_ : nullptr)();
      });
    threads_.emplace_back([this] { cpu_poller<P>(dev_, &direct_slot_); });
  }
  ~Launch() { park(); }

  /// Lets a run in, in `slot`, which must be free.
  void submit(RunConstants run, std::uint32_t slot, std::uint32_t repeat = 1) {
    run.slot = slot;
    run.repeat = repeat;
    run.generation = generation(slot) + 1;
    send(run);
  }
  void cancel(std::uint32_t slot) {
    RunConstants run{};
    run.op = static_cast<std::uint32_t>(InboxOp::cancel);
    run.slot = slot;
    run.generation = generation(slot) + 1;
    send(run);
  }

  /// Waits for the end of the run in `slot` whose generation follows `before`; its status code, or aborted.
  std::uint32_t finish(std::uint32_t slot, std::uint32_t before) {
    const bool ended = wait_for([&] { return generation(slot) == before + 1; });
    return ended ? static_cast<std::uint32_t>(word(slot)) : static_cast<std::uint32_t>(Status::aborted);
  }
  /// Submits and waits.
  std::uint32_t run(const RunConstants& constants, std::uint32_t slot = 0, std::uint32_t repeat = 1) {
    const std::uint32_t before = generation(slot);
    submit(constants, slot, repeat);
    return finish(slot, before);
  }

  std::uint32_t generation(std::uint32_t slot) { return static_cast<std::uint32_t>(word(slot) >> 32); }
  std::uint64_t messages() const { return next_; }

  /// Ends the launch; the device state is quiet then.
  void park() {
    if (threads_.empty()) return;
    RunConstants message{};
    message.op = static_cast<std::uint32_t>(InboxOp::park);
    send(message);
    threads_.clear();
    ++dev_.launch;
  }

 private:
  std::uint64_t word(std::uint32_t slot) { return P::system(dev_.completions[slot].word).load(Order::acquire); }

  void send(const RunConstants& message) {
    const Inbox<P> inbox = Views<P>{dev_}.inbox();
    // As InboxWriter::has_room(): the inbox poller has read what is about to be overwritten.
    wait_for([&] { return next_ - P::system(*inbox.consumed).load(Order::acquire) < inbox.capacity; });
    Message whole{message, {}};
    if (message.param_bytes <= kInlineBytes)
      std::memcpy(whole.carried, dev_.params + std::size_t{message.slot} * kParamBytes, message.param_bytes);
    inbox.write(next_++, whole);
  }

  DeviceState& dev_;
  DirectSlot direct_slot_{kEmptyMailbox, 0, 0, {}, {}, 0};
  std::uint64_t next_;
  std::vector<std::jthread> threads_;
};

}  // namespace flywheel::testing
