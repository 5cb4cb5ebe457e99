// The device state: handles to all memory that the workers, the inbox poller and the host share.
//
// DeviceState is a plain struct that the kernel takes by value and CPU workers by reference. The host owns the memory behind it
// (host/kernel/device_state_memory). Views<P> makes queues, barriers and rings of one platform from the handles.
#pragma once

#include <cstdint>

#include "../base/barrier.hpp"
#include "../base/queue.hpp"
#include "../base/wait.hpp"
#include "graph.hpp"
#include "heartbeat.hpp"
#include "idle.hpp"
#include "inbox.hpp"
#include "run.hpp"
#include "stream.hpp"
#include "task.hpp"
#include "trace.hpp"

namespace flywheel::detail {

/// The announcement to all workers: {epoch:32 | slot of a collective run:16 | launch to stop:16}. Only the inbox poller
/// writes it. Each new epoch calls all workers: to leave, if the stop field names their launch, else to the collective run.
FLYWHEEL_TASK constexpr std::uint64_t announcement_word(std::uint32_t epoch, std::uint32_t run, std::uint32_t stop) {
  return (std::uint64_t{epoch} << 32) | (std::uint64_t{run & 0xffff} << 16) | (stop & 0xffff);
}
FLYWHEEL_TASK constexpr std::uint32_t announcement_epoch(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }
FLYWHEEL_TASK constexpr std::uint32_t announcement_run(std::uint64_t word) { return (word >> 16) % 0x8000; }
FLYWHEEL_TASK constexpr std::uint32_t announcement_stop(std::uint64_t word) { return word & 0xffff; }
/// Added to the run's slot: workers that are to leave wait for each other first, see wait_for_assembly(). Where no launch is to
/// stop they need not any more.
inline constexpr std::uint32_t kAssemble = 0x8000;
FLYWHEEL_TASK constexpr bool announcement_assembles(std::uint64_t word) { return (word >> 16) & kAssemble; }

inline constexpr std::uint32_t kMaxRunSlots = 1u << 15;
inline constexpr std::uint32_t kLaunchNumbers = 65534;  // even: odd and even numbers take turns, see ControlWords::first_epoch

/// The state that the inbox poller keeps from one launch of the kernel to the next.
struct InboxPollerState {
  std::uint64_t next_entry;  // number of the next inbox entry to read
  std::uint64_t admitted;    // runs admitted
  std::uint64_t joined;      // collective runs announced, and announced again after a suspension
  std::uint32_t epoch;       // announcements to all workers
  std::uint32_t collective;  // slot of the collective run that was announced last
};

/// The words that idle workers poll. They share one cache line, so one poll is one request to L2.
struct BroadcastWords {
  std::int64_t queued[kPriorities];  // for each priority: tokens of the ready queue and runs with roots left, see kRootedRun
  std::uint64_t announcement;        // see announcement_word()
  std::uint64_t abort;               // non-zero: the runtime is aborted
};

/// Passes over shares between two boundaries of a phased run whose stages go to whoever comes for them, see WarpRing.
inline constexpr std::uint32_t kSharedPasses = 8;

/// Shared words in device memory. All are zero at the first launch, except the token count of the spawn pool.
struct ControlWords {
  alignas(128) BroadcastWords broadcast;
  Padded<std::int64_t> pooled;            // tokens of the pool of spawn records
  Padded<std::uint64_t> barrier;          // the word of the GridBarrier
  Padded<std::uint64_t> meetings;         // the same, of calls of grid_sync(): see cross_boundary()
  Padded<std::uint64_t> finished;         // runs completed
  Padded<std::uint64_t> collective_ends;  // collective runs that have ended or were suspended, see leave_collective()
  Padded<std::uint64_t> assembled;        // {epoch:32 | workers that wait for the others to leave:32}, see suspend.hpp
  Padded<std::uint64_t> compiled_passes;  // passes of all compiled runs that have ended; written by their leaders. For stamps
  Padded<std::uint64_t> shared_passes[2 * kSharedPasses];  // groups of stages taken, of each pass; zero between runs
  alignas(128) std::uint64_t idle_bits[kIdleWords];        // the bits of the IdleSet
  alignas(128) std::uint64_t root_bits[kPriorities][kMaxRunSlots / 64];  // runs with roots left, see roots.hpp
  alignas(128) InboxPollerState poller;
  // The epoch at the begin of a launch, in words that successive launches use in turn: [launch % 2]. The poller of one launch
  // writes the word of the next one, so a worker that starts late does not take the epoch that tells it to leave for an old
  // one.
  std::uint32_t first_epoch[2];
};

/// A worker's counters. Only the worker adds to them, relaxed; the host copies them for Runtime::stats().
struct alignas(128) WorkerStats {
  std::uint64_t tasks;    // bodies run
  std::uint64_t skipped;  // tasks not run: a predecessor failed or the run was cancelled
  std::uint64_t kept;     // successors that the worker ran itself, without a queue
  std::uint64_t queued;   // tasks popped from a queue
  std::uint64_t handed;   // items that arrived in the mailbox or the direct slot
  std::uint64_t polls;    // polls while idle
};

/// Sizes, limits and pointers. A plain handle: the host owns the memory.
struct DeviceState {
  std::uint32_t workers;
  std::uint32_t run_slots;        // of runs that the dispatcher admits
  std::uint32_t single_slots;     // of single tasks (host/single): run slots behind those
  std::uint32_t result_bytes;     // for each run slot
  std::uint32_t stream_capacity;  // cells for each run slot
  std::uint32_t queue_capacity;   // slots for each priority
  std::uint32_t queue_room;       // of these, for the tasks of runs and spawned ones; the rest is for single tasks
  std::uint32_t spawn_capacity;
  std::uint32_t spawn_base;      // first record of the spawn pool in the record arena
  std::uint32_t inline_base;     // first of the records that came with a message: one a slot, behind the spawn pool
  std::uint32_t batch_base;      // first record of the batch blocks, behind those: kBatchTasks each
  std::uint32_t share_shift;     // a worker takes 1 / 2^share_shift of the queued tasks; 2^share_shift >= 2 * workers
  std::uint32_t keep_successor;  // 0: every ready task goes through a mailbox or a queue (for measurements)
  std::uint32_t inbox_capacity;
  std::uint32_t scratch_bytes;
  std::uint32_t launch;           // number of this launch of the kernel, 1 to kLaunchNumbers
  std::uint64_t spin_budget_ns;   // of a wait for another worker
  std::uint64_t phase_budget_ns;  // of a wait in a collective run: longer, because the others may be in a long task
  std::uint32_t page_count;       // pages of shared memory for operands, see operands.hpp
  std::uint32_t page_window;      // most pages in flight at once
  std::uint32_t page_ticks;       // least ticks of the worker's clock between two page fetches; 0: no limit
  std::uint32_t bulk_copies;      // 0: pages are fetched with cp.async, as on GPUs before Hopper
  std::uint64_t assembly_ns;      // for which workers wait for each other to leave, see suspend.hpp
  std::uint64_t check_ns;         // limit of block.spin() in checked runs, see device/compiled/checked.cuh; 0: not checked

