#include "run.hpp"

#include "../submit/completion.hpp"
#include "core.hpp"

namespace flywheel {
using namespace detail;

namespace {
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kSpins = 2000;  // turns without a pause: a few microseconds

/// Backs off between two polls: spins for a few microseconds, within which most runs end, then yields, then sleeps.
void back_off(std::uint32_t turn) {
  if (turn < kSpins) return;
  if (turn < 4000) return std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::microseconds(turn < 8000 ? 20 : 100));
}
}  // namespace

RunRecord& Run::record() {
  if (!record_) throw UsageError("this Run is empty: take the one that Runtime::submit() returns");
  core_->require_ours();
  return *record_;
}

bool Run::done() {
  RunRecord& run = record();
  // Acquire: pairs with the release stores of `phase` in Dispatcher::start(), RunRecord::end_early() and collect(). If
  // it is `live`, the run's slot and generation are visible; if it is `done`, the outcome is.
  const RunPhase phase = run.phase.load(std::memory_order_acquire);
  if (phase != RunPhase::live) return phase == RunPhase::done;
  const DeviceState& dev = core_->memory.dev();
  if (!is_complete(dev, run)) return false;
  // A run that ended well is collected here. All others are collected in retire(), under the dispatcher's mutex: the
  // dispatcher may have cancelled or aborted the run and knows the cause, and a trace is copied through its engine.
  if (ended_well(dev, run) && !run.traced) collect(dev, run);
  core_->dispatcher.retire(record_);
  return true;
}

/// Moves what the run has streamed so far out of its slot, so that its tasks do not wait for room. The caller holds
/// run.mutex.
void Run::drain() {
  // Acquire: as in done(). While the mutex is held the phase stays `live`, so the slot's stream still belongs to this
  // run.
  if (record_->phase.load(std::memory_order_acquire) == RunPhase::live)
    drain_stream(core_->memory.dev(), *record_, core_->options.stream_unread);
}

bool Run::wait_until(Clock::time_point limit) {
  for (std::uint32_t turn = 0; !done(); ++turn) {
    const bool now_and_then = turn < kSpins ? turn % 512 == 511 : turn % 8 == 7;
    if (now_and_then) {
      if (Clock::now() > limit) return false;
      std::unique_lock stream(record_->mutex, std::try_to_lock);
      if (stream.owns_lock()) drain();
    }
    back_off(turn);
  }
  return true;
}

void Run::wait() {
  wait_until(Clock::time_point::max());
  throw_if_failed();
}

bool Run::wait_for(std::chrono::nanoseconds limit) {
  const auto now = Clock::now();
  const auto wait = std::chrono::duration_cast<Clock::duration>(limit);
  return wait_until(wait < Clock::time_point::max() - now ? now + wait : Clock::time_point::max());
}

Status Run::status() {
  wait_until(Clock::time_point::max());
  return RunError(record_->code, "").status();
}

std::uint32_t Run::iterations() {
  wait_until(Clock::time_point::max());
  return record_->iterations;
}

const Trace& Run::trace() {
  wait_until(Clock::time_point::max());
  static const auto& none = *new Trace;  // never destroyed: static objects may use their runs while they are destroyed
  return record_->trace ? *record_->trace : none;
}

void Run::throw_if_failed() {
  const RunRecord& run = *record_;
  if (run.code == 0) return;
  const StatusText text = describe(static_cast<Status>(run.code));
  std::string message = text.what;
  if (run.code >= kUserStatus) message += ", " + std::to_string(run.code - kUserStatus);
  if (run.fault_task) message += ", in " + run.graph->task_name(run.fault_task - 1);
  if (!run.cause.empty()) message += " (" + run.cause + ")";
  throw RunError(run.code, message + ". Remedy: " + text.remedy + ".");
}

void Run::copy_result(std::uint64_t graph, std::uint32_t offset, void* to, std::size_t bytes) {
  wait();
  if (graph != record_->graph->graph_id)
    throw UsageError("this result belongs to a task of another graph: ask the run of that graph");
  if (offset + bytes > record_->results.size())
    throw UsageError("this result belongs to a task that was added after load(): load the graph again");
  std::memcpy(to, record_->results.data() + offset, bytes);
}

bool Run::next_value(std::uint64_t& bits, bool wait) {
  for (std::uint32_t turn = 0;; ++turn) {
    const bool over = done();  // read first: then all values that came before the end are in `streamed`
    {
      std::scoped_lock lock(record_->mutex);
      if (!over) drain();
      if (record_->streamed.take(bits)) return true;
    }
    if (over || !wait) return false;
    back_off(turn);
  }
}

void Run::cancel() {
  record();
  core_->dispatcher.cancel(record_);
}

void Run::let_stream_wait(CudaStream stream) {
  // Acquire: as in done(). Once the phase is not `waiting`, the run has its slot and generation. A run that ended
  // without a slot has generation 0, for which the stream does not wait. The limits of the runs before this one bound the loop.
  for (std::uint32_t turn = 0; record().phase.load(std::memory_order_acquire) == RunPhase::waiting; ++turn) back_off(turn);
  const CompletionSlot& slot = core_->memory.dev().completions[record_->slot];
  // The upper half of the completion word is the generation, which only increases.
  const auto* generation = reinterpret_cast<const std::uint32_t*>(&slot.word) + 1;
  core_->engine->make_stream_wait(stream, generation, record_->generation);
}

}  // namespace flywheel
