// The ends of runs, in the order in which they are found. A run that somebody listens to has a Listener, which leads to
// an EndQueue. Whoever ends the run, collect() or RunRecord::end_early(), pushes it there. The consumers of the queue
// need not wait for that: they poll the completion words of the listened runs that are in flight, and no others.
//
//   submit --> Listener in the RunRecord --watch()--> in flight --poll()--.
//                                       `---- the run's end: push() -------+--> ended --next()--> consumer
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace flywheel::detail {

class Callback;
struct RunRecord;

/// A run that has ended, and what its listener wants with it.
struct Ended {
  std::shared_ptr<RunRecord> run;
  std::uint64_t tag = 0;
  std::shared_ptr<Callback> callback;  // null: a consumer of the program takes the run
};

/// Thread-safe. Holds the queue's mutex only to move entries, so that a thread that submits or ends a run never waits
/// for a thread that polls.
class EndQueue {
 public:
  using Clock = std::chrono::steady_clock;
  using RunPtr = std::shared_ptr<RunRecord>;
  /// Collects a run in flight whose completion word is written, and so ends it. False if that must be tried again.
  using Collect = bool (*)(const RunPtr& run);
  /// What next() does while no run is expected: it gives up, or waits for a Listener.
  enum class WhenEmpty { give_up, wait };

  explicit EndQueue(Collect collect) : collect_(collect) {}

  // Listeners.
  /// One more run will end.
  void expect();
  /// A run that was expected is never submitted.
  void withdraw();
  /// The run is in flight; its end shows in `word`, the completion word of its slot.
  void watch(RunPtr run, const std::uint64_t& word, std::uint32_t generation);
  /// The run has ended.
  void push(Ended ended);

  // Consumers.
  /// Takes the run whose end was found first. Empty if none has ended by `limit`, after close(), and with
  /// WhenEmpty::give_up once no run is expected.
  std::optional<Ended> next(Clock::time_point limit, WhenEmpty when_empty);
  /// Like next(), but does not wait.
  std::optional<Ended> try_next();
  /// The number of runs that are expected or have ended and are not taken.
  std::size_t size() const;
  /// Drops all entries, now and later, and wakes the consumers.
  void close();

 private:
  struct InFlight {
    RunPtr run;
    const std::uint64_t* word;
    std::uint32_t generation;
    bool is_over() const;
  };

  bool take(std::optional<Ended>& ended);
  void poll();
  void take_up_watched(std::vector<InFlight>& stale);
  bool wait_for_listener(Clock::time_point limit);

  const Collect collect_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::size_t expected_ = 0;       // listeners that have not ended, and entries of ended_
  std::vector<InFlight> watched_;  // in flight since the last poll()
  std::deque<Ended> ended_;
  bool closed_ = false;

  std::mutex polling_;  // held by the consumer that polls; before mutex_
  std::vector<InFlight> in_flight_;
};

/// Waits for the end of one run on behalf of a queue. A RunRecord owns its listeners. A listener that goes without an
/// end, because its run was never submitted, tells the queue.
class Listener {
 public:
  Listener(std::shared_ptr<EndQueue> queue, std::uint64_t tag, std::shared_ptr<Callback> callback);
  Listener(Listener&&) = default;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  void watch(const std::shared_ptr<RunRecord>& run, const std::uint64_t& word, std::uint32_t generation) const {
    queue_->watch(run, word, generation);
  }
  /// The run has ended. To be called once.
  void end(const std::shared_ptr<RunRecord>& run);

 private:
  std::shared_ptr<EndQueue> queue_;  // null after end() and after a move
  std::uint64_t tag_;
  std::shared_ptr<Callback> callback_;
};

}  // namespace flywheel::detail
