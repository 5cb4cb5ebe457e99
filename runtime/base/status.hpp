// Status codes: how a run ended and what the user can do about it. Tasks, workers and the host share them.
#pragma once

#include <cstdint>

#include "platform.hpp"

namespace flywheel {

/// 0 is success; 1 to 63 are the library's own codes. `block.fail(code)` ends a run with `kUserStatus` + code.
enum class Status : std::uint32_t {
  ok = 0,
  cancelled = 1,
  task_failed = 2,
  scratch_exhausted = 3,
  stream_stalled = 4,
  spin_budget_spent = 5,
  aborted = 6,
  device_lost = 7,
  worker_stalled = 8,
  workers_missing = 9,
  spawn_in_phase = 10,
  operands_misnamed = 11,
  operands_kept = 12,
  operands_overdrawn = 13,
  operands_overrun = 14,
  operands_hoarded = 15,
  handoffs_mismatched = 16,
  sent_twice = 17,
  words_missing = 18,
  operands_renewed = 19,
  launch_refused = 20,
  task_threw = 21,
  single_emits = 22,
  predecessor_failed = 23,
  tree_full = 24,
  continued_twice = 25,
  no_loop = 26,
  grid_sync_missed = 27,
  grid_sync_alone = 28,
};

inline constexpr std::uint32_t kUserStatus = 64;
inline constexpr std::uint32_t kMostUserCode = 0xffffffffu - kUserStatus;

/// The text of a code for the user: what happened and the remedy.
struct StatusText {
  const char* what;
  const char* remedy;
};

namespace detail {
/// The texts of what a part of a tuned task did wrong.
constexpr StatusText describe_part(Status status) {
  switch (status) {
    case Status::operands_misnamed:
      return {"a task's dependents() name more or fewer pages than its dependent_pages() says",
              "add up pages_of() each piece in dependent_pages()"};
    case Status::operands_kept:
      return {"a task took pages of operands and never gave them back",
              "call consumer_release() for each page that consumer_wait() gave, on every way out"};
    case Status::operands_overdrawn:
      return {"a task gave back a page of operands that it did not hold",
              "call consumer_release() once for each page taken, not more"};
    case Status::operands_overrun:
      return {"a task waited for another page of operands after consumer_wait() had returned null",
              "take as many pages as operand_bytes() and dependent_pages() say, or end the loop at the first null"};
    case Status::operands_hoarded:
      return {"a task waits for a page of operands whose place it holds itself",
              "give pages back before you take more, oldest first, or raise Options::operand_pages"};
    case Status::operands_renewed:
      return {"a task called renew() after it had taken a page of operands", "call renew() before the first page only"};
    case Status::handoffs_mismatched:
      return {
          "a task's warps called producer_commit() without producer_acquire(), unequally often or after borrow_handoffs(), "
          "or its store part released what it had not waited for",
          "let every compute warp call producer_acquire() and then producer_commit() equally often, and consumer_release() "
          "once after each consumer_wait()"};
    case Status::sent_twice:
      return {"an early task called sent() more than once in a pass",
              "let one thread call block.sent(), once, after a block.sync() with all that have put words"};
    case Status::words_missing:
      return {"a task waited in block.spin() for longer than Options::check_budget",
              "see that the task before it puts all words, with block.stamp(), before it calls sent()"};
    default:
      return {"a task failed with a code that this library does not know", "build the program and the library from one source"};
  }
}
}  // namespace detail

/// The text of a code. Those of block.fail(), from kUserStatus on, share one.
constexpr StatusText describe(Status status) {
  if (static_cast<std::uint32_t>(status) >= kUserStatus)
    return {"a task failed with its own code", "look up the code in the task named here"};
  switch (status) {
    case Status::ok:
      return {"ok", ""};
    case Status::cancelled:
      return {"the run was cancelled", "submit it again if its results are still wanted"};
    case Status::task_failed:
      return {"a task called block.fail()", "look up the code in the task named here"};
    case Status::scratch_exhausted:
      return {"a task asked for more scratch memory than a block has", "raise Options::scratch_bytes"};
    case Status::stream_stalled:
      return {"a task could not stream a value because nobody read the earlier ones",
              "read the run's stream while it goes on, or raise Options::stream_unread or Options::stream_capacity"};
    case Status::spin_budget_spent:
      return {"a worker waited longer than Options::spin_budget for another worker",
              "see the wait report in the log: it names the word, what it held and what was expected"};
    case Status::aborted:
      return {"the runtime was shut down before the run ended", "wait for runs before shutdown()"};
    case Status::device_lost:
      return {"the GPU context is dead",
              "find the faulting task with Options::mode = Mode::drain under compute-sanitizer; only a new process gets a new "
              "context"};
    case Status::worker_stalled:
      return {"a task did not end within Options::stall_limit",
              "poll block.cancelled() in long loops, or raise Options::stall_limit"};
    case Status::spawn_in_phase:
      return {"a task of a phased or compiled graph called block.spawn() or block.then()",
              "the tasks of such a graph are fixed: load it without `compiled` and with after() in place of phases"};
    case Status::task_threw:
      return {"a task's body threw an exception",
              "catch it in the body and call block.fail(): a GPU has no exceptions, so the same body does not throw there"};
    case Status::single_emits:
      return {"a task that was submitted without a graph called block.emit()",
              "return its value instead, or load a graph with the task: the runs of graphs have a stream"};
    case Status::predecessor_failed:
      return {"a run that this one was to follow failed, so this one did not run",
              "see why that run failed, and submit both again"};
    case Status::tree_full:
      return {"the memory of a tree is full, or one of its nodes spawned more often than its kMostSpawns says",
              "give the Tree more bytes; or say kMostSpawns in the node's type, or spawn_n() many children at once"};
    case Status::continued_twice:
      return {"a task called block.then() twice", "call it once; the task that it names may call it again"};
    case Status::no_loop:
      return {"a task that ends no loop called block.again()", "name it as the last task in Graph::loop()"};
    case Status::grid_sync_missed:
      return {"a grid task's body called block.grid_sync() less often on some workers than on others",
              "call it equally often on all: not behind a condition that only some of them meet"};
    case Status::grid_sync_alone:
      return {"a task that is not part of a phased graph called block.grid_sync()",
              "add it with Graph::add_grid(), in a graph with phases"};
    case Status::workers_missing:
      return {"not all workers of the resident kernel started in time",
              "another program holds SMs: stop it, or start fewer workers with Options::workers; the kernel stays queued, so "
              "the run may be submitted again"};
    case Status::launch_refused:
      return {"the resident kernel could not be launched, though the device works",
              "remove the cause named here, or lower Options::workers, and start a new runtime"};
    default:
      return detail::describe_part(status);
  }
}

}  // namespace flywheel
