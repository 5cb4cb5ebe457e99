// The device state: every word the workers, the inbox poller and the host share, as one plain struct passed by value to the kernel.
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

namespace flywheel {

/// What the inbox poller tells every worker: {phased run epoch:32 | its run slot:16 | launch to stop:16}. One writer, the
/// inbox poller. The stop sign names the launch it is meant for, so one left over from the last park stops nobody.
FLYWHEEL_TASK constexpr std::uint64_t announcement_word(std::uint32_t epoch, std::uint32_t run, std::uint32_t stop) {
  return (std::uint64_t{epoch} << 32) | (std::uint64_t{run & 0xffff} << 16) | (stop & 0xffff);
}
FLYWHEEL_TASK constexpr std::uint32_t announcement_epoch(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }
FLYWHEEL_TASK constexpr std::uint32_t announcement_run(std::uint64_t word) { return (word >> 16) & 0xffff; }
FLYWHEEL_TASK constexpr std::uint32_t announcement_stop(std::uint64_t word) { return word & 0xffff; }

inline constexpr std::uint32_t kMaxRunSlots = 1u << 15;

/// The inbox poller's memory across parks of the kernel.
struct InboxPollerState {
  std::uint64_t next_entry;  // in the inbox
  std::uint64_t admitted;    // runs
  std::uint32_t epoch;       // phased runs announced
  std::uint32_t parks;
};

/// What idle workers keep an eye on, on one line: one look is one request to L2.
struct BroadcastWords {
  std::int64_t queued[kPriorities];  // of each level: tokens of the ready queue, and runs with roots left, see kRootedRun
  std::uint64_t announcement;
  std::uint64_t abort;
};

/// Device memory, zero at first launch except for mailboxes and queues.
struct ControlWords {
  alignas(128) BroadcastWords broadcast;
  Padded<std::int64_t> pooled;           // the token count of the pool of spawn records
  Padded<std::uint64_t> barrier;  // see GridBarrier
  Padded<std::uint64_t> finished;        // runs completed
  Padded<std::uint64_t> compiled_passes; // of all compiled runs that have ended; by their leaders. See stamped.hpp
  alignas(128) std::uint64_t idle_bits[kIdleWords];
  alignas(128) std::uint64_t root_bits[kPriorities][kMaxRunSlots / 64];  // runs with roots left, see roots.hpp
  alignas(128) InboxPollerState poller;
};

/// What a worker counts. One writer, the worker; relaxed stores; read by the host at leisure.
struct alignas(128) WorkerStats {
  std::uint64_t tasks;    // bodies run
  std::uint64_t skipped;  // not run: a predecessor failed or the run was cancelled
  std::uint64_t kept;     // successors kept, no queue involved
  std::uint64_t queued;   // taken from a queue
  std::uint64_t handed;   // found in the mailbox or on the direct slot
  std::uint64_t polls;    // idle looks
};

/// Plain handle to everything. The host owns the memory behind it (host/kernel/device_state_memory).
struct DeviceState {
  std::uint32_t workers;
  std::uint32_t run_slots;
  std::uint32_t result_bytes;     // for each run slot
  std::uint32_t stream_capacity;  // cells for each run slot
  std::uint32_t queue_capacity;   // slots for each priority
  std::uint32_t spawn_capacity;
  std::uint32_t spawn_base;       // first record of the spawn pool in the record arena
  std::uint32_t share_shift;      // a worker takes 1 / 2^share_shift of what is queued: at least twice as many as workers
  std::uint32_t keep_successor;   // 0: every ready task goes through a mailbox or queue (for measurements)
  std::uint32_t inbox_capacity;
  std::uint32_t scratch_bytes;
  std::uint32_t launch;           // 1..65535: which launch of the kernel this is
  std::uint32_t phased_before;    // phased runs announced before this launch
  std::uint64_t spin_budget_ns;
  std::uint64_t phase_budget_ns;  // at a grid barrier the others may be in the middle of a long task
  std::uint32_t page_count;       // pages of shared memory for operands, see operands.hpp
  std::uint32_t page_window;      // pages that may be under way at once
  std::uint32_t page_ticks;       // of the worker's clock, from asking for one page to the next; 0: at once
  std::uint32_t bulk_copies;      // 0: pages come by cp.async, as on GPUs before Hopper
  std::uint64_t check_ns;         // checked runs, see device/checked.cuh: how long block.spin() may take; 0: not checked

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
  Padded<std::uint64_t>* progress;  // of each worker: tasks of collective runs that it is through with, and long ones of others

