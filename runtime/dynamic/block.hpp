// What a task body can ask of its block on any processor: run parameters, failure, streams, spawns, results. GpuBlock
// (device/block.cuh) and CpuBlock (cpu/block.hpp) derive from BlockCore and add threads, scratch memory and barriers.
#pragma once

#include <cstring>
#include <type_traits>

#include "../ready/completion.hpp"
#include "../ready/spawn_many.hpp"
#include "../records/param.hpp"

namespace flywheel::detail {

/// What a body asked for. 16 bytes: one load on the GPU. The threads of the block write it with relaxed atomics of
/// block scope; the worker reads it behind a barrier at which all of them arrive after the body (on a CPU on the same
/// thread).
struct alignas(16) Outcome {
  std::uint32_t code;     // 0, or why the task failed
  std::uint32_t control;  // ControlBits: what the body has asked of the graph
  std::uint32_t stop;     // StopBits: kStopCalled once the body has called stop(), kTracedBody
  std::uint32_t iteration;

  /// It neither failed nor asked for anything, and is not traced.
  FLYWHEEL_TASK bool is_plain() const { return !(code | control | stop); }
};

/// What BlockCore knows of the running task. It lies where all threads of the block can reach it: on a GPU in shared
/// memory.
struct TaskContext {
  const DeviceState* dev;
  const TaskHeader* header;
  RunState* run;
  Item item;
  std::uint32_t worker;
  Outcome outcome;
  std::uint32_t stamp = 0;                // compiled runs: the stamp of this pass, see stamped.hpp
  const unsigned char* params = nullptr;  // the run's parameters, if there is a copy nearer than in `run`
};

/// For scratch() of all blocks.
template <class T>
FLYWHEEL_TASK constexpr void check_scratch() {
  static_assert(alignof(T) <= 16, "scratch memory is aligned to 16 bytes: take bytes, and align within them");
}

/// The part of a block that is the same on all processors. `P` is the platform of one thread of the block, `List` the
/// kernel's list of task types.
template <class P, class List>
class BlockCore {
 public:
  FLYWHEEL_TASK explicit BlockCore(TaskContext& context) : context_(&context) {}

  /// Fails this task with a code of the program's own. Tasks that depend on it are skipped and its run reports the
  /// code; other runs go on. The call does not end the body. Any thread may call; the first code counts. A code above
  /// kMostUserCode, for example a negative number, is reported as kMostUserCode.
  FLYWHEEL_TASK void fail(std::uint32_t code) { fail_with(kUserStatus + (code < kMostUserCode ? code : kMostUserCode)); }

  /// True once the run was cancelled or the runtime was aborted. A long body polls it from time to time and returns
  /// early. A task that got `true` counts as cancelled, whatever it has computed by then.
  FLYWHEEL_TASK bool cancelled() {
    // Acquire; on a GPU both relaxed, and an acquire fence once one is set. `cancelled` pairs with MessageHandler::cancel()
    // and, in a gang of a compiled run, with the release in signal_done(): the cause of a failure is recorded before this
    // task's own code, and the body sees what the task that failed wrote. `abort` pairs with report_wait() and the host.
    const bool yes = P::device(context_->run->line.cancelled).load(P::kBeforeAcquire) ||
                     P::device(context_->dev->control->broadcast.abort).load(P::kBeforeAcquire);
    if (!yes) return false;
    P::acquire_fence();
    fail_with(static_cast<std::uint32_t>(Status::cancelled));
    return true;
  }

  /// The value that this run was submitted with.
  template <class T>
  FLYWHEEL_TASK T param(Param<T> p) const {
    static_assert(std::is_trivially_copyable_v<T>, "a run parameter must be trivially copyable");
    T value;
    const unsigned char* params = context_->params ? context_->params : context_->run->params;
    constexpr std::size_t kAligned = alignof(T) < 16 ? alignof(T) : 16;  // by Graph::param(), in memory that is aligned to 16
    memcpy(&value, __builtin_assume_aligned(params + p.offset, kAligned), sizeof(T));
    return value;
  }

