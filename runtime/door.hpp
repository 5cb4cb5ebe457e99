// The door: takes messages from the inbox and lets runs in. One warp on the GPU, one thread on the CPU.
#pragma once

#include <cstring>

#include "runtime/completion.hpp"
#include "runtime/graph.hpp"

namespace flywheel {

template <class P>
class Door {
 public:
  /// `porch` is the seat of the worker in the same block; `desk` is where the lanes lay a message out to read it
  /// together, on the GPU in shared memory.
  FLYWHEEL_TASK Door(const World& world, Porch& porch, RunConstants& desk)
      : world_(world), wires_{world}, porch_(porch), desk_(desk), ready_(world, world.workers),
        state_(world.control->door) {}

  /// Collective. Returns when the kernel parks or aborts.
  FLYWHEEL_TASK void operator()() {
    post(0);
    for (std::uint32_t spins = 0; !aborted(spins); ++spins) {
      if (take_message()) {
        handle();
        spins = 0;
      } else if (parking_ && all_finished()) {
        break;
      } else {
        if (spins == kQuiet) release_entries();
        P::pause(spins);
      }
    }
    close();
  }

 private:
  static constexpr std::uint32_t kQuiet = 16;  // empty polls after which the host is told what was read
  static constexpr std::uint32_t kWordsEach = (kRunWords + P::lanes() - 1) / P::lanes();

  FLYWHEEL_TASK bool aborted(std::uint32_t spins) const {
    return spins % 64 == 63 && P::broadcast(P::device(world_.control->abort.value).load(Order::relaxed)) != 0;
  }

  FLYWHEEL_TASK bool take_message() {
    std::uint32_t mine[kWordsEach];
    if (!wires_.inbox().read(state_.next_entry, mine)) return false;
    ++state_.next_entry;
    auto* words = reinterpret_cast<std::uint32_t*>(&desk_);
    for (std::uint32_t i = P::lane(), k = 0; i < kRunWords; i += P::lanes(), ++k) words[i] = mine[k];
    P::converge();
    if (state_.next_entry - released_ >= world_.inbox_capacity / 4) release_entries();
    return true;
  }

  /// Not after each message: a store across PCIe would hold up the fences of the run it has just let in.
  FLYWHEEL_TASK void release_entries() {
    if (released_ != state_.next_entry && P::lane() == 0) wires_.inbox().release(state_.next_entry);
    released_ = state_.next_entry;
  }

  FLYWHEEL_TASK void handle() {
    switch (static_cast<InboxOp>(desk_.op)) {
      case InboxOp::submit: return admit();
      case InboxOp::cancel: return cancel();
      case InboxOp::park: parking_ = true; return;
    }
  }

  FLYWHEEL_TASK void admit() {
    RunState& run = world_.runs[desk_.slot];
    ++state_.admitted;
    open_run(run);
    copy_params(run);
    P::converge();  // the lanes that publish the roots release what all lanes wrote
    if (desk_.kind == static_cast<std::uint32_t>(GraphKind::phased)) return announce();
    if (desk_.root_count == 1 && offer_single_root()) return;
    publish_roots<P>(world_, ready_, desk_);
  }

  /// The message becomes the run's constants; the rest of the line is zeroed. One coalesced store on the GPU.
  FLYWHEEL_TASK void open_run(RunState& run) const {
    const auto* from = reinterpret_cast<const std::uint32_t*>(&desk_);
    auto* words = reinterpret_cast<std::uint32_t*>(&run.line);
    for (std::uint32_t i = P::lane(); i < kLineWords; i += P::lanes())
      P::device(words[i]).store(i < kRunWords ? from[i] : 0, Order::relaxed);
    if (P::lane() == 0) P::device(run.outstanding).store(desk_.sinks, Order::relaxed);
  }

  FLYWHEEL_TASK void copy_params(RunState& run) const {
    const auto* words = reinterpret_cast<const std::uint64_t*>(world_.params + std::size_t{desk_.slot} * kParamBytes);
    auto* to = reinterpret_cast<std::uint64_t*>(run.params);
    for (std::uint32_t i = P::lane(); i < (desk_.param_bytes + 7) / 8; i += P::lanes()) to[i] = words[i];
  }

  FLYWHEEL_TASK bool offer_single_root() const {
    bool taken = false;
    if (P::lane() == 0) {
      const Item root{desk_.first_record + desk_.root_task, static_cast<std::uint16_t>(desk_.slot), false};
      taken = offer_porch<P>(porch_, root.pack());
    }
    return P::broadcast(taken);
  }

  /// Every worker joins when it is next idle. The host lets one phased run in at a time, so the barrier is still.
  FLYWHEEL_TASK void announce() {
    if (P::lane() == 0)
      world_.runs[desk_.slot].line.barrier_base = P::device(world_.control->barrier.value).load(Order::relaxed);
    ++state_.epoch;
    phased_ = desk_.slot;
    post(0);
  }

  FLYWHEEL_TASK void cancel() const {
    RunLine& line = world_.runs[desk_.slot].line;
    // A late cancel meets a newer generation and does nothing.
    if (P::lane() == 0 && line.constants.generation == desk_.generation)
      P::device(line.cancelled).store(1, Order::relaxed);
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
    release_entries();
    if (P::lane() == 0) world_.control->door = state_;
    P::converge();
    post(world_.launch);
  }

  const World& world_;
  Wires<P> wires_;
  Porch& porch_;
  RunConstants& desk_;
  Ready<P> ready_;
  DoorState state_;
  std::uint64_t released_ = state_.next_entry;
  std::uint32_t phased_ = 0;
  bool parking_ = false;
};

}  // namespace flywheel
