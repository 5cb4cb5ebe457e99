// The inbox poller: takes messages from the inbox and admits runs to the workers. One warp polls on the GPU
// (device/kernel.cuh), one thread on the CPU (cpu/entry.hpp). For the direct slot see records/idle.hpp.
#pragma once

#include <cstring>

#include "../records/graph.hpp"
#include "../records/schedule.hpp"
#include "suspend.hpp"

namespace flywheel::detail {

/// Writes the line of a submitted run: the message's words become its constants, the rest is zeroed, but for the word of its
/// followers, which a worker that ended the slot's last run may still be about to change. All lanes call;
/// `mine` holds this lane's words of the message. One coalesced store on the GPU. Relaxed: after P::converge() the
/// leading lane admits the run (see MessageHandler::admit()), which releases the line.
template <class P>
FLYWHEEL_TASK void open_line(RunLine& line, const std::uint32_t* mine) {
  auto* words = reinterpret_cast<std::uint32_t*>(&line);
  for (std::uint32_t i = P::lane(), k = 0; i < offsetof(RunLine, followers) / 4; i += P::lanes(), ++k)
    P::device(words[i]).store(i < kRunWords ? mine[k] : 0, Order::relaxed);
}

/// Stores the record that a message carries, as open_line() stores the line.
template <class P>
FLYWHEEL_TASK void store_record(TaskRecord& record, const std::uint32_t* mine) {
  static_assert(sizeof(TaskRecord) == kInlineBytes);
  auto* words = reinterpret_cast<std::uint32_t*>(&record);
  constexpr std::uint32_t kFirst = offsetof(Message, carried) / 4;
  for (std::uint32_t i = P::lane(), k = 0; i < kMessageWords; i += P::lanes(), ++k)
    // Relaxed: as in open_line().
    if (i >= kFirst) P::device(words[i - kFirst]).store(mine[k], Order::relaxed);
}

/// Handles the messages on one thread: admits a run whose line is open, cancels a run, or notes that the kernel is to park or
/// to be suspended.
template <class P>
class MessageHandler {
 public:
  FLYWHEEL_TASK MessageHandler(const DeviceState& dev, DirectSlot& direct_slot, const Message& message)
      : dev_(dev),
        direct_slot_(direct_slot),
        message_(message.run),
        carried_(message),
        state_(dev.control->poller) {}

  /// Handles the message in the buffer.
  FLYWHEEL_TASK void handle() {
    const RunConstants message = message_;  // one copy: the loads of all words overlap
    switch (static_cast<InboxOp>(message.op)) {
      case InboxOp::submit:
        return admit(message);
      case InboxOp::cancel:
        return cancel();
      case InboxOp::park:
        parking_ = true;
        return;
      case InboxOp::suspend:
        suspending_ = true;
        if (is_collective_live()) suspend_collective();
        return;
    }
  }

  /// Admits `count` runs whose first root came with the message: publishes these roots, which are in the buffer, together.
  FLYWHEEL_TASK void admit_carried(std::uint32_t count, std::uint32_t priority, const std::uint64_t* roots) {
    state_.admitted += count;
    publish_items<P>(dev_, dev_.workers, count, priority, roots);
  }

  /// True once the host has asked to park and all admitted runs have ended, or has asked to suspend the kernel, no collective
  /// run is live, and all workers have come to leave. Relaxed: pairs with the add in end_run(), which comes after the
  /// completion word; only the numbers are compared.
  FLYWHEEL_TASK bool may_leave() {
    if (parking_ && P::device(dev_.control->finished.value).load(Order::relaxed) == state_.admitted) return true;
    return suspending_ && !is_collective_live() && have_assembled();
  }

  /// At the begin of a launch: calls all workers to the collective run that was suspended in the last one, if there is one.
  FLYWHEEL_TASK void open() {
    RunState& run = dev_.runs[state_.collective];
    if (run.line.suspended) announce(run, state_.collective);  // plain: written in the last launch
    else post(0);
  }

