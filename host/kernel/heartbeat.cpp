#include "heartbeat.hpp"

#include <algorithm>
#include <sstream>

#include "../trace/trace.hpp"

namespace flywheel::detail {

namespace {
using P = CpuPlatform;

WorkerState state_of(Heartbeat& heart) {
  // Acquire: pairs with the release store of `state` in runtime/records/heartbeat.hpp, beat().
  return static_cast<WorkerState>(P::system(heart.state).load(Order::acquire));
}
}  // namespace

namespace {
/// The most time that counts between two looks: an eighth of the limit, from 5 ms to 100 ms. Even on a busy machine a
/// look comes within that time, and it is so small a part of the limit that the error does not matter.
std::uint64_t most_between_checks(std::uint64_t limit_ns) {
  return std::clamp<std::uint64_t>(limit_ns / 8, 5'000'000, 100'000'000);
}

bool is_of_gang(const WatchedRun& run, std::uint64_t item) {
  const std::uint32_t task = Item::unpack(item).record;  // in collective runs the record is the task's index
  return run.in_gang && task < run.in_gang->size() && (*run.in_gang)[task];
}
}  // namespace

Watchdog::Watchdog(const DeviceState& dev, const Options& options)
    : dev_(dev),
      limit_ns_(std::max<std::uint64_t>(std::chrono::nanoseconds(options.stall_limit).count(), 1)),
      most_between_checks_(most_between_checks(limit_ns_)),
      pulses_(dev.workers),
      watched_(dev.workers) {}

std::vector<Stall> Watchdog::new_stalls(const RunIn& run_in, std::uint64_t now_ns) {
  const std::uint64_t stopped_ns = note_awake(now_ns);
  std::vector<Stall> stalls, of_gangs;
  longest_task_ns_ = 0;
  for (std::uint32_t w = 0; w < dev_.workers; ++w) {
    const Pulse pulse = pulses_[w] = read(dev_.heartbeats[w]);
    const std::uint64_t ran_ns = pulse.slow                                ? pulse.elapsed_ns
                                 : pulse.runs && now_ns > pulse.started_ns ? now_ns - pulse.started_ns
                                                                           : 0;
    longest_task_ns_ = std::max(longest_task_ns_, ran_ns);
  }
  for (std::uint32_t w = 0; w < dev_.workers; ++w) {
    const Pulse& pulse = pulses_[w];
    if (!pulse.runs && !pulse.slow) continue;
    const Item item = Item::unpack(pulse.item);
    const WatchedRun run = run_in(item.run);
    if (!(pulse.slow ? check_beat(w, run, stopped_ns) : check_body(w, run, now_ns))) continue;
    (is_of_gang(run, pulse.item) ? of_gangs : stalls).push_back({w, item, watched_[w].counted_ns});
  }
  last_check_ = now_ns;
  stalls.insert(stalls.end(), of_gangs.begin(), of_gangs.end());
  return stalls;
}

/// Advances DeviceState::host_awake_ns by the time since the last look, up to most_between_checks_. Returns the rest,
/// for which the process was stopped.
std::uint64_t Watchdog::note_awake(std::uint64_t now_ns) {
  const std::uint64_t gap = last_check_ && now_ns > last_check_ ? now_ns - last_check_ : 0;
  const std::uint64_t counted = std::min(gap, most_between_checks_);
  awake_ns_ += counted;
  // Relaxed: was_host_stopped() in runtime/base/wait.hpp loads it, relaxed too. No other data goes with it.
  if (dev_.host_awake_ns) P::system(*dev_.host_awake_ns).store(awake_ns_, Order::relaxed);
  return gap - counted;
}

Watchdog::Pulse Watchdog::read(Heartbeat& heart) {
  Pulse pulse;
  // Acquire, all six: each pairs with the release store of the same word in runtime/records/heartbeat.hpp (beat(),
  // begin_body(), begin_part(), end_body(), show_joined()), so the loads after it see what the worker wrote before that
  // store. Relaxed, the three second loads of `joined`, `beats` and `started_ns`: the acquire loads before them keep
  // them in order, and they only tell whether the worker has written again in between.
  pulse.joined = P::system(heart.joined).load(Order::acquire);
  pulse.part_ns = P::system(heart.part_ns).load(Order::acquire);
  if (P::system(heart.joined).load(Order::relaxed) != pulse.joined) pulse.part_ns = 0;
  pulse.beats = P::system(heart.beats).load(Order::acquire);
  pulse.started_ns = P::system(heart.started_ns).load(Order::acquire);
  pulse.item = P::system(heart.item).load(Order::acquire);
  pulse.elapsed_ns = P::system(heart.elapsed_ns).load(Order::acquire);
  const bool slow = state_of(heart) == WorkerState::slow;
  const bool whole = pulse.beats % 2 == 0 && P::system(heart.beats).load(Order::relaxed) == pulse.beats;
  pulse.slow = slow && whole;
  const bool same = P::system(heart.started_ns).load(Order::relaxed) == pulse.started_ns;
  pulse.runs = !slow && same && pulse.started_ns && !(pulse.started_ns & kBodyEnded);
  return pulse;
}

/// Updates the time of a CPU worker's body, which runs at this moment, so its run is in its slot. True if it has just
/// exceeded the limit.
bool Watchdog::check_body(std::uint32_t worker, const WatchedRun& run, std::uint64_t now_ns) {
  const Pulse& pulse = pulses_[worker];
  Watched& seen = watched_[worker];
  if (seen.pulse.started_ns != pulse.started_ns) seen = {pulse, run.generation, 0, 0, 0, false};
  const std::uint64_t since = std::max(last_check_, pulse.started_ns);
  if (now_ns > since) seen.counted_ns += std::min(now_ns - since, most_between_checks_);
  if (is_of_gang(run, pulse.item) && is_held_up(worker, run)) seen.counted_ns = 0;
  if (seen.told || seen.counted_ns < limit_ns_) return false;
  return seen.told = true;
}

/// Updates the time of a GPU worker's slow task. True if it has just exceeded the limit.
bool Watchdog::check_beat(std::uint32_t worker, const WatchedRun& run, std::uint64_t stopped_ns) {
  const Pulse& pulse = pulses_[worker];
  Watched& seen = watched_[worker];
  seen.uncounted_ns += stopped_ns;
  if (!run.generation || (seen.pulse.slow && seen.pulse.beats == pulse.beats)) return false;
  const bool same = seen.pulse.slow && seen.pulse.item == pulse.item && seen.generation == run.generation &&
                    pulse.elapsed_ns > seen.pulse.elapsed_ns;
  const bool was_long = same && seen.counted_ns >= limit_ns_;
  if (!same) seen = {pulse, run.generation, 0, std::min(stopped_ns, pulse.elapsed_ns), 0, false};
  seen.pulse = pulse;
  if (is_of_gang(run, pulse.item) && is_held_up(worker, run)) seen.uncounted_ns = pulse.elapsed_ns;
  seen.counted_ns = pulse.elapsed_ns - std::min(seen.uncounted_ns, pulse.elapsed_ns);
  if (seen.told || !was_long || seen.counted_ns < limit_ns_) return false;
  return seen.told = true;
}

/// True if a task of a gang may be waiting for a task of the gang that could not begin yet.
bool Watchdog::is_held_up(std::uint32_t worker, const WatchedRun& run) {
  const Pulse& mine = pulses_[worker];
  Watched& seen = watched_[worker];
  const std::uint16_t slot = Item::unpack(mine.item).run;
  bool held_up = false;
  for (std::uint32_t w = 0; w < dev_.workers; ++w) {
    const Pulse& other = pulses_[w];
    if (w == worker) continue;
    if (mine.slow) {
      held_up |= is_elsewhere(w, mine);
    } else if (other.joined != joined_run(slot, run.generation)) {
      const bool stalls = other.runs && watched_[w].pulse.started_ns == other.started_ns && watched_[w].told;
      held_up |= !stalls;
    } else if (other.part_ns > seen.others_began) {
      seen.others_began = other.part_ns;
      held_up = true;
    }
  }
  return held_up;
}

/// True if the GPU worker `other` has been in a slow task of another run since before `than` began. That task itself
/// must be under the limit.
bool Watchdog::is_elsewhere(std::uint32_t other, const Pulse& than) const {
  const Pulse& pulse = pulses_[other];
  constexpr std::uint64_t kBetweenBeats = 2 * kSlowTaskNs;
  return pulse.slow && Item::unpack(pulse.item).run != Item::unpack(than.item).run && pulse.elapsed_ns < limit_ns_ &&
         pulse.elapsed_ns + kBetweenBeats >= than.elapsed_ns;
}

std::string Watchdog::wait_report(const std::function<std::string(std::uint16_t, std::uint32_t)>& name_of) const {
  std::ostringstream text;
  for (std::uint32_t w = 0; w <= dev_.workers; ++w) {
    WaitReport& report = dev_.reports[w];
    // Acquire: pairs with the release store of `reason` in runtime/base/wait.hpp, report_wait(). The worker wrote the
    // other words of the report before it, so relaxed loads of those suffice. Two roles of one worker may both report; the
    // text then mixes words of both.
    const auto reason = static_cast<WaitReason>(P::system(report.reason).load(Order::acquire));
    if (reason == WaitReason::none) continue;
    text << (w == dev_.workers ? std::string("the inbox poller") : "worker " + std::to_string(w));
    if (const std::uint64_t bits = P::system(report.part).load(Order::relaxed)) {
      const WaitPart part = WaitPart::unpack(bits);
      text << ", at " << name_of(part.run, part.task) << ": its " << describe(static_cast<TraceRole>(part.role)) << " role";
    }
    const auto word = [](std::uint64_t& w) { return P::system(w).load(Order::relaxed); };
    text << " waited " << word(report.waited_ns) / 1000000 << " ms for " << describe(reason) << " at address 0x" << std::hex
         << word(report.address) << ": it saw 0x" << word(report.saw) << " and expected 0x" << word(report.expected) << std::dec
         << "; ";
  }
  return text.str();
}

std::uint32_t Watchdog::present() const {
  std::uint32_t count = 0;
  for (std::uint32_t w = 0; w < dev_.workers; ++w) count += state_of(dev_.heartbeats[w]) != WorkerState::absent;
  return count;
}

}  // namespace flywheel::detail
