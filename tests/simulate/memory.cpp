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

/// Words whose changes are reported to a function.
struct Watch {
  std::uintptr_t begin = 0, bytes = 0;
  void (*changed)(std::size_t word, std::uint64_t value) = nullptr;
};
Watch watched;

void notify_watcher(const void* at, std::uint64_t value) {
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

std::uint32_t place_of(const void* where) { return static_cast<std::uint32_t>(scheduler.offset_of(where)); }

std::uint8_t my_device() { return scheduler.self().device; }

const char* kind_of(std::uint8_t scope) {
  constexpr const char* kKinds[] = {" (atomic, block scope)", " (atomic, device scope)", " (atomic)", " (copy)"};
  return scope == kPlain ? "" : kKinds[scope];
}

[[noreturn]] void report_race(const PlainAccess& before, const PlainAccess& now, const void* at) {
  char text[300];
  std::snprintf(text, sizeof(text), "data race at %p: fiber %u %s%s at +0x%llx, fiber %u %s%s at +0x%llx", at, before.fiber,
                before.write ? "wrote" : "read", kind_of(before.scope), static_cast<unsigned long long>(before.where),
                now.fiber, now.write ? "writes" : "reads", kind_of(now.scope), static_cast<unsigned long long>(now.where));
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

/// Whether the same thread has done as much already and released nothing since: then no thread that races with this access has
/// acquired that one.
bool repeats(const PlainAccess& now, const PlainAccess& other) {
  return other.epoch == now.epoch && other.fiber == now.fiber && other.scope == now.scope && (now.mask & ~other.mask) == 0 &&
         other.write >= now.write;
}

/// Notes an access to some of the 8 bytes of a granule, and compares it with those before it.
void access(Granule& granule, const PlainAccess& access, const void* at) {
  for (const PlainAccess& other : granule.accesses)
    if (repeats(access, other)) return;
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

AtomicWord& visit(const void* at, std::size_t bytes, std::uint64_t newest, bool write, const How& how) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  Granule& granule = shadow.of(address);
  const auto mask = static_cast<std::uint8_t>(((1u << bytes) - 1) << address % 8);
  const auto scope = scheduler.part().any_scope ? kAnyScope : static_cast<std::uint8_t>(how.scope);
  if (!scheduler.part().ignored)
    access(granule, {my_epoch(), self(), write, mask, scope, my_device(), place_of(how.where)}, at);
  return shadow.word_of(granule, at, bytes, newest);
}

/// How many of the newest stores the running thread may read. One at least.
std::size_t readable(const AtomicWord& word) {
  std::size_t count = 1;
  while (count < word.count && word.newest(count - 1).step + stale_steps > scheduler.steps() &&
         !mine().now.knows_any(word.newest(count - 1).seen))
    ++count;
  return count;
}

/// How many of the newest stores an access misses, of those that it may miss.
std::size_t missed(std::size_t choices) {
  return std::min<std::size_t>(choices - 1, scheduler.decide(Choice::stale, 0, [&] {
    return scheduler.random().one_in(2) ? 0 : scheduler.random().below(static_cast<std::uint32_t>(choices));
  }));
}

/// By how many of the newest stores a new one is followed at once in the order of its word's: their threads' pasts and its own
/// know nothing of each other, so both orders are possible. Nothing comes between an update and what it read.
std::size_t followed_by(const AtomicWord& word, const How& how) {
  if (how.order == kSeqCst || !scheduler.settings().weak || word.count == 1) return 0;
  const std::size_t choices = readable(word), back = choices == 1 ? 0 : missed(choices);
  return back && word.newest(back - 1).updates ? 0 : back;
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
  next_epoch();
}

/// What goes on with a read-modify-write of what was released before: as far as the scopes of both include each other.
Released passed_on(const Released& before, const How& how) {
  Released released;
  if (how.scope == kSystem) released.all = before.all;
  if (my_device() && before.device == my_device() && how.scope >= kDevice) released.near = before.near;
  return released;
}

/// A store by the running thread, before `back` others, with what it tells.
Store& add(AtomicWord& word, std::uint64_t value, const How& how, std::size_t back = 0) {
  const Knowledge& me = mine();
  if (!scheduler.settings().weak) shadow.drop_stores(word);
  Store& store = shadow.add(word, back);
  store.value = value;
  store.step = scheduler.steps();
  if (how.scope == kSystem) store.released.all = releases(how.order) ? me.now : me.fenced;
  else store.released.all.clear();
  store.released.device = my_device();
  if (!my_device()) {
  } else if (how.scope >= kDevice) store.released.near = releases(how.order) ? me.now : me.fenced_near;
  else store.released.near.clear();
  store.seen.at[scheduler.current()] = my_epoch();
  if (how.order == kSeqCst) meet_everybody();
  else if (releases(how.order)) next_epoch();
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
  watched = {};
  stale_steps = std::uint64_t{8} << scheduler.random().below(scheduler.settings().large ? 10 : 7);
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
    access(shadow.of(address), {my_epoch(), self(), write, mask, kPlain, 0, place_of(where)},
           reinterpret_cast<const void*>(address));
    address += last - first;
  }
}

std::uint64_t load(const void* at, std::size_t bytes, std::uint64_t newest, How how) {
  const Inside here;
  how = done_so(how);
  AtomicWord& word = visit(at, bytes, newest, false, how);
  if (how.order == kSeqCst) meet_everybody();
  const std::size_t choices = how.order == kSeqCst || word.count == 1 ? 1 : readable(word);
  const std::size_t back = choices == 1 ? 0 : missed(choices);
  Store& store = word.newest(back);
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
  add(word, after, how, back);
  if (back == 0) notify_watcher(at, after);
  return back == 0;
}

void update(const void* at, std::size_t bytes, std::uint64_t before, std::uint64_t after, How how) {
  const Inside here;
  how = done_so(how);
  AtomicWord& word = visit(at, bytes, before, true, how);
  const Released before_it = passed_on(word.newest().released, how);
  take_in(word.newest(), how);
  Store& store = add(word, after, how);
  store.released.all.join(before_it.all);
  if (my_device()) store.released.near.join(before_it.near);
  store.updates = true;
  notify_watcher(at, after);
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