  /// Publishes the announcement: the latest collective run, and in `stop` the launch that is to end (0: none).
  FLYWHEEL_TASK void post(std::uint32_t stop, std::uint32_t flags = 0) const {
    // Release: pairs with the acquire load in WorkFinder::take_announcement(). The line and state of the collective run go
    // with it. The relaxed loads of it, in read_broadcast() and is_wanted(), are hints.
    const std::uint64_t word = announcement_word(state_.epoch, state_.collective | flags, stop);
    P::device(dev_.control->broadcast.announcement).store(word, Order::release);
  }

  /// Saves the poller's state for the next launch, then tells the workers of this launch to leave, with a new epoch: so they
  /// heed it wherever they would heed the call to a collective run, also while there is work. Plain: the next launch begins
  /// after this one has ended.
  FLYWHEEL_TASK void close(std::uint64_t next_entry) {
    state_.next_entry = next_entry;
    ++state_.epoch;
    dev_.control->poller = state_;
    dev_.control->first_epoch[(dev_.launch + 1) % 2] = state_.epoch;
    post(dev_.launch);
  }

 private:
  /// Admits a run: announces a collective one; else delivers its only root over the direct slot or publishes its roots. The
  /// record that the message carries is a root, and the only one at first.
  FLYWHEEL_TASK void admit(const RunConstants& message) {
    RunState& run = dev_.runs[message.slot];
    ++state_.admitted;
    // Relaxed: pairs with the arrivals in arrive_sink(); the roots or the direct slot's item release it.
    P::device(run.outstanding).store(message.sinks, Order::relaxed);
    if (message.param_bytes) copy_params(run);
    if (message.flags & kFollows && waits_or_fails<P>(dev_, carried_)) return;
    if (message.flags & kAllWorkers) return announce(run, message.slot);
    const bool has_inline_root = message.flags & kInlineRoot;
    const std::uint64_t root = only_root(dev_, message);
    if ((has_inline_root || message.root_count == 1) && offer_directly<P>(direct_slot_, root, message, carried_))
      return wait_for_direct_worker();
    if (has_inline_root) publish_items<P>(dev_, dev_.workers, 1, message.priority, &root);
    else publish_roots<P>(dev_, dev_.workers, message_);
  }

  /// Stops polling after a run went out over the direct slot, until the worker of this block waits there again, or for
  /// 2 us. A poll under way across PCIe holds up the fence with which that worker publishes its result (by 1 us,
  /// measured on an H200).
  FLYWHEEL_TASK void wait_for_direct_worker() const {
    constexpr std::uint64_t kLongestNs = 2000;
    const std::uint64_t begin = P::now_ns();
    // Relaxed: pairs with the release store in IdleSlot::enroll(). Only the moment matters; offer_directly() acquires.
    for (std::uint32_t spins = 0; P::block(direct_slot_.waiting).load(Order::relaxed) == 0; ++spins)
      if (spins % 8 == 7 && P::now_ns() - begin > kLongestNs) return;
  }

  /// Copies the run's parameters: from the message, or from host memory if they are too long for it. Plain: Inbox::read()
  /// has acquired the source, and admitting the run releases the copy.
  FLYWHEEL_TASK void copy_params(RunState& run) const {
    const unsigned char* from = message_.param_bytes <= most_carried(message_.flags)
                                    ? carried_.carried
                                    : dev_.params + std::size_t{message_.slot} * kParamBytes;
    const auto* words = reinterpret_cast<const std::uint64_t*>(from);
    auto* to = reinterpret_cast<std::uint64_t*>(run.params);
    for (std::uint32_t i = 0; i < (message_.param_bytes + 7) / 8; ++i) to[i] = words[i];
  }

