#include "simulate/journal.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "simulate/leaks.hpp"
#include "simulate/memory.hpp"
#include "simulate/scheduler.hpp"

namespace flywheel::simulate::journal {

namespace {

constexpr std::uint32_t kLevels = 3, kMostWorkers = 64;
std::vector<Entry> entries;

/// Work at one level, as the runtime's count says.
struct Level {
  std::uint64_t since = kNever;  // step since when there has been some; kNever: there is none
  /// Less urgent tasks that each worker began meanwhile.
  struct Passed {
    std::uint64_t since = kNever;
    std::uint32_t count = 0;
  } passed[kMostWorkers];
};
Level watched[kLevels];
std::uint32_t watched_levels = 0, most_passed = 0;

void note_count(std::size_t level, std::uint64_t bits) {
  Level& at = watched[level];
  if (static_cast<std::int64_t>(bits) <= 0) at.since = kNever;
  else if (at.since == kNever) at.since = scheduler.steps();
}

const std::uint64_t* inbox_words = nullptr;
constexpr std::size_t kWordsOfEntry = 64;
std::vector<std::uint64_t> arrivals;  // of each run; step

/// Word 0 of a message is written last: the run's number, its first parameter, is there. Messages are packed, see
/// runtime/records/inbox.hpp: words 0 and 1 have a bit for each word behind.
void note_message(std::size_t word, std::uint64_t value) {
  const leaks::OurOwn here;
  constexpr std::uint32_t kOp = 0, kFlags = 12, kFirstParam = 16, kInlineRoot = 64, kCarries = 512, kWhich = 0xffffff;
  if (word % kWordsOfEntry != 0) return;
  const auto bits = static_cast<std::uint32_t>(value);
  const auto has = [&](std::uint32_t i) { return (bits >> i & 1) != 0; };
  const auto at = [&](std::uint32_t i) {
    return static_cast<std::uint32_t>(inbox_words[word + 2 + static_cast<std::size_t>(std::popcount(bits & ((1u << i) - 1)))]);
  };
  // Only submissions have their operation left out, and their flags, too, if they carry a record and no parameters.
  if (has(kOp) || !has(kFlags) || (at(kFlags) & (kCarries | kInlineRoot)) != kCarries) return;
  const std::uint32_t number = (has(kFirstParam) ? at(kFirstParam) : 0) & kWhich;
  if (arrivals.size() <= number) arrivals.resize(number + 1);
  arrivals[number] = scheduler.steps();
}

void end_now(Entry& entry) {
  entry.ended = scheduler.steps();
  entry.ended_ns = scheduler.now();
  entry.leapt_ns = scheduler.leapt_ns() - entry.leapt_ns;
  entry.leaps = scheduler.leaps() - entry.leaps;
}

/// What a worker's heartbeat says of its body.
struct Body {
  std::uint64_t begun_ns = 0, leapt_ns = 0;  // as in Entry
  std::uint32_t leaps = 0;
  std::size_t entry = kNone;  // of the body, once it has begun for itself

