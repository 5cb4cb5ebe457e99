#include "simulate/memory.hpp"

#include <cstdio>

#include "simulate/leaks.hpp"
#include "simulate/shadow.hpp"

namespace flywheel::simulate::memory {

namespace {

constexpr int kAcquire = 2, kRelease = 3, kAcqRel = 4, kSeqCst = 5;
bool acquires(int order) { return order == 1 || order == kAcquire || order >= kAcqRel; }
bool releases(int order) { return order >= kRelease; }

/// What a thread knows.
struct Knowledge {
  VectorClock now;
  VectorClock read;    // came with relaxed loads: an acquire fence takes it in
  VectorClock fenced;  // as of the last release fence: goes with relaxed stores
};

Knowledge known[kMostFibers];
VectorClock everybody;  // what operations of seq_cst tell each other
std::unordered_map<const void*, VectorClock> locks;
Shadow shadow;
std::uint64_t stale_steps = 0;  // for how long a load may miss a store

/// Words that somebody wants to hear of.
struct Watch {
  std::uintptr_t begin = 0, bytes = 0;
  void (*changed)(std::size_t word, std::uint64_t value) = nullptr;
};
Watch watched;

void tell_watcher(const void* at, std::uint64_t value) {
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(at) - watched.begin;
  if (offset < watched.bytes) watched.changed(offset / 8, value);
}

int inside = 0;  // here: what the simulator itself gives back is not the program's

struct Inside {
  leaks::OurOwn own;
  Inside() { ++inside; }
  ~Inside() { --inside; }
};

Knowledge& mine() { return known[scheduler.current()]; }
Epoch my_epoch() { return mine().now.at[scheduler.current()]; }
void next_epoch() { ++mine().now.at[scheduler.current()]; }

[[noreturn]] void report_race(const PlainAccess& before, bool write, bool atomic, const void* at, const void* where) {
  char text[200];
  std::snprintf(text, sizeof(text), "data race at %p: fiber %u %s%s at +0x%llx, fiber %u %s%s at +0x%llx", at, before.fiber,
                before.write ? "wrote" : "read", before.atomic ? " (atomic)" : "",
                static_cast<unsigned long long>(scheduler.offset_of(before.where)), scheduler.current(), write ? "writes" : "reads",
                atomic ? " (atomic)" : "", static_cast<unsigned long long>(scheduler.offset_of(where)));
  finding(text);
}

/// Notes an access to some of the 8 bytes of a granule, and compares it with those before it.
void access(Granule& granule, std::uint8_t mask, bool write, bool atomic, const void* at, const void* where) {
  const auto self = static_cast<std::uint8_t>(scheduler.current());
  const VectorClock& now = mine().now;
  PlainAccess* place = nullptr;
  for (PlainAccess& other : granule.accesses) {
    const bool ordered = !other.epoch || other.epoch <= now.at[other.fiber];
    if (!ordered && (other.mask & mask) && (other.write || write) && !(other.atomic && atomic))
      report_race(other, write, atomic, at, where);
    // What is ordered before a write that covers it, or is the same access, is not needed any more.
    const bool covered = !other.epoch || (ordered && (other.mask & ~mask) == 0 && (write || !other.write) && (!atomic || other.atomic));
    if (covered) {
      if (place) other.epoch = 0;
      else place = &other;
    }
  }
  if (!place) place = &granule.accesses[scheduler.steps() % Granule::kAccesses];
  *place = {now.at[self], self, mask, write, atomic, where};
}

AtomicWord& word_of(Granule& granule, const void* at, std::size_t bytes, std::uint64_t newest) {
  std::unique_ptr<AtomicWord>* link = &granule.words;
  while (*link && (*link)->at != at) link = &(*link)->next;
  if (!*link) *link = std::make_unique<AtomicWord>();
  AtomicWord& word = **link;
  // Memory that does not hold the newest store was written plainly, or in words of another size: all see that.
  if (word.bytes != bytes || word.stores.back().value != newest) {
    word.at = at;
    word.bytes = bytes;
    word.stores.clear();
    word.stores.push_back({newest, 0, {}, {}});
  }
  return word;
}

AtomicWord& visit(const void* at, std::size_t bytes, std::uint64_t newest, bool write, const void* where) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  Granule& granule = shadow.of(address);
  access(granule, static_cast<std::uint8_t>(((1u << bytes) - 1) << address % 8), write, true, at, where);
  return word_of(granule, at, bytes, newest);
}

/// How many of the newest stores the running thread may read. One at least.
std::size_t readable(const AtomicWord& word) {
  const std::size_t size = word.stores.size();
  std::size_t count = 1;
  while (count < size && !mine().now.knows_any(word.stores[size - count].seen) &&
         word.stores[size - count].step + stale_steps > scheduler.steps())
    ++count;
  return count;
}

Site* all_sites = nullptr;

void note(std::uintptr_t place, int order) {
  for (std::size_t i = place * 0x9e3779b97f4a7c15ull % kMostSites, tried = 0; tried < kMostSites; i = (i + 1) % kMostSites, ++tried) {
    Site& site = all_sites[i];
    if (site.place && site.place != place) continue;
    site = {place, std::max(site.order, order), site.passed + 1};
    return;
  }
}

/// The order that the code there asks for, unless it is the one that is weakened.
int order_of(int order, const void* where) {
  if (!order) return 0;
  const std::uintptr_t place = scheduler.offset_of(where);
  if (all_sites) note(place, order);
  return place == scheduler.settings().weakened ? 0 : order;
}

void take_in(const Store& store, int order) {
  mine().read.join(store.released);
  if (acquires(order)) mine().now.join(store.released);
}
void meet_everybody() {
  mine().now.join(everybody);
  everybody.join(mine().now);
}

void add(AtomicWord& word, std::uint64_t value, VectorClock released, int order) {
  constexpr std::size_t kKept = 6;
  released.join(releases(order) ? mine().now : mine().fenced);
  Store store{value, scheduler.steps(), released, {}};
  store.seen.at[scheduler.current()] = my_epoch();
  if (!scheduler.settings().weak) word.stores.clear();
  word.stores.push_back(store);
  if (word.stores.size() > kKept) word.stores.erase(word.stores.begin());
  if (order == kSeqCst) meet_everybody();
  if (releases(order)) next_epoch();
}

}  // namespace