  /// Streams a value of at most 8 bytes to the host while the run goes on. One thread calls; each call sends one value.
  /// It waits while Options::stream_capacity values are unread. False, and the task fails with Status::stream_stalled,
  /// if that lasts longer than Options::spin_budget or the runtime is aborted. A single task, which has no run, fails with
  /// Status::single_emits.
  template <class T>
  FLYWHEEL_TASK bool emit(T value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8, "a streamed value is at most 8 plain bytes");
    std::uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(T));
    const Views<P> views{*context_->dev};
    if (context_->item.run >= context_->dev->run_slots) {
      fail_with(static_cast<std::uint32_t>(Status::single_emits));
      return false;
    }
    const bool sent = views.stream(context_->item.run).write(*context_->run, bits, views.wait(context_->worker));
    if (!sent) fail_with(static_cast<std::uint32_t>(Status::stream_stalled));
    return sent;
  }

  /// Adds one more task to this run; each calling thread spawns one. A task that depends on this one also waits for the
  /// spawned one, and sees what both wrote. `task` is copied.
  ///
  /// The spawned body happens after: what this thread wrote before the call; what other threads of the block wrote before a
  /// sync() that precedes it; all that happened before this body, such as its predecessors and what those spawned. It may
  /// begin before the call returns, so it cannot rely on later writes, nor on those of its siblings. It does not see this
  /// block's scratch memory.
  ///
  /// False if the spawn pool is full, that is, if Options::spawn_capacity spawned tasks (rounded up to a power of two) have
  /// not ended: do the work here, or raise it. In phased and compiled runs it returns false and the task fails with
  /// Status::spawn_in_phase.
  template <class Task>
  [[nodiscard]] FLYWHEEL_TASK bool spawn(const Task& task, Priority priority = Priority::inherit) {
    check_spawned<Task>();
    if (!may_spawn()) return false;
    const std::uint32_t asked = control();
    const bool done = spawn_task<P>(*context_->dev, context_->worker, context_->item.run, *context_->header, asked,
                                    List::template index_of<Task>(), &task, sizeof(Task), priority);
    if (done && !(asked & kContinues)) ask(kHasSpawned);
    return done;
  }

  /// From here on, what this body spawns comes before `task`, and `task` takes this task's place in the graph: it begins when
  /// this body and all that is spawned from now on have ended, with what those spawn in turn, and whatever depends on this
  /// task waits for it instead. It sees what all of them wrote, and is skipped if one of them failed. One thread calls, once;
  /// the others spawn behind a sync(). `task` is copied. A task that names its own type goes on in a loop.
  ///
  /// False, and nothing has changed, if the spawn pool is full: see spawn(). A second call fails the task with
  /// Status::continued_twice.
  template <class Task>
  [[nodiscard]] FLYWHEEL_TASK bool then(const Task& task, Priority priority = Priority::inherit) {
    check_spawned<Task>();
    if (!may_spawn()) return false;
    if (control() & kContinues) {
      fail_with(static_cast<std::uint32_t>(Status::continued_twice));
      return false;
    }
    const std::uint32_t record = take_continuation<P>(*context_->dev, context_->worker, *context_->header,
                                                      List::template index_of<Task>(), &task, sizeof(Task), priority);
    if (record == kNoRecord) return false;
    P::block(context_->outcome.control).store(kContinues | record, Order::relaxed);  // relaxed: see Outcome
    return true;
  }

  /// Of the successors that were added with when(this task, n), those run whose n a thread of this body has chosen, see
  /// flywheel::when(); the others are passed over. No effect where no successor names a case, nor in a spawned task; where a
  /// task has a continuation, that one chooses.
  FLYWHEEL_TASK void choose(std::uint32_t n) {
    if (n < kMostCases && !(control() & kContinues)) ask(kFirstCase << n);
  }
  /// The last task of a Graph::loop(): the loop runs once more, from its first task on, unless this task fails or the run is
  /// cancelled. Any thread may call. In other tasks it fails the task with Status::no_loop.
  FLYWHEEL_TASK void again() {
    if (!(context_->header->flags & kTaskLoops)) fail_with(static_cast<std::uint32_t>(Status::no_loop));
    else if (!(control() & kContinues)) ask(kAgain);
  }

  /// The index of this pass of a repeated run, from 0.
  FLYWHEEL_TASK std::uint32_t iteration() const { return context_->outcome.iteration; }
  /// Compiled runs: the stamp of the words that this pass writes, see stamped.hpp.
  FLYWHEEL_TASK std::uint32_t stamp() const { return context_->stamp; }
  /// Waits of early tasks, see operands.hpp. All other bodies begin after their predecessors are done, so here they
  /// return at once; GpuBlock replaces them.
  FLYWHEEL_TASK static constexpr bool await() { return true; }
  FLYWHEEL_TASK static constexpr bool await_sent() { return true; }
  FLYWHEEL_TASK static constexpr void sent() {}

  /// Ends a repeated run after this iteration. Any thread may call.
  FLYWHEEL_TASK void stop() { P::block(context_->outcome.stop).set(kStopCalled, Order::relaxed); }  // relaxed: see Outcome

  /// Library use, one thread: counts an arrival of this run at `word`, one of so many, and says whether it is the last; then
  /// the word is as new. Arrivals that a run which was cut short has left there do not count.
  FLYWHEEL_TASK bool arrives_last(std::uint64_t& word, std::uint32_t of) const {
    const RunConstants& run = context_->run->line.constants;
    const std::uint64_t number = std::uint64_t{run.generation} << 16 | run.slot;  // no other run has it
    const auto arrivals = P::device(word);
    for (;;) {
      const std::uint64_t seen = arrivals.load(Order::relaxed);  // relaxed: the exchange below decides
      const std::uint64_t count = seen >> 16 == number ? (seen & 0xffff) + 1 : 1;
      // Release and acquire: pairs with this line in the other arrivals. All are read-modify-writes, so the last one acquires
      // what each of the others wrote before it came.
      if (arrivals.compare_exchange(seen, number << 16 | (count == of ? 0 : count), Order::acq_rel)) return count == of;
    }
  }

  /// The index of this worker, and the number of workers.
  FLYWHEEL_TASK std::uint32_t worker() const { return context_->worker; }
  FLYWHEEL_TASK std::uint32_t workers() const { return context_->dev->workers; }
  /// How many workers look for a task at this moment: a sign of whether spawning pays. A hint of one load for each 64 workers:
  /// others may take these workers meanwhile, and the worker beside the inbox poller is never among them.
  FLYWHEEL_TASK std::uint32_t idle_workers() const {
    const IdleSet<P> idle = Views<P>{*context_->dev}.idle();
    std::uint32_t count = 0;
    for (std::uint32_t word = 0; word < idle.words(); ++word) count += count_bits(idle.seen(word));
    return count;
  }

  /// Library use, see runtime/tree: where all lies, and a failure with a code of the library.
  FLYWHEEL_TASK const DeviceState& device_state() const { return *context_->dev; }
  FLYWHEEL_TASK void fail_of_library(Status status) { fail_with(static_cast<std::uint32_t>(status)); }

  /// Library use, see task_list.hpp: the record arena, and the publication of the run's roots by a task of the run.
  FLYWHEEL_TASK TaskRecord* records() const { return context_->dev->records; }
  FLYWHEEL_TASK void publish_own_roots() const {
    publish_roots<P>(*context_->dev, context_->worker, context_->run->line.constants);
  }

  /// Library use: stores a task's return value in the run's results, in host memory. One thread calls. A plain copy:
  /// the task's arrival and the release in end_run() order it for the host.
  template <class T>
  FLYWHEEL_TASK void write_result(const T& value) const {
    const std::uint32_t offset = context_->header->result_offset;
    if (offset == kNoResult) return;
    const DeviceState& dev = *context_->dev;
    unsigned char* of_run = dev.results + std::size_t{context_->item.run} * dev.result_bytes;
    unsigned char* at = offset == kResultInCompletion ? dev.completions[context_->item.run].result : of_run + offset;
    memcpy(at, &value, sizeof(T));
  }

 protected:
  template <class Task>
  static constexpr void check_spawned() {
    static_assert(std::is_trivially_copyable_v<Task> && sizeof(Task) <= kTaskArgBytes,
                  "a task type must be trivially copyable and fit kTaskArgBytes; keep larger data behind a pointer");
  }
  /// spawn_n() of the block that this is the core of.
  template <class Self, class Make>
  FLYWHEEL_TASK static std::uint32_t spawn_group(Self& self, std::uint32_t n, Make&& make, Priority priority) {
    using Task = std::remove_cvref_t<decltype(make(n))>;
    check_spawned<Task>();
    if (!self.may_spawn()) return 0;
    const TaskContext& context = *self.context_;
    const std::uint32_t asked = self.control();
    const Spawner from{*context.dev,
                       *context.header,
                       context.worker,
                       asked,
                       context.item.run,
                       priority,
                       static_cast<std::uint16_t>(List::template index_of<Task>())};
    const bool takes_place = !(asked & kContinues);
    // On a CPU worker make() may throw when tasks are spawned already, and the run waits for those, too.
    if (P::kNearMemory && n && takes_place) self.ask(kHasSpawned);
    const std::uint32_t done = GroupSpawner<P, Self>(self, from)(n, make);
    if (done && takes_place && self.leader()) self.ask(kHasSpawned);
    return done;
  }
  FLYWHEEL_TASK bool may_spawn() {
    const bool may = !(context_->run->line.constants.flags & kAllWorkers);
    if (!may) fail_with(static_cast<std::uint32_t>(Status::spawn_in_phase));  // such a run would not wait for it
    return may;
  }
  // Relaxed, both: see Outcome.
  FLYWHEEL_TASK std::uint32_t control() const { return P::block(context_->outcome.control).load(Order::relaxed); }
  FLYWHEEL_TASK void ask(std::uint32_t bits) { P::block(context_->outcome.control).set(bits, Order::relaxed); }

  FLYWHEEL_TASK void fail_with(std::uint32_t code) {
    // Relaxed: the first code stays; for its reader see Outcome.
    P::block(context_->outcome.code).compare_exchange(0, code, Order::relaxed);
  }

  TaskContext* context_;
};

}  // namespace flywheel::detail