  /// Announces a phased or compiled run, or what is left of a suspended one; every worker joins it when it is next idle.
  FLYWHEEL_TASK void announce(RunState& run, std::uint32_t slot) {
    RunLine& line = run.line;
    // Relaxed: pairs with GridBarrier::arrive(). The barrier is at rest: the host submits one collective run at a time,
    // and all arrivals of the previous one came before its completion.
    line.barrier_base = P::device(dev_.control->barrier.value).load(Order::relaxed);
    // The sinks of a compiled run count passes from the run's begin, so its base is as if the earlier ones had just arrived.
    if (line.suspended && (line.constants.flags & kCompiled))
      line.barrier_base -= std::uint64_t{line.resume.pass} * dev_.execs[line.constants.exec].schedule->sinks;
    line.suspended = 0;
    ++state_.joined;
    ++state_.epoch;
    state_.collective = slot;
    assembling_ = false;  // workers that wait for each other join the run first
    if (suspending_) suspend_collective();
    post(0);
  }

  /// Relaxed: pairs with the add in leave_collective(); only the numbers are compared.
  FLYWHEEL_TASK bool is_collective_live() const {
    return P::device(dev_.control->collective_ends.value).load(Order::relaxed) != state_.joined;
  }
  /// A traced run goes on to its end: the clocks of another launch do not continue those of its trace.
  FLYWHEEL_TASK void suspend_collective() const {
    RunState& run = dev_.runs[state_.collective];
    if (!(run.line.constants.flags & (kTraced | kPack))) ask_to_suspend<P>(run);
  }

  /// Calls all workers together, and then tells whether all have come. Calls the suspension off if that takes too long.
  FLYWHEEL_TASK bool have_assembled() {
    const auto assembled = P::device(dev_.control->assembled.value);
    if (!assembling_) {
      assembling_ = true;
      assembling_from_ = P::now_ns();
      // Relaxed, here and below: pairs with wait_for_assembly(). post() releases the new epoch to those who are to see it.
      assembled.store(std::uint64_t{++state_.epoch} << 32, Order::relaxed);
      post(dev_.launch, kAssemble);
      return false;
    }
    if (static_cast<std::uint32_t>(assembled.load(Order::relaxed)) == dev_.workers) return true;
    if (P::now_ns() - assembling_from_ >= dev_.assembly_ns) call_off();
    return false;
  }

  /// All workers go on: with the collective run that was suspended for nothing, or with other work.
  FLYWHEEL_TASK void call_off() {
    suspending_ = assembling_ = false;
    // Acquire: pairs with the release in suspend_run(), which comes before is_collective_live() has become false.
    P::device(dev_.control->collective_ends.value).load(Order::acquire);
    RunState& run = dev_.runs[state_.collective];
    if (run.line.suspended) {
      announce(run, state_.collective);
    } else {
      ++state_.epoch;
      post(0, kAssemble);  // stops no launch: the workers go on with what they find
    }
    // Relaxed, both: pairs with KernelLifetime::note_call_off(), which only compares the number; only this thread writes it.
    const auto calls = P::system(*dev_.calls_off);
    calls.store(calls.load(Order::relaxed) + 1, Order::relaxed);
  }

  FLYWHEEL_TASK void cancel() const {
    RunLine& line = dev_.runs[message_.slot].line;
    // A cancellation that comes late meets a newer generation and does nothing.
    // Relaxed: pairs with the loads in BlockCore::cancelled(), copy_line(), complete_run(), cross_boundary() and signal_done().
    // Only the value counts.
    if (line.constants.generation == message_.generation) P::device(line.cancelled).store(1, Order::relaxed);
  }