  // Device memory.
  ControlWords* control;
  Mailbox* mailboxes;
  QueueWords* queue_words;     // kPriorities ready queues, then the pool of spawn records
  std::uint64_t* queue_slots;  // kPriorities x queue_capacity, then spawn_capacity
  RunState* runs;
  ExecRecord* execs;
  TaskRecord* records;
  Edge* edges;
  WorkerStats* stats;
  TraceBuffers trace;
  Padded<std::uint64_t>* progress;  // one a worker: it changes as the worker makes progress, see show_progress()

  // Host memory that the device reads and writes.
  InboxEntry* inbox;
  std::uint64_t* inbox_consumed;
  std::uint64_t* calls_off;                // suspensions that the inbox poller has called off
  CompletionSlot* completions;             // one a run slot
  unsigned char* params;                   // run_slots x kParamBytes
  unsigned char* results;                  // run_slots x result_bytes
  StreamCell* stream_cells;                // run_slots x stream_capacity
  Padded<std::uint64_t>* stream_consumed;  // one a run slot
  TaskRecord* batch_records;               // kBatchBlocks x kBatchTasks, on their way to the record arena, see task_list.hpp
  Heartbeat* heartbeats;                   // one a worker, then one for the inbox poller
  WaitReport* reports;                     // likewise
  std::uint64_t* host_awake_ns;            // the watchdog's clock: it stops while the host's process is stopped; never 0.
                                           // Null in drain mode, where a launch may block the host
};

/// A run of a chain whose task has ended, and its list of followers when the worker went on with the only one.
struct EndedRun {
  std::uint64_t word;  // for the host
  std::uint64_t list;
  std::uint32_t slot;
};

/// What a worker brings back from AwaitedLoop.
struct AwaitedTurn {
  std::uint64_t item;   // what the worker keeps, or kEmptyMailbox
  std::uint32_t ended;  // tasks that were finished
  bool has_next;        // a later one was started: the executor's `ahead`
};

/// The work that one worker holds between tasks: a batch popped from a queue, or a share of a run's roots. On a GPU it
/// lies in shared memory: local memory is read through L1, which every acquire empties.
struct LocalWork {
  std::uint64_t batch[8];  // items popped from a queue and not yet run
  std::uint32_t batch_next;
  std::uint32_t batch_size;
  std::uint32_t level;       // the priority of the batch or the roots; the worker never holds both
  std::uint32_t roots_next;  // the share of roots: positions [roots_next, roots_end) in the root list
  std::uint32_t roots_end;
  std::uint32_t roots_left;          // roots of that run that no worker had taken, when last read; 0: not known
  std::uint32_t roots_first_record;  // with the next three: a RootList
  std::uint32_t roots_first;
  std::uint16_t roots_slot;
  bool roots_dense;
  std::uint32_t urgent;                  // tasks popped because they were more urgent than the local work
  std::uint32_t sinks_done;              // sinks of one run, done but not reported: a later task reports them, see LongFinish
  std::uint32_t single_shares;           // the next shares that are single tasks, see take_singly()
  bool roots_open;                       // the run in `roots_slot` may have more roots to take
  bool roots_turn;                       // if a priority has roots and queued tasks, roots come first this time
  std::uint32_t epoch;                   // of the last announcement that this worker has followed
  Followers followers;                   // of the run that a task has just ended, see LongFinish
  ClaimedWorker planned;                 // to claim for the next successor; set when one is given away, see Finisher::expect()
  std::uint64_t ready[kPriorities][16];  // successors that became ready together
  AwaitedTurn awaited;                   // the last one
  std::uint32_t tasks, kept;             // of all such turns, which show_stats() has not added yet
  EndedRun chain[8];                     // runs whose tasks have ended, see Chain::end_runs()
};

/// Shows that a worker makes progress. One thread of the worker calls it after a task of a collective run and during a
/// long task of another run. Relaxed: pairs with the loads in total_progress() (runtime/base/wait.hpp), for which only
/// the change matters.
template <class P>
FLYWHEEL_TASK void show_progress(const DeviceState& dev, std::uint32_t worker) {
  if (dev.progress) P::device(dev.progress[worker].value).add(1, Order::relaxed);
}

/// The limit of a worker's waits in collective runs. It converts to a WaitContext only once a wait has lasted for a while:
/// loading all of these words first would delay the first poll.
struct PhaseWait {
  const DeviceState* dev;
  std::uint32_t worker;

