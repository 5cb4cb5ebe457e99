// What the host knows of one run, from submission to its end.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../load/executable.hpp"
#include "../trace/trace.hpp"
#include "../../runtime/base/status.hpp"
#include "../../runtime/records/run.hpp"

namespace flywheel {

enum class RunPhase : std::uint32_t { waiting, live, done };

/// Streamed values, read from the slot and not by the program yet. A std::deque would take memory before there is one.
class UnreadValues {
 public:
  bool empty() const { return values_.empty(); }
  std::size_t size() const { return values_.size() - taken_; }
  void push(std::uint64_t value) { values_.push_back(value); }
  /// The oldest. False if there is none.
  bool take(std::uint64_t& value) {
    if (values_.empty()) return false;
    value = values_[taken_++];
    if (2 * taken_ < values_.size()) return true;
    values_.erase(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(taken_));  // no more than were taken move
    taken_ = 0;
    return true;
  }

 private:
  std::vector<std::uint64_t> values_;
  std::size_t taken_ = 0;
};

struct RunRecord {
  explicit RunRecord(std::shared_ptr<LoadedGraph> loaded) : graph(std::move(loaded)) {}

  /// Ends the run with a status of the host's own, unless it is over. Its slot, if it has one, stays taken until the device is
  /// through with it. The caller holds the dispatcher's mutex.
  void end_early(Status status, const std::string& why) {
    std::scoped_lock lock(mutex);
    if (phase.load(std::memory_order_relaxed) == RunPhase::done) return;
    code = static_cast<std::uint32_t>(status);
    cause = why;
    ended_early = true;
    // Release: pairs with the acquire in Run::done(): code and cause are written.
    phase.store(RunPhase::done, std::memory_order_release);
  }

  const std::shared_ptr<LoadedGraph> graph;
  std::uint32_t repeat = 1;
  std::uint32_t priority = static_cast<std::uint32_t>(Priority::normal);
  bool packs = false;   // a compiled graph's operands, before its first run
  bool traced = false;
  std::array<unsigned char, kParamBytes> params;  // as many of them as the graph has

  /// Release when it changes, acquire when it is read: the fields below belong to it. It becomes `live` under the dispatcher's
  /// mutex, and `done` under `mutex`: whoever finds it live there takes the outcome, and nobody else does.
  std::atomic<RunPhase> phase{RunPhase::waiting};

  std::uint64_t place = 0;  // in the backlog, by arrival; 0: never was in it. Guarded by the dispatcher's mutex

  // Given by admission when the run goes in flight.
  std::uint64_t entry = 0;  // of a dynamic run, see Reservation
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
  std::uint32_t bank = 0;
  std::uint64_t stream_next = 0;  // ticket of the next streamed value; guarded by `mutex`

  // Given when it is done.
  std::uint32_t code = 0;
  std::uint32_t fault_task = 0;  // local index + 1
  std::uint32_t iterations = 0;
  std::string cause;             // for codes of the library: what exactly happened
  std::vector<unsigned char> results;
  std::unique_ptr<const Trace> trace;  // of a traced run

  std::mutex mutex;
  UnreadValues streamed;
  bool cancel_requested = false;           // guarded by the dispatcher's mutex
  bool ended_early = false;            // likewise, see end_early()
};

}  // namespace flywheel