void begin_run() {
  const Inside here;
  for (Knowledge& one : known) one = {};
  everybody = {};
  locks.clear();
  shadow.clear();
  watched = {};
  stale_steps = std::uint64_t{8} << scheduler.random().below(10);
}

void thread_begins(std::uint32_t thread, std::uint32_t parent) {
  const Epoch epoch = known[thread].now.at[thread] + 1;  // its number may have been another's
  if (thread != parent) known[thread] = {known[parent].now, {}, {}};
  known[thread].now.at[thread] = epoch;
  if (thread != parent) ++known[parent].now.at[parent];
}
void thread_joined(std::uint32_t thread) { mine().now.join(known[thread].now); }

void acquire(const void* lock) {
  const Inside here;
  if (scheduler.on()) mine().now.join(locks[lock]);
}
void release(const void* lock) {
  if (!scheduler.on()) return;
  const Inside here;
  locks[lock] = mine().now;
  next_epoch();
}

void forget(const void* at, std::size_t bytes) {
  if (inside) return;
  const Inside here;
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  shadow.forget(address, address + bytes);
}

void plain(const void* at, std::size_t bytes, bool write, const void* where) {
  const Inside here;
  if (scheduler.is_local(at)) return;
  auto address = reinterpret_cast<std::uintptr_t>(at);
  const std::uintptr_t end = address + bytes;
  while (address < end) {
    const std::uintptr_t first = address % 8, last = std::min<std::uintptr_t>(8, first + end - address);
    const auto mask = static_cast<std::uint8_t>((0xffu << first) & (0xffu >> (8 - last)));
    access(shadow.of(address), mask, write, false, reinterpret_cast<const void*>(address), where);
    address += last - first;
  }
}

std::uint64_t load(const void* at, std::size_t bytes, std::uint64_t newest, int order, const void* where) {
  const Inside here;
  order = order_of(order, where);
  AtomicWord& word = visit(at, bytes, newest, false, where);
  if (order == kSeqCst) meet_everybody();
  const std::size_t choices = order == kSeqCst || word.stores.size() == 1 ? 1 : readable(word);
  const std::size_t back = choices == 1 || scheduler.random().one_in(2) ? 0 : scheduler.random().below(static_cast<std::uint32_t>(choices));
  Store& store = word.stores[word.stores.size() - 1 - back];
  Epoch& seen = store.seen.at[scheduler.current()];
  if (!seen) seen = my_epoch();
  take_in(store, order);
  return store.value;
}

void store(const void* at, std::size_t bytes, std::uint64_t before, std::uint64_t after, int order, const void* where) {
  const Inside here;
  order = order_of(order, where);
  add(visit(at, bytes, before, true, where), after, {}, order);
  tell_watcher(at, after);
}

void update(const void* at, std::size_t bytes, std::uint64_t before, std::uint64_t after, int order, const void* where) {
  const Inside here;
  order = order_of(order, where);
  AtomicWord& word = visit(at, bytes, before, true, where);
  take_in(word.stores.back(), order);
  add(word, after, word.stores.back().released, order);
  tell_watcher(at, after);
}

std::uint64_t longest_stale() { return stale_steps; }
void watch(const void* at, std::size_t words, void (*changed)(std::size_t word, std::uint64_t value)) {
  watched = {reinterpret_cast<std::uintptr_t>(at), words * 8, changed};
}

void note_sites(Site* sites) { all_sites = sites; }

void fence(int order, const void* where) {
  order = order_of(order, where);
  if (acquires(order)) mine().now.join(mine().read);
  if (order == kSeqCst) meet_everybody();
  if (!releases(order)) return;
  mine().fenced = mine().now;
  next_epoch();
}

}  // namespace flywheel::simulate::memory
