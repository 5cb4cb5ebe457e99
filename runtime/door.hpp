// The door: takes messages from the inbox and lets runs in. One warp on the GPU, one thread on the CPU.
#pragma once

#include <cstring>

#include "runtime/completion.hpp"

namespace flywheel {

template <class P>
class Door {
 public:
  /// `porch` is the seat of the worker in the same block.
  FLYWHEEL_TASK Door(const World& world, Porch& porch)
      : world_(world), wires_{world}, porch_(porch), ready_(world, world.workers), state_(world.control->door) {}

  /// Collective. Returns when the kernel parks or aborts.
  FLYWHEEL_TASK void operator()() {
    post(0);
    for (std::uint32_t spins = 0; !aborted(spins); ++spins) {
      InboxMessage message{};
      if (wires_.inbox().read(state_.next_entry, message)) {
        handle(message);
        took_entry();
        spins = 0;
      } else if (parking_ && all_finished()) {
        break;
      } else {
        P::pause(spins);
      }
    }
    close();
  }

 private:
  FLYWHEEL_TASK bool aborted(std::uint32_t spins) const {
    return spins % 64 == 63 && P::broadcast(P::device(world_.control->abort.value).load(Order::relaxed));
  }

  FLYWHEEL_TASK void took_entry() {
    ++state_.next_entry;
    if (P::lane() == 0) wires_.inbox().release(state_.next_entry);
  }

  FLYWHEEL_TASK void handle(const InboxMessage& message) {
    switch (message.op) {
      case InboxOp::submit: return admit(message);
      case InboxOp::cancel: return cancel(message);
      case InboxOp::park: parking_ = true; return;
    }
  }

  FLYWHEEL_TASK void admit(const InboxMessage& message) {
    const std::uint16_t slot = static_cast<std::uint16_t>(message.run);
    const ExecRecord& exec = world_.execs[message.exec];
    RunState& run = world_.runs[slot];
    ++state_.admitted;
    copy_params(slot, message.param_bytes);
    if (P::lane() == 0) open_run(run, exec, message);
    P::converge();  // the lanes that publish the roots release what lane 0 wrote
    if (exec.kind == static_cast<std::uint32_t>(GraphKind::phased)) return announce(slot);
    if (exec.root_count == 1 && offer_single_root(run, exec, slot)) return;
    publish_roots<P>(world_, ready_, slot);
  }

  FLYWHEEL_TASK void open_run(RunState& run, const ExecRecord& exec, const InboxMessage& message) const {
    run.exec = message.exec;
    run.generation = message.generation;
    run.first_record = exec.first_record;
    run.first_edge = exec.first_edge;
    run.sinks = exec.sinks;
    run.priority = message.priority;
    run.repeat = message.repeat;
    run.param_bytes = message.param_bytes;
    run.counters = exec.counters + std::size_t{message.bank} * exec.task_count;
    // Only a phased run changes the barrier word, and the host lets one in at a time.
    run.barrier_base = P::device(world_.control->barrier.value).load(Order::relaxed);
    P::device(run.outstanding).store(exec.sinks, Order::relaxed);
    P::device(run.cancelled).store(0, Order::relaxed);
    P::device(run.stop).store(0, Order::relaxed);
    P::device(run.iteration).store(0, Order::relaxed);
    P::device(run.fault).store(0, Order::relaxed);
  }

  FLYWHEEL_TASK void copy_params(std::uint16_t slot, std::uint32_t bytes) const {
    const unsigned char* from = world_.params + std::size_t{slot} * kParamBytes;
    const std::uint64_t* words = reinterpret_cast<const std::uint64_t*>(from);
    std::uint64_t* to = reinterpret_cast<std::uint64_t*>(world_.runs[slot].params);
    for (std::uint32_t i = P::lane(); i < (bytes + 7) / 8; i += P::lanes()) to[i] = words[i];
  }

  FLYWHEEL_TASK bool offer_single_root(const RunState& run, const ExecRecord& exec, std::uint16_t slot) const {
    bool taken = false;
    if (P::lane() == 0) {
      const Item root{run.first_record + world_.edges[exec.first_root].task, slot, false};
      taken = offer_porch<P>(porch_, root.pack());
    }
    return P::broadcast(taken);
  }

  /// Every worker joins when it is next idle. The host lets one phased run in at a time.
  FLYWHEEL_TASK void announce(std::uint16_t slot) {
    ++state_.epoch;
    phased_ = slot;
    post(0);
  }

  FLYWHEEL_TASK void cancel(const InboxMessage& message) const {
    RunState& run = world_.runs[message.run];
    // A late cancel meets a newer generation and does nothing.
    if (P::lane() == 0 && run.generation == message.generation)
      P::device(run.cancelled).store(1, Order::relaxed);
  }

  FLYWHEEL_TASK bool all_finished() const {
    return P::broadcast(P::device(world_.control->finished.value).load(Order::relaxed)) == state_.admitted;
  }

  FLYWHEEL_TASK void post(std::uint32_t stop) const {
    // Release: pairs with the acquire load in Lookout::look(); the state of a phased run goes with it.
    if (P::lane() == 0)
      P::device(world_.control->bulletin.value).store(bulletin_word(state_.epoch, phased_, stop), Order::release);
  }

  FLYWHEEL_TASK void close() {
    ++state_.parks;
    if (P::lane() == 0) world_.control->door = state_;
    P::converge();
    post(world_.launch);
  }

  const World& world_;
  Wires<P> wires_;
  Porch& porch_;
  Ready<P> ready_;
  DoorState state_;
  std::uint32_t phased_ = 0;
  bool parking_ = false;
};

}  // namespace flywheel
