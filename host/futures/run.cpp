#include "run.hpp"

#include "../base/back_off.hpp"
#include "../submit/completion.hpp"
#include "core.hpp"
#include "run_error.hpp"

namespace flywheel {
using namespace detail;

namespace {
using Clock = std::chrono::steady_clock;
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
  if (ended_well(dev, run) && !run.tracing) collect(dev, run);
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

/// Like drain(), unless another thread has the run's mutex: it drains then, or ends the run.
void Run::try_drain() {
  std::unique_lock stream(record_->mutex, std::try_to_lock);
  if (stream.owns_lock()) drain();
}

bool Run::wait_until(Clock::time_point limit) {
  for (BackOff back_off; !done(); back_off.pause()) {
    if (!back_off.now_and_then()) continue;
    if (Clock::now() > limit) return false;
    try_drain();
  }
  return true;
}

void Run::wait() {
  wait_until(Clock::time_point::max());
  throw_if_failed();
}

bool Run::wait_for(std::chrono::nanoseconds limit) { return wait_until(time_in(limit)); }

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
  return record_->tracing && record_->tracing->trace ? *record_->tracing->trace : none;
}

void Run::throw_if_failed() {
  const RunRecord& run = *record_;
  if (run.code == 0) return;
  throw_run_error(run.code, run.fault_task ? run.graph->task_name(run.fault_task - 1) : "", run.cause);
}

void Run::copy_result(std::uint64_t graph, std::uint32_t offset, void* to, std::size_t bytes) {
  wait();
  if (graph != record_->graph->graph_id)
    throw UsageError("this result belongs to a task of another graph: ask the run of that graph");
  if (offset + bytes > record_->results.size())
    throw UsageError("this result belongs to a task that was added after load(): load the graph again; or to another batch");
  std::memcpy(to, record_->results.data() + offset, bytes);
}

bool Run::next_value(std::uint64_t& bits, bool wait) {
  for (BackOff back_off;; back_off.pause()) {
    const bool over = done();  // read first: then all values that came before the end are in `streamed`
    {
      std::scoped_lock lock(record_->mutex);
      if (!over) drain();
      if (record_->streamed.take(bits)) return true;
    }
    if (over || !wait) return false;
  }
}

void Run::cancel() {
  record();
  core_->dispatcher.cancel(record_);
}

void Run::add_callback(std::shared_ptr<Callback> callback) {
  record();
  core_->dispatcher.listen(record_, core_->callbacks.listener(std::move(callback)));
}

void Run::let_stream_wait(CudaStream stream) {
  // Acquire: as in done(). Once the phase is not `waiting`, the run has its slot and generation. A run that ended
  // without a slot has generation 0, for which the stream does not wait. The limits of the runs before this one bound the loop.
  for (BackOff back_off; record().phase.load(std::memory_order_acquire) == RunPhase::waiting;) back_off.pause();
  const CompletionSlot& slot = core_->memory.dev().completions[record_->slot];
  // The upper half of the completion word is the generation, which only increases.
  const auto* generation = reinterpret_cast<const std::uint32_t*>(&slot.word) + 1;
  core_->engine->make_stream_wait(stream, generation, record_->generation);
}

}  // namespace flywheel