  FLYWHEEL_TASK operator WaitContext() const {
    return {&dev->control->broadcast.abort,   dev->reports + worker, dev->phase_budget_ns, true, dev->progress,
            dev->progress ? dev->workers : 0, dev->host_awake_ns};
  }
};

/// Queues, rings, sets and limits of the device state, typed for one platform.
template <class P>
struct Views {
  const DeviceState& dev;

  FLYWHEEL_TASK Queue<P> ready(std::uint32_t priority) const {
    return {dev.control->broadcast.queued + priority, dev.queue_words + priority,
            dev.queue_slots + std::size_t{priority} * dev.queue_capacity, dev.queue_capacity};
  }
  FLYWHEEL_TASK Queue<P> spawn_pool() const {
    return {&dev.control->pooled.value, dev.queue_words + kPriorities,
            dev.queue_slots + std::size_t{kPriorities} * dev.queue_capacity, dev.spawn_capacity};
  }
  FLYWHEEL_TASK IdleSet<P> idle() const { return {dev.control->idle_bits, dev.mailboxes, dev.workers}; }
  FLYWHEEL_TASK Inbox<P> inbox() const { return {dev.inbox, dev.inbox_capacity, dev.inbox_consumed}; }
  FLYWHEEL_TASK Stream<P> stream(std::uint32_t run) const {
    return {dev.stream_cells + std::size_t{run} * dev.stream_capacity, &dev.stream_consumed[run].value, dev.stream_capacity};
  }
  /// The limit of a worker's waits in dynamic runs.
  FLYWHEEL_TASK WaitContext wait(std::uint32_t worker) const {
    return {&dev.control->broadcast.abort, dev.reports + worker, dev.spin_budget_ns, true, nullptr, 0, dev.host_awake_ns};
  }
  FLYWHEEL_TASK PhaseWait wait_for_phase(std::uint32_t worker) const { return {&dev, worker}; }
};

}  // namespace flywheel::detail