  const DeviceState& dev_;
  DirectSlot& direct_slot_;
  const RunConstants& message_;  // of carried_
  const Message& carried_;
  InboxPollerState state_;
  bool parking_ = false;
  bool suspending_ = false;
  bool assembling_ = false;  // the workers are called together
  std::uint64_t assembling_from_ = 0;
};

/// Most messages that one poll takes: for a warp a single trip, for a thread so many loads more.
template <class P>
FLYWHEEL_TASK constexpr std::uint32_t most_messages() {
  return P::lanes() > 1 ? 16 : 2;
}

/// Where the lanes lay out what the leading lane handles: shared memory on the GPU.
struct PollerBuffer {
  Message message;
  std::uint64_t roots[16];
};

/// Polls the inbox: the lanes of P read messages together, and the leading lane handles them.
template <class P>
class InboxPoller {
 public:
  /// `direct_slot` belongs to the worker in the same block.
  FLYWHEEL_TASK InboxPoller(const DeviceState& dev, DirectSlot& direct_slot, PollerBuffer& buffer)
      : dev_(dev),
        inbox_(Views<P>{dev}.inbox()),
        buffer_(buffer),
        handler_(dev, direct_slot, buffer.message),
        next_(dev.control->poller.next_entry),
        released_(next_) {}

  /// Polls until the kernel parks, is suspended or is aborted. All lanes call. One poll is under way at a time: with two a
  /// submission takes 1 us longer (H200), because the fences of this SM wait for both; see tuning.md. A poll looks for
  /// one message, for two if the one before has seen one, and for kMostMessages if that has seen two: sixteen take 2 us longer
  /// than two (H100), and an idle poller's polls hold up the fences of this SM the less the fewer lines they read.
  FLYWHEEL_TASK void operator()() {
    if (P::lane() == 0) handler_.open();
    std::uint32_t before = 0;  // messages that the poll before has seen
    for (std::uint32_t spins = 0; !(spins % 16 == 15 && P::any(leaves())); ++spins) {
      before = before == 0 ? take_messages<1>() : before == 1 ? take_messages<2>() : take_messages<kMostMessages>();
      if (before) {
        P::converge();
        spins = suspending_ ? 14 : 0;  // messages may keep coming: look whether to leave after each
      } else {
        if (spins == kQuiet) release_entries();
        whole_ &= spins < kIdlePolls;
        P::pause(spins);
      }
    }
    release_entries();
    if (P::lane() == 0) handler_.close(next_);
  }

 private:
  static constexpr std::uint32_t kQuiet = 16;      // empty polls in a row until the host is told what was read
  static constexpr std::uint32_t kIdlePolls = 64;  // and until it no longer expects that messages carry anything
  static constexpr std::uint32_t kWordsEach = message_words_each<P>();
  static constexpr std::uint32_t kMostMessages = most_messages<P>();

  /// The leading lane's vote to return. Relaxed: `abort` pairs with report_wait() and the host; only its value counts.
  FLYWHEEL_TASK bool leaves() {
    return P::lane() == 0 && (handler_.may_leave() || P::device(dev_.control->broadcast.abort).load(Order::relaxed) != 0);
  }

  /// A word of a message, for all lanes: reading it back from the buffer takes longer.
  FLYWHEEL_TASK static std::uint32_t word(const std::uint32_t* mine, std::size_t offset) {
    return Inbox<P>::word(mine, offset);
  }
  FLYWHEEL_TASK static bool submits(const std::uint32_t* mine) {
    return word(mine, offsetof(RunConstants, op)) == static_cast<std::uint32_t>(InboxOp::submit);
  }
  /// `without`: flags that the run must not have.
  FLYWHEEL_TASK static bool has_inline_root(const std::uint32_t* mine, std::uint32_t without = 0) {
    return submits(mine) && (word(mine, offsetof(RunConstants, flags)) & (kInlineRoot | without)) == kInlineRoot;
  }

