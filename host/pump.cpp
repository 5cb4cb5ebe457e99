#include "host/pump.hpp"

#include <algorithm>

#include "host/completion.hpp"
#include "host/core.hpp"
#include "host/error.hpp"
#include "host/log.hpp"

namespace flywheel {

namespace {
RunConstants message_of(const RunRecord& run) {
  const LoadedGraph& graph = *run.graph;
  RunConstants words = graph.constants;
  words.op = static_cast<std::uint32_t>(InboxOp::submit);
  words.slot = run.slot;
  words.generation = run.generation;
  words.repeat = run.repeat;
  if (run.packs) words.flags = kPhased | kPack;
  if (run.traced) words.flags |= kTraced;
  words.priority = run.priority;
  const auto bank = reinterpret_cast<std::uint64_t>(static_cast<std::uint64_t*>(graph.counters) +
                                                    std::size_t{run.bank} * graph.task_count);
  words.counters[0] = static_cast<std::uint32_t>(bank);
  words.counters[1] = static_cast<std::uint32_t>(bank >> 32);
  return words;
}
}  // namespace

Pump::Pump(Engine& engine, WorldMemory& memory, const Options& options)
    : engine_(engine), memory_(memory), world_(memory.world()), options_(options), watchdog_(memory.world(), options),
      line_(std::make_unique<Line>()), inbox_(memory.world()), live_(world_.run_slots),
      generations_(world_.run_slots, 0), stream_next_(world_.run_slots, 0) {
  for (std::uint32_t slot = world_.run_slots; slot-- > 0;) free_slots_.push_back(slot);
  thread_ = std::thread([this] { loop(); });
}

Pump::~Pump() {
  {
    Lock lock(mutex_);
    ending_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

// ---- in ----

void Pump::submit(RunPtr run) {
  for (std::uint32_t spins = 0; !try_submit(run); ++spins) detail::cpu_pause(spins);
}

bool Pump::try_submit(const RunPtr& run) {
  throw_if_closed();
  if (line_->length.load(std::memory_order_relaxed) >= options_.max_waiting) return false;
  Lock lock(mutex_, std::try_to_lock);
  const bool nobody_ahead = line_->length.load(std::memory_order_relaxed) == 0;
  if (!lock.owns_lock() || !nobody_ahead || !can_let_in(*run)) {
    if (lock.owns_lock()) lock.unlock();
    join_line(run);
    return true;
  }
  or_fail_everything(lock, [&] { let_in(lock, run); });
  ++counters_.direct;
  if (line_->asleep.load(std::memory_order_relaxed)) wake_.notify_one();
  return true;
}

void Pump::expect(const RunPtr& run) {
  Lock lock(mutex_);
  if (closed_) return finish(*run, end_status_, end_cause_);
  if (run->phase.load(std::memory_order_relaxed) != RunPhase::waiting) return;
  expected_.push_back(run);
  wake_.notify_one();
}

void Pump::submit_from_stream(RunPtr run) noexcept {
  join_line(std::move(run));  // the pump's thread lets it in, or turns it away: CUDA may not be called from here
}

void Pump::throw_if_closed() const {
  // Acquire: pairs with the release in fail_everything(): `lost_` is written before, and not again.
  if (!line_->closed.load(std::memory_order_acquire)) return;
  if (!lost_.empty()) throw DeviceError("cannot submit: " + lost_);
  throw UsageError("cannot submit: the runtime was shut down");
}

void Pump::join_line(RunPtr run) {
  line_->enqueue(std::move(run));
  // The pump sets `asleep` and then looks at the queue; we fill the queue and then look at `asleep`. Both seq_cst: one
  // of the two sees the other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!line_->asleep.load(std::memory_order_seq_cst)) return;
  Lock lock(mutex_);
  wake_.notify_one();
}

void Pump::let_in(const Lock&, const RunPtr& run) {
  std::erase(expected_, run);
  if (run->cancel_asked) return finish(*run, Status::cancelled, "it had not started");
  open_slot(*run);
  live_[run->slot] = run;
  ++live_count_;
  counters_.peak_live = std::max<std::uint64_t>(counters_.peak_live, live_count_);
  ++counters_.submitted;
  inbox_.write(message_of(*run));
  // Release: pairs with the acquires of phase in poll(), drain() and let_stream_wait(): the run has its slot.
  run->phase.store(RunPhase::live, std::memory_order_release);
  ensure_kernel();
}

void Pump::open_slot(RunRecord& run) {
  LoadedGraph& graph = *run.graph;
  run.slot = free_slots_.back();
  free_slots_.pop_back();
  run.generation = ++generations_[run.slot];
  run.bank = graph.free_banks.back();
  graph.free_banks.pop_back();
  run.stream_next = stream_next_[run.slot];
  if (!graph.params.empty())
    std::copy_n(run.params.begin(), graph.params.size(), world_.params + std::size_t{run.slot} * kParamBytes);
  if (graph.kind != GraphKind::dynamic) {
    all_workers_live_ = true;
  } else {
    live_tasks_ += graph.task_count;
    run.entry = reservation_.entered(graph.task_count);
  }
}

// ---- the pump's own thread ----

void Pump::loop() {
  const NoFarewells here;  // a run that came late may be all that is left of the runtime
  Lock lock(mutex_);
  while (!ending_) {
    or_fail_everything(lock, [&] {
      launch_if_due(lock);
      if (!turn(lock)) sleep(lock);
    });
  }
}

/// One round. False if there is nothing to do until somebody wakes us or time passes.
bool Pump::turn(Lock& lock) {
  take_finished(lock);
  const bool arrivals = line_->drain();
  if (!closed_) let_in(lock);
  else turn_away(lock);
  send_cancels();
  const auto now = Clock::now();
  // A run may have come and gone since the last turn: its program retires it.
  const bool busy = live_count_ || line_->length.load(std::memory_order_relaxed) || counters_.submitted != seen_submitted_;
  if (busy) last_busy_ = now;
  const bool spins = gets_on(arrivals, now) && line_->length.load(std::memory_order_relaxed);
  seen_submitted_ = counters_.submitted;
  if (now - last_check_ > std::chrono::milliseconds(1)) {
    last_check_ = now;
    check_kernel(lock);
    park_if_idle(lock);
  }
  if (!spins) return false;
  lock.unlock();  // others wait in line: go on at once, but let submitters and waiters at the lock
  std::this_thread::yield();
  lock.lock();
  return true;
}

/// True if somebody joined the line, was let in, streamed or ended a moment ago: then more is likely to happen soon.
bool Pump::gets_on(bool arrivals, Clock::time_point now) {
  constexpr std::chrono::microseconds kMoment{200};
  const bool changes = counters_.submitted != seen_submitted_ || counters_.completed != seen_ended_;
  if (arrivals || changes || streams_) last_progress_ = now;
  seen_ended_ = counters_.completed;
  streams_ = false;
  return now - last_progress_ < kMoment;
}

void Pump::sleep(Lock& lock) {
  if (launch_due_) return;
  if (line_->length.load(std::memory_order_relaxed)) return nap(lock);
  if (live_count_) {
    // Waiters see completions by themselves; we only tidy up behind them.
    wake_.wait_for(lock, std::chrono::microseconds(200));
    return;
  }
  line_->asleep.store(true, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with join_line()
  if (!line_->length.load(std::memory_order_relaxed) && !ending_) {
    constexpr std::chrono::milliseconds kLook{20};  // at the device, see check_kernel()
    if (resident_ && parking_) wake_.wait_for(lock, std::chrono::milliseconds(1));
    else if (!expected_.empty()) wake_.wait_for(lock, resident_ ? std::min(kLook, options_.park_after) : kLook);
    else if (resident_) wake_.wait_for(lock, options_.park_after);
    else wake_.wait(lock, [&] { return something_to_do(); });
  }
  line_->asleep.store(false, std::memory_order_relaxed);
}

/// While runs wait in line: until somebody joins it, a waiter takes out a run that has ended, or a sixteenth of the time has
/// passed that nothing has happened for. A run that ends unseen frees its place that much late.
void Pump::nap(Lock& lock) {
  constexpr Clock::duration kShortest = std::chrono::microseconds(10), kLongest = std::chrono::milliseconds(1);
  const auto quiet = Clock::now() - last_progress_;
  line_->asleep.store(true, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with join_line()
  if (line_->fresh_empty() && !ending_) wake_.wait_for(lock, std::clamp<Clock::duration>(quiet / 16, kShortest, kLongest));
  line_->asleep.store(false, std::memory_order_relaxed);
}

bool Pump::something_to_do() const {
  return resident_ || launch_due_ || !expected_.empty() || ending_ || live_count_ ||
         line_->length.load(std::memory_order_relaxed);
}

void Pump::take_finished(const Lock& lock) {
  if (!live_count_) return;
  for (std::uint32_t slot = 0; slot < live_.size(); ++slot) {
    if (!live_[slot]) continue;
    if (is_complete(world_, *live_[slot])) {
      retire(lock, slot);
    } else {
      std::unique_lock stream(live_[slot]->mutex, std::try_to_lock);
      if (!stream.owns_lock()) continue;
      const std::uint64_t before = live_[slot]->stream_next;
      drain_stream(world_, *live_[slot]);
      streams_ |= live_[slot]->stream_next != before;
    }
  }
}

void Pump::retire(const Lock&, std::uint32_t slot) {
  const RunPtr run = live_[slot];
  LoadedGraph& graph = *run->graph;
  const bool told = run->phase.load(std::memory_order_relaxed) == RunPhase::done;  // it had stalled; now it has ended
  if (run->traced) {
    auto trace = std::make_unique<const Trace>(collect_trace(engine_, world_, *run));
    if (!told) run->trace = std::move(trace);
  }
  live_[slot].reset();
  stream_next_[slot] = collect(world_, *run, told);  // from here on the program knows
  graph.free_banks.push_back(run->bank);
  if (graph.kind != GraphKind::dynamic) all_workers_live_ = false, ++phased_done_;
  else live_tasks_ -= graph.task_count, reservation_.left(run->entry, graph.task_count);
  free_slots_.push_back(slot);
  --live_count_;
  ++counters_.completed;
}

bool Pump::poll(const RunPtr& run) {
  // Acquire: pairs with the releases of phase in let_in(), finish() and collect(): a slot when live, all of the outcome when done.
  const RunPhase phase = run->phase.load(std::memory_order_acquire);
  if (phase != RunPhase::live) return phase == RunPhase::done;
  if (!is_complete(world_, *run)) return false;
  Lock lock(mutex_);
  or_fail_everything(lock, [&] {
    if (run->phase.load(std::memory_order_relaxed) == RunPhase::live) retire(lock, run->slot);
  });
  if (line_->length.load(std::memory_order_relaxed)) wake_.notify_one();  // there is a place for one of these
  return true;
}

void Pump::drain(RunRecord& run) {
  std::unique_lock stream(run.mutex, std::try_to_lock);
  // Acquire: as in poll().
  if (stream.owns_lock() && run.phase.load(std::memory_order_acquire) == RunPhase::live) drain_stream(world_, run);
}

PumpCounters Pump::counters() {
  Lock lock(mutex_);
  return counters_;
}

}  // namespace flywheel
