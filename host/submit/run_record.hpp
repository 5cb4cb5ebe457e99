// The host's record of a run, from submission to its end. Shared by the program's Run and the rooms of submit/.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "../../runtime/base/status.hpp"
#include "../../runtime/records/run.hpp"
#include "../../runtime/records/task.hpp"
#include "../collect/end_queue.hpp"
#include "../load/loaded_graph.hpp"
#include "../single/single_tasks.hpp"
#include "../trace/profiler.hpp"
#include "../trace/trace.hpp"

namespace flywheel::detail {

/// waiting: not in flight yet. live: in flight, has a slot. done: the outcome is written.
enum class RunPhase : std::uint32_t { waiting, live, done };

/// A queue of streamed values that the host has read from the slot and the program has not taken yet. Unlike
/// std::deque, an empty one has no memory allocated.
class UnreadValues {
 public:
  bool empty() const { return values_.empty(); }
  std::size_t size() const { return values_.size() - taken_; }
  void push(std::uint64_t value) { values_.push_back(value); }
  /// Takes the oldest value. False if there is none.
  bool take(std::uint64_t& value) {
    if (values_.empty()) return false;
    value = values_[taken_++];
    if (2 * taken_ < values_.size()) return true;
    // At least half of the values are taken, so this moves no more values than were taken since the last time.
    values_.erase(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(taken_));
    taken_ = 0;
    return true;
  }

 private:
  std::vector<std::uint64_t> values_;
  std::size_t taken_ = 0;
};

/// Who listens to a run.
struct Listeners {
  std::weak_ptr<RunRecord> run;
  std::vector<Listener> all;
};

/// A parameter that is a result of another run, or of a single task.
struct TakenValue {
  std::shared_ptr<RunRecord> run;  // null: of `single`
  std::shared_ptr<SingleTask> single;
  std::uint32_t from;   // bytes into the results
  std::uint32_t to;     // bytes into the parameters
  std::uint32_t bytes;  // at most 8
};

/// What a run follows and has not ended well so far.
struct RunsBefore {
  std::vector<std::shared_ptr<RunRecord>> runs;
  std::vector<std::shared_ptr<SingleTask>> singles;
  std::vector<TakenValue> values;  // of these
  std::vector<std::shared_ptr<SingleTask>> pinned;

  std::size_t size() const { return runs.size() + singles.size(); }
};

/// A traced run, or the parts of a traced batch together: one trace. See Admission for how they take turns.
struct TracedWork {
  std::vector<std::string> kernel_types;  // names of the kernel's task types, by position
  bool of_batch = false;
  std::vector<std::shared_ptr<LoadedGraph>> graphs;  // of the run, or of the parts in order; complete once `left` is 0
  std::uint32_t left = 1;                            // runs that have not ended; guarded by the dispatcher's mutex
  /// Null while there is none. Set under the dispatcher's mutex: of a run before the run is done, of a batch at the end of its
  /// last part.
  std::unique_ptr<const Trace> trace;
};

/// A run. The comments of the fields name the locks that guard them.
struct RunRecord {
  explicit RunRecord(std::shared_ptr<LoadedGraph> loaded) : graph(std::move(loaded)) {}
  ~RunRecord() { stop_range(range); }  // of one that was not taken

  /// Ends the run with a status that the host has chosen, unless it is done already. If it has a slot, the slot stays
  /// taken until the device has ended the run. The caller holds the dispatcher's mutex.
  void end_early(Status status, const std::string& why) {
    std::scoped_lock lock(mutex);
    // Relaxed: `done` is only stored under `mutex`, which is held.
    const RunPhase was = phase.load(std::memory_order_relaxed);
    if (was == RunPhase::done) return;
    if (was == RunPhase::waiting) {
      holds.reset(), before.reset();
      if (tracing) --tracing->left;
    }
    code = static_cast<std::uint32_t>(status);
    cause = why;
    ended_early = true;
    // Release: pairs with the acquire in Run::done(). `code` and `cause` are written before it.
    phase.store(RunPhase::done, std::memory_order_release);
    announce_end();
  }

  /// Ends a run that was not submitted, and so is its thread's alone.
  void end_alone() {
    std::scoped_lock lock(mutex);
    before.reset();
    // Release: pairs with the acquire loads of whoever is told of the end.
    phase.store(RunPhase::done, std::memory_order_release);
    announce_end();
  }