  /// Takes messages that have arrived: one of any kind, or several that each have an inline root. Returns how many
  /// of the kCount next have arrived.
  template <std::uint32_t kCount>
  FLYWHEEL_TASK std::uint32_t take_messages() {
    std::uint32_t mine[kCount][kWordsEach];
    const std::uint32_t arrived = inbox_.read(next_, mine, whole_);
    if (!arrived) return 0;
    const std::uint32_t priority = word(mine[0], offsetof(RunConstants, priority));
    bool alike = true;
    std::uint32_t inline_roots = 0;
    for_constants<kCount>([&](auto e) {
      alike = alike && e < arrived && has_inline_root(mine[e], kFollows) &&
              word(mine[e], offsetof(RunConstants, priority)) == priority;
      inline_roots += alike;
    });
    if (inline_roots < 2) {
      take_message(mine[0]);
      note_taken(1);
    } else {
      take_inline_roots(mine, inline_roots, priority);
      note_taken(inline_roots);
    }
    return arrived;
  }

  FLYWHEEL_TASK void note_taken(std::uint32_t count) {
    next_ += count;
    if (next_ - released_ >= dev_.inbox_capacity / 4) release_entries();
  }

  /// Lays the message out in the buffer, opens the line of a submitted run, stores the record that came with it, and handles
  /// the message.
  FLYWHEEL_TASK void take_message(const std::uint32_t (&mine)[kWordsEach]) {
    auto* words = reinterpret_cast<std::uint32_t*>(&buffer_.message);
    for (std::uint32_t i = P::lane(), k = 0; i < kMessageWords; i += P::lanes(), ++k) words[i] = mine[k];
    P::converge();  // orders what each lane has acquired before what any lane does next
    const std::uint32_t slot = word(mine, offsetof(RunConstants, slot));
    if (submits(mine)) open_line<P>(dev_.runs[slot].line, mine);
    suspending_ |= word(mine, offsetof(RunConstants, op)) == static_cast<std::uint32_t>(InboxOp::suspend);
    if (has_inline_root(mine)) store_record<P>(dev_.records[dev_.inline_base + slot], mine);
    P::converge();  // the leading lane releases what all lanes wrote, see open_line()
    if (P::lane() == 0) handler_.handle();
  }

  /// Takes the first `count` messages, each of which carries the first root of its run: the roots are published together.
  template <std::uint32_t kCount>
  FLYWHEEL_TASK void take_inline_roots(const std::uint32_t (&mine)[kCount][kWordsEach], std::uint32_t count,
                                       std::uint32_t priority) {
    P::converge();  // as above
    for_constants<kCount>([&](auto e) {
      if (e >= count) return;
      const std::uint32_t slot = word(mine[e], offsetof(RunConstants, slot));
      const std::uint32_t sinks = word(mine[e], offsetof(RunConstants, sinks));
      open_line<P>(dev_.runs[slot].line, mine[e]);
      store_record<P>(dev_.records[dev_.inline_base + slot], mine[e]);
      if (P::lane() != 0) return;
      // Relaxed: as in MessageHandler::admit().
      P::device(dev_.runs[slot].outstanding).store(sinks, Order::relaxed);
      buffer_.roots[e] = Item{dev_.inline_base + slot, static_cast<std::uint16_t>(slot), false}.pack();
    });
    P::converge();  // the leading lane releases what all lanes wrote, see open_line()
    if (P::lane() == 0) handler_.admit_carried(count, priority, buffer_.roots);
  }

  /// Tells the host which entries it may overwrite. Not after each message: a store across PCIe would hold up the
  /// fences of the run that was just admitted.
  FLYWHEEL_TASK void release_entries() {
    if (released_ != next_ && P::lane() == 0) inbox_.release(next_);
    released_ = next_;
  }

  const DeviceState& dev_;
  Inbox<P> inbox_;
  PollerBuffer& buffer_;
  MessageHandler<typename P::Leader> handler_;
  std::uint64_t next_;
  std::uint64_t released_;
  bool suspending_ = false;  // in all lanes
  bool whole_ = false;       // likewise: polls read what messages carry, too
};

}  // namespace flywheel::detail