  // Host memory that the device reads and writes.
  InboxEntry* inbox;
  std::uint64_t* inbox_consumed;
  CompletionSlot* completions;
  unsigned char* params;   // run_slots x kParamBytes
  unsigned char* results;  // run_slots x result_bytes
  StreamCell* stream_cells;
  Padded<std::uint64_t>* stream_consumed;
  Heartbeat* heartbeats;   // one a worker, then one for the inbox poller
  WaitReport* reports;     // likewise
  std::uint64_t* host_awake_ns;  // for how long the host has looked after this runtime; stands while its process is stopped.
                                 // Never 0. Null in drain mode: there a launch may hold the host up
};

/// What a worker's loop keeps between tasks. On the GPU it lies in shared memory: what the compiler puts in local
/// memory is read through L1, which every acquire empties.
struct LocalWork {
  std::uint64_t batch[8];  // popped from a queue, not yet run
  std::uint32_t batch_next;
  std::uint32_t batch_size;
  std::uint32_t level;       // the priority of what is in hand: a batch or roots, never both
  std::uint32_t roots_next;  // the share of roots in hand: positions in the root list
  std::uint32_t roots_end;
  std::uint32_t roots_left;  // roots of that run that nobody had taken, when last seen; 0: not known
  std::uint32_t roots_first_record;  // with the next three, a RootList
  std::uint32_t roots_first;
  std::uint16_t roots_slot;
  bool roots_dense;
  std::uint32_t urgent;      // tasks popped that were more urgent than what was in hand
  std::uint32_t sinks_done;  // of one run, and not told: the task behind them does, see Finisher
  std::uint32_t single_shares;  // so many shares to come are single tasks, see take_singly()
  bool roots_open;           // there may be more roots of the run in `roots_slot` to take
  bool roots_turn;           // where a level has both, roots go before queued tasks this time
  std::uint32_t epoch;       // phased runs this worker has joined or skipped
  std::uint64_t ready[kPriorities][16];  // successors made ready together
};

/// One thread of a worker, after a task of a collective run, and in a long one of another. Relaxed: it only has to move.
template <class P>
FLYWHEEL_TASK void show_progress(const DeviceState& dev, std::uint32_t worker) {
  if (dev.progress) P::device(dev.progress[worker].value).add(1, Order::relaxed);
}

/// How a worker waits in collective runs. Turns into a WaitContext when a wait has gone on for a while: looking all of
/// it up at first would hold up the first look at what is waited for.
struct PhaseWait {
  const DeviceState* dev;
  std::uint32_t worker;

  FLYWHEEL_TASK operator WaitContext() const {
    return {&dev->control->broadcast.abort, dev->reports + worker, dev->phase_budget_ns, true, dev->progress,
            dev->progress ? dev->workers : 0, dev->host_awake_ns};
  }
};

/// Typed views of the device state for one platform.
template <class P>
struct Views {
  const DeviceState& dev;

  FLYWHEEL_TASK Queue<P> ready(std::uint32_t priority) const {
    return {dev.control->broadcast.queued + priority, dev.queue_words + priority, dev.queue_slots + std::size_t{priority} * dev.queue_capacity,
            dev.queue_capacity};
  }
  FLYWHEEL_TASK Queue<P> spawn_pool() const {
    return {&dev.control->pooled.value, dev.queue_words + kPriorities, dev.queue_slots + std::size_t{kPriorities} * dev.queue_capacity,
            dev.spawn_capacity};
  }
  FLYWHEEL_TASK IdleSet<P> idle() const {
    return {dev.control->idle_bits, dev.mailboxes, dev.workers};
  }
  FLYWHEEL_TASK GridBarrier<P> barrier() const { return {&dev.control->barrier.value, dev.workers}; }
  FLYWHEEL_TASK Inbox<P> inbox() const { return {dev.inbox, dev.inbox_capacity, dev.inbox_consumed}; }
  FLYWHEEL_TASK Stream<P> stream(std::uint32_t run) const {
    return {dev.stream_cells + std::size_t{run} * dev.stream_capacity, &dev.stream_consumed[run].value,
            dev.stream_capacity};
  }
  FLYWHEEL_TASK WaitContext wait(std::uint32_t worker) const {
    return {&dev.control->broadcast.abort, dev.reports + worker, dev.spin_budget_ns, true, nullptr, 0, dev.host_awake_ns};
  }
  FLYWHEEL_TASK PhaseWait wait_for_phase(std::uint32_t worker) const { return {&dev, worker}; }
};

}  // namespace flywheel