  static constexpr std::size_t kNone = ~std::size_t{0};
};
Body bodies[kMostWorkers];
std::size_t words_of_heartbeat = 0;

void note_beat(std::size_t word, std::uint64_t value) {
  if (word % words_of_heartbeat != 2) return;
  Body& body = bodies[word / words_of_heartbeat % kMostWorkers];
  if (!(value >> 63)) body = {value, scheduler.leapt_ns(), scheduler.leaps(), Body::kNone};
  else if (body.entry != Body::kNone) end_now(entries[body.entry]);
}

/// The tasks that a worker began last.
std::string last_tasks_of(std::uint32_t worker) {
  std::string text;
  std::uint32_t shown = 0;
  for (std::size_t i = entries.size(); i-- > 0 && shown < 6;) {
    const Entry& entry = entries[i];
    if (entry.worker != worker) continue;
    ++shown;
    text = " " + std::to_string(entry.run & 0xffffff) + "/" + std::to_string(entry.task) + " level " +
           std::to_string(entry.level) + " steps " + std::to_string(entry.begun) + " to " + std::to_string(entry.ended) + ";" +
           text;
  }
  return text;
}

/// A worker that looked a while ago may have read an older count; from then on it cannot.
void check_urgency(const Entry& entry) {
  for (std::uint32_t l = 0; l < watched_levels && l < entry.level; ++l) {
    const Level& level = watched[l];
    if (level.since == kNever || level.since + memory::longest_stale() >= entry.begun) continue;
    Level::Passed& passed = watched[l].passed[entry.worker % kMostWorkers];
    if (passed.since != level.since) passed = {level.since, 0};
    if (++passed.count <= most_passed) continue;
    const std::string text = "worker " + std::to_string(entry.worker) + " has begun " + std::to_string(passed.count) +
                             " tasks while more urgent ones of level " + std::to_string(l) + " waited, since step " +
                             std::to_string(level.since) + " (stale " + std::to_string(memory::longest_stale()) +
                             "):" + last_tasks_of(entry.worker);
    finding(text.c_str());
  }
}

std::uint64_t end_of(const Entry& entry) { return entry.ended ? entry.ended_ns : scheduler.now(); }
std::uint32_t leaps_of(const Entry& entry) { return entry.ended ? entry.leaps : scheduler.leaps() - entry.leaps; }
std::uint64_t leapt_in(const Entry& entry) { return entry.ended ? entry.leapt_ns : scheduler.leapt_ns() - entry.leapt_ns; }

/// Whether a worker's body of another run kept a gang waiting: the worker began its part in the gang's run later.
bool kept_waiting(const Entry& gang, const Entry& other) {
  bool later = false;
  for (const Entry& entry : entries) {
    if (entry.worker != other.worker || entry.run != gang.run) continue;
    if (entry.begun < other.begun) return false;
    later = true;
  }
  return later;
}

/// For how long a body of a gang waited since it was last sure that its partners get on, at most.
std::uint64_t longest_wait(const Entry& gang) {
  std::vector<std::pair<std::uint64_t, bool>> moments;  // and whether it waited for another run's until then
  const std::uint64_t end = end_of(gang);
  for (const Entry& other : entries) {
    if (other.worker == gang.worker) continue;
    const bool same = other.run == gang.run;
    const std::uint64_t moment = std::min(same ? other.begun_ns : end_of(other), end);
    if (moment > gang.begun_ns && other.begun_ns < end && (same || kept_waiting(gang, other)))
      moments.emplace_back(moment, !same);
  }
  moments.emplace_back(end, false);
  std::sort(moments.begin(), moments.end(),
            [](const auto& a, const auto& b) { return a.first < b.first || (a.first == b.first && a.second > b.second); });
  std::uint64_t longest = 0, from = gang.begun_ns;
  for (const auto& [moment, elsewhere] : moments) {
    if (!elsewhere) longest = std::max(longest, moment - from);
    from = moment;
  }
  return longest;
}

std::uint64_t counted_ns(const Entry& entry) {
  if (entry.level == kGang) return longest_wait(entry);
  return end_of(entry) - entry.begun_ns - leapt_in(entry);
}

}  // namespace

void clear() {
  const leaks::OurOwn here;
  entries.clear();
  entries.reserve(1024);
  arrivals.clear();
  watched_levels = 0;
  words_of_heartbeat = 0;
  for (Level& level : watched) level = {};
}

std::size_t begin(std::uint32_t run, std::uint32_t task, std::uint32_t worker, std::uint32_t level) {
  const leaks::OurOwn here;
  if (!words_of_heartbeat)
    bodies[worker % kMostWorkers] = {scheduler.now(), scheduler.leapt_ns(), scheduler.leaps(), Body::kNone};
  Body& body = bodies[worker % kMostWorkers];
  body.entry = entries.size();
  entries.push_back({run, task, worker, level, scheduler.steps(), 0, body.begun_ns, 0, body.leapt_ns, body.leaps});
  check_urgency(entries.back());
  return entries.size() - 1;
}

void end(std::size_t number) {
  if (!words_of_heartbeat) end_now(entries[number]);
}

std::size_t size() { return entries.size(); }
const Entry& at(std::size_t entry) { return entries[entry]; }
std::uint64_t steps() { return scheduler.steps(); }
std::uint64_t now_ns() { return scheduler.now(); }
void stop_process(std::uint64_t ns) { scheduler.leap(ns); }
bool clock_leaps() { return scheduler.style() == Schedule::jump; }

void watch_urgency(const std::int64_t* queued, std::uint32_t levels, std::uint32_t most) {
  watched_levels = levels < kLevels ? levels : kLevels;
  most_passed = most;
  for (std::uint32_t l = 0; l < watched_levels; ++l) note_count(l, static_cast<std::uint64_t>(queued[l]));
  memory::watch(queued, watched_levels, note_count);
}

bool exceeded(std::uint64_t limit_ns) {
  for (const Entry& entry : entries)
    if (counted_ns(entry) + leaps_of(entry) * std::max<std::uint64_t>(limit_ns / 8, 5'000'000) >= limit_ns) return true;
  return false;
}

void watch_bodies(const void* heartbeats, std::size_t workers, std::size_t bytes) {
  words_of_heartbeat = bytes / 8;
  memory::watch(heartbeats, workers * words_of_heartbeat, note_beat);
}

void watch_inbox(const void* words, std::size_t count) {
  inbox_words = static_cast<const std::uint64_t*>(words);
  memory::watch(words, count * kWordsOfEntry, note_message);
}
std::uint64_t let_in_at(std::uint32_t run) { return run < arrivals.size() ? arrivals[run] : 0; }

}  // namespace flywheel::simulate::journal
