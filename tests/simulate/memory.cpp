#include "simulate/memory.hpp"

#include <cstdio>

#include "simulate/leaks.hpp"
#include "simulate/shadow.hpp"
#include "simulate/sites.hpp"

namespace flywheel::simulate::memory {

namespace {

bool acquires(int order) { return order == 1 || order == kAcquire || order >= kAcqRel; }
bool releases(int order) { return order >= kRelease; }

/// What a thread knows.
struct Knowledge {
  VectorClock now;
  // By scope: of what system and device include.
  VectorClock read, read_near;      // came with relaxed loads: an acquire fence takes it in
  VectorClock fenced, fenced_near;  // as of the last release fence: goes with relaxed stores
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
std::uint8_t self() { return static_cast<std::uint8_t>(scheduler.current()); }
Epoch my_epoch() { return mine().now.at[scheduler.current()]; }
void next_epoch() { ++mine().now.at[scheduler.current()]; }

std::uint8_t my_device() { return scheduler.self().device; }

const char* kind_of(std::uint8_t scope) {
  constexpr const char* kKinds[] = {" (atomic, block scope)", " (atomic, device scope)", " (atomic)", " (copy)"};
  return scope == kPlain ? "" : kKinds[scope];
}

[[noreturn]] void report_race(const PlainAccess& before, const PlainAccess& now, const void* at) {
  char text[300];
  std::snprintf(text, sizeof(text), "data race at %p: fiber %u %s%s at +0x%llx, fiber %u %s%s at +0x%llx", at, before.fiber,
                before.write ? "wrote" : "read", kind_of(before.scope),
                static_cast<unsigned long long>(scheduler.offset_of(before.where)), now.fiber, now.write ? "writes" : "reads",
                kind_of(now.scope), static_cast<unsigned long long>(scheduler.offset_of(now.where)));
  finding(text);
}

/// Whether the scope of each of two atomic accesses by different threads includes the other thread.
bool include_each_other(const PlainAccess& a, const PlainAccess& b) {
  const int needed = a.device && a.device == b.device ? kDevice : kSystem;
  if (a.scope == kPlain || b.scope == kPlain) return false;
  return a.scope == kAnyScope || b.scope == kAnyScope || std::min(a.scope, b.scope) >= needed;
}
/// Whether all that races with `other` races with `now`, too.
bool tells_more(const PlainAccess& now, const PlainAccess& other) {
  return (other.mask & ~now.mask) == 0 && (now.write || !other.write) &&
         (now.scope == kPlain || (other.scope != kPlain && now.scope <= other.scope));
}

/// Notes an access to some of the 8 bytes of a granule, and compares it with those before it.
void access(Granule& granule, const PlainAccess& access, const void* at) {
  const VectorClock& now = mine().now;
  PlainAccess* place = nullptr;
  for (PlainAccess& other : granule.accesses) {
    const bool ordered = !other.epoch || other.epoch <= now.at[other.fiber];
    if (!ordered && (other.mask & access.mask) && (other.write || access.write) && !include_each_other(other, access))
      report_race(other, access, at);
    if (other.epoch && !(ordered && tells_more(access, other))) continue;
    if (place) other.epoch = 0;  // is not needed any more
    else place = &other;
  }
  if (!place) place = &granule.accesses[scheduler.steps() % Granule::kAccesses];
  *place = access;
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
    word.stores.push_back({newest, 0, {}, {}, false});
  }
  return word;
}

AtomicWord& visit(const void* at, std::size_t bytes, std::uint64_t newest, bool write, const How& how) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  Granule& granule = shadow.of(address);
  const auto mask = static_cast<std::uint8_t>(((1u << bytes) - 1) << address % 8);
  const auto scope = scheduler.part().any_scope ? kAnyScope : static_cast<std::uint8_t>(how.scope);
  if (!scheduler.part().ignored) access(granule, {my_epoch(), self(), mask, write, scope, my_device(), how.where}, at);
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

/// How many of the newest stores an access misses, of those that it may miss.
std::size_t missed(std::size_t choices) {
  return std::min<std::size_t>(choices - 1, scheduler.decide(Choice::stale, 0, [&] {
    return scheduler.random().one_in(2) ? 0 : scheduler.random().below(static_cast<std::uint32_t>(choices));
  }));
}

/// By how many of the newest stores a new one is followed at once in the order of its word's: their threads' pasts and its own know
/// nothing of each other, so both orders are possible. Nothing comes between an update and what it read.
std::size_t followed_by(const AtomicWord& word, const How& how) {
  if (how.order == kSeqCst || !scheduler.settings().weak || word.stores.size() == 1) return 0;
  const std::size_t choices = readable(word), back = choices == 1 ? 0 : missed(choices);
  return back && word.stores[word.stores.size() - back].updates ? 0 : back;
}

void take_in(const Store& store, const How& how) {
  Knowledge& me = mine();
  const Released& released = store.released;
  const bool near = my_device() && released.device == my_device() && how.scope >= kDevice;
  if (near) me.read_near.join(released.near);
  if (how.scope == kSystem) me.read.join(released.all);
  if (!acquires(how.order)) return;
  if (near) me.now.join(released.near);
  if (how.scope == kSystem) me.now.join(released.all);
}
void meet_everybody() {
  mine().now.join(everybody);
  everybody.join(mine().now);
}

/// What goes on with a read-modify-write of what was released before: as far as the scopes of both include each other.
Released passed_on(const Released& before, const How& how) {
  Released released;
  if (how.scope == kSystem) released.all = before.all;
  if (my_device() && before.device == my_device() && how.scope >= kDevice) released.near = before.near;
  return released;
}

/// `back`: as many stores come after it.
Store& add(AtomicWord& word, std::uint64_t value, Released released, const How& how, std::size_t back = 0) {
  constexpr std::size_t kKept = 6;
  const Knowledge& me = mine();
  if (how.scope == kSystem) released.all.join(releases(how.order) ? me.now : me.fenced);
  if (my_device() && how.scope >= kDevice) released.near.join(releases(how.order) ? me.now : me.fenced_near);
  released.device = my_device();
  if (!scheduler.settings().weak) word.stores.clear();
  if (word.stores.size() == kKept) word.stores.erase(word.stores.begin());
  Store& store = *word.stores.emplace(word.stores.end() - static_cast<std::ptrdiff_t>(back));
  store.value = value;
  store.step = scheduler.steps();
  store.released = released;
  store.seen.at[scheduler.current()] = my_epoch();
  if (how.order == kSeqCst) meet_everybody();
  if (releases(how.order)) next_epoch();
  return store;
}

/// Threads of a block keep to themselves what is on their stacks, which all lie side by side.
bool is_on_own_stack(const void* at) {
  constexpr std::uintptr_t kNear = 64 << 10;
  return scheduler.part().of_block &&
         reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) < kNear;
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
  if (thread != parent) known[thread] = {known[parent].now, {}, {}, {}, {}};
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
  if (scheduler.is_local(at) || is_on_own_stack(at)) return;
  auto address = reinterpret_cast<std::uintptr_t>(at);
  const std::uintptr_t end = address + bytes;
  while (address < end) {
    const std::uintptr_t first = address % 8, last = std::min<std::uintptr_t>(8, first + end - address);
    const auto mask = static_cast<std::uint8_t>((0xffu << first) & (0xffu >> (8 - last)));
    access(shadow.of(address), {my_epoch(), self(), mask, write, kPlain, 0, where}, reinterpret_cast<const void*>(address));
    address += last - first;
  }
}

std::uint64_t load(const void* at, std::size_t bytes, std::uint64_t newest, How how) {
  const Inside here;
  how = done_so(how);
  AtomicWord& word = visit(at, bytes, newest, false, how);
  if (how.order == kSeqCst) meet_everybody();
  const std::size_t choices = how.order == kSeqCst || word.stores.size() == 1 ? 1 : readable(word);
  const std::size_t back = choices == 1 ? 0 : missed(choices);
  Store& store = word.stores[word.stores.size() - 1 - back];
  Epoch& seen = store.seen.at[scheduler.current()];
  if (!seen) seen = my_epoch();
  take_in(store, how);
  return store.value;
}

bool store(const void* at, std::size_t bytes, std::uint64_t before, std::uint64_t after, How how) {
  const Inside here;
  how = done_so(how);
  AtomicWord& word = visit(at, bytes, before, true, how);
  const std::size_t back = followed_by(word, how);
  add(word, after, {}, how, back);
  if (back == 0) tell_watcher(at, after);
  return back == 0;
}

void update(const void* at, std::size_t bytes, std::uint64_t before, std::uint64_t after, How how) {
  const Inside here;
  how = done_so(how);
  AtomicWord& word = visit(at, bytes, before, true, how);
  take_in(word.stores.back(), how);
  add(word, after, passed_on(word.stores.back().released, how), how).updates = true;
  tell_watcher(at, after);
}

std::uint64_t longest_stale() { return stale_steps; }
void watch(const void* at, std::size_t words, void (*changed)(std::size_t word, std::uint64_t value)) {
  watched = {reinterpret_cast<std::uintptr_t>(at), words * 8, changed};
}

void fence(How how) {
  how = done_so(how);
  Knowledge& me = mine();
  if (acquires(how.order)) {
    if (how.scope >= kDevice) me.now.join(me.read_near);
    if (how.scope == kSystem) me.now.join(me.read);
  }
  if (how.order == kSeqCst) meet_everybody();
  if (!releases(how.order)) return;
  if (how.scope >= kDevice) me.fenced_near = me.now;
  if (how.scope == kSystem) me.fenced = me.now;
  next_epoch();
}

}  // namespace flywheel::simulate::memory
