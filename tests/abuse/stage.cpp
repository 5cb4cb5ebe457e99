#include "abuse/stage.hpp"

#include <bitset>
#include <cstdio>
#include <map>

namespace flywheel::abuse {

namespace {
constexpr std::uint32_t kMostRuntimes = 1u << 18;

struct Marks {
  std::mutex mutex;
  std::bitset<kMostRuntimes> may_leave;
  std::vector<std::atomic<std::uint64_t>*> mercies;  // all there ever were, so that none of them counts as lost
  std::map<std::uint32_t, std::string> options;
};
Marks& marks() {
  static auto& all = *new Marks;
  return all;
}

struct Counted {
  std::uint64_t times = 0;
  std::int64_t ns = 0;
};
struct Counts {
  std::mutex mutex;
  std::map<std::string, Counted> of;
};
Counts& counts() {
  static auto& all = *new Counts;
  return all;
}
}  // namespace

Fate::Fate(std::uint32_t n) : number(n), mercy(new std::atomic<std::uint64_t>(0)) {
  std::scoped_lock lock(marks().mutex);
  marks().mercies.push_back(mercy);
}

void allow_to_leave_memory(const Fate& fate) {
  std::scoped_lock lock(marks().mutex);
  marks().may_leave[fate.number % kMostRuntimes] = true;
}

void grant_mercy_to_all() {
  std::scoped_lock lock(marks().mutex);
  for (auto* mercy : marks().mercies) mercy->store(kForEver, std::memory_order_relaxed);
}

bool may_leave_memory(std::uint32_t runtime) {
  std::scoped_lock lock(marks().mutex);
  return marks().may_leave[runtime % kMostRuntimes];
}

Room::Room(std::shared_ptr<Fate> what, Runtime&& started) : fate(std::move(what)), runtime(std::move(started)) {}

void note_options(const Fate& fate) {
  const Options& o = fate.options;
  const auto ms = [](auto time) { return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()); };
  std::scoped_lock lock(marks().mutex);
  marks().options[fate.number] = std::to_string(o.workers) + " workers" + (o.mode == Mode::drain ? ", drain" : "") +
                                 (fate.tight ? ", tight" : "") + ", park after " + ms(o.park_after) + ", yield every " +
                                 ms(o.yield_every) + ", shut down in " + ms(o.shutdown_timeout) + " ms";
}

std::string describe_fate(std::uint32_t runtime) {
  std::scoped_lock lock(marks().mutex);
  return marks().options[runtime];
}

/// Whoever lets go of it last may not be known to wait for it. Where shutdown() waits for long, nothing is to keep it.
Room::~Room() {
  fate->ends = true;
  if (fate->options.shutdown_timeout < std::chrono::seconds(1)) return;
  fate->mercy->store(kForEver, std::memory_order_relaxed);
  if (fate->frailty) fate->frailty->never_starts = fate->frailty->blocks_in_launch = false;
}

void TaskSlot::lock_all() {
  rooms.lock_all();
  buffers.lock_all();
  loaded.lock_all();
  runs.lock_all();
  queues.lock_all();
  works.lock_all();
}

void TaskSlot::unlock_all() {
  works.unlock_all();
  queues.unlock_all();
  runs.unlock_all();
  loaded.unlock_all();
  buffers.unlock_all();
  rooms.unlock_all();
}

void TaskSlot::clear() {
  rooms.clear();
  buffers.clear();
  loaded.clear();
  runs.clear();
  queues.clear();
  works.clear();
}

void count(const char* what, std::int64_t ns) {
  std::scoped_lock lock(counts().mutex);
  Counted& one = counts().of[what];
  ++one.times;
  one.ns += ns;
}

void print_counts() {
  std::scoped_lock lock(counts().mutex);
  for (const auto& [what, one] : counts().of) {
    std::printf("  %9llu %s", static_cast<unsigned long long>(one.times), what.c_str());
    if (one.ns) std::printf(", %.0f us each", static_cast<double>(one.ns) * 1e-3 / static_cast<double>(one.times));
    std::printf("\n");
  }
}

/// From blocks that are never freed and always found.
Call* new_call() {
  constexpr std::size_t kBlock = 4096;
  static std::mutex mutex;
  static auto& blocks = *new std::vector<Call*>;
  static std::size_t used = kBlock;
  std::scoped_lock lock(mutex);
  if (used == kBlock) {
    blocks.push_back(new Call[kBlock]);
    used = 0;
  }
  return blocks.back() + used++;
}

}  // namespace flywheel::abuse