  /// True once it has ended well; then what it wrote is visible. Acquire: pairs with the release stores of RunPhase::done.
  bool ended_well() const { return phase.load(std::memory_order_acquire) == RunPhase::done && code == 0; }

  /// True if admission only ends the run. The caller holds the dispatcher's mutex.
  bool will_not_run() const { return cancel_requested || predecessor_failed; }

  void add_listener(Listener listener) {
    if (!listeners) listeners = std::make_unique<Listeners>();
    listeners->all.push_back(std::move(listener));
  }
  /// The listeners make references to the run, from its own. To be called before it goes in flight or ends.
  static void let_listen(const std::shared_ptr<RunRecord>& run) {
    if (run->listeners) run->listeners->run = run;
  }
  /// Tells the listeners that the run is going in flight. The caller is admission, which has given the run its slot.
  void announce_flight(const std::uint64_t& word) const {
    if (!listeners) return;
    for (const Listener& one : listeners->all) one.watch(listeners->run.lock(), word, generation);
  }
  /// Tells the listeners, and a profiler, that the run is done. The caller holds `mutex` and has stored the phase.
  void announce_end() {
    stop_range(std::exchange(range, 0));
    if (!listeners) return;
    for (Listener& one : listeners->all) one.end(listeners->run.lock());
    listeners.reset();
  }

  const std::shared_ptr<LoadedGraph> graph;
  std::uint32_t repeat = 1;
  std::uint32_t priority = static_cast<std::uint32_t>(Priority::normal);
  bool packs = false;                   // first run of a compiled graph: packs its operands
  std::shared_ptr<TracedWork> tracing;  // null: the run is not traced
  std::uint64_t range = 0;              // of its life, for a profiler; 0: there is none
  std::unique_ptr<TaskRecord> root;     // the task that the run begins with, if it travels in the message: see kInlineRoot
  /// What the device reads while the run is in flight. Dropped when the run leaves its slot, under the dispatcher's mutex.
  std::shared_ptr<void> holds;
  std::array<unsigned char, kParamBytes> params;  // the graph's parameters; bytes behind them are unused

  /// The state of the run; it publishes the fields below. Stored with release and loaded with acquire, unless a comment
  /// at the access says why relaxed suffices. It becomes `live` under the dispatcher's mutex, and `done` under `mutex`.
  /// The thread that finds it `live` under `mutex` collects the outcome, so only one thread does.
  std::atomic<RunPhase> phase{RunPhase::waiting};

  /// Of a follower: what it follows; null: nothing. Dropped when it ends in the backlog or leaves its slot. From the submission
  /// on guarded by the dispatcher's mutex.
  std::unique_ptr<RunsBefore> before;
  bool is_held = false;                // the backlog holds the run back; likewise
  const RunRecord* held_by = nullptr;  // for this predecessor; null: for single tasks; likewise
  bool predecessor_failed = false;     // the run will not run; likewise
  std::uint32_t readers = 0;           // runs in flight that take results of this one on the device; likewise
  bool keeps_slot = false;             // it has ended, and keeps its slot for these; likewise

  std::uint64_t place = 0;  // arrival number in the backlog; 0: never was in it; guarded by the dispatcher's mutex

  // Set by admission when the run goes in flight.
  std::uint64_t entry = 0;  // of a dynamic run: its number in Reservation
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
  std::uint32_t bank = 0;
  std::uint64_t stream_next = 0;  // ticket of the next streamed value; guarded by `mutex`

  // Set when the run is done.
  std::uint32_t code = 0;
  std::uint32_t fault_task = 0;  // graph-local index + 1 of the task that failed; 0: none
  std::uint32_t iterations = 0;
  std::string cause;  // for codes of the library: what exactly happened
  std::vector<unsigned char> results;

  /// Who is told of the end; null: nobody. While the run waits, the dispatcher's mutex guards them, or the thread that
  /// prepares the run has it alone; from then on `mutex` does.
  std::unique_ptr<Listeners> listeners;

  std::mutex mutex;
  UnreadValues streamed;
  bool cancel_requested = false;  // guarded by the dispatcher's mutex
  bool ended_early = false;       // likewise; set by end_early()
};

}  // namespace flywheel::detail
