// The functions that the compiler calls for each access to memory with -fsanitize=thread: ours, in place of ThreadSanitizer's.
#include <cstddef>
#include <cstdint>

#include "simulate/memory.hpp"
#include "simulate/scheduler.hpp"

using flywheel::simulate::Kind;
using flywheel::simulate::scheduler;
namespace memory = flywheel::simulate::memory;

#define FLYWHEEL_CALLER __builtin_return_address(0)

namespace {

template <class T>
T load(const volatile T* at, int order, const void* where) {
  const T* word = const_cast<const T*>(at);
  if (!scheduler.on() || scheduler.is_local(word)) return *word;
  scheduler.step(Kind::load, where);
  return static_cast<T>(memory::load(word, sizeof(T), *word, order, where));
}

template <class T>
void store(volatile T* at, T value, int order, const void* where) {
  T* word = const_cast<T*>(at);
  if (scheduler.on() && !scheduler.is_local(word)) {
    scheduler.step(Kind::store, where);
    memory::store(word, sizeof(T), *word, value, order, where);
  }
  *word = value;
}

template <class T, class New>
T update(volatile T* at, int order, const void* where, New value_after) {
  T* word = const_cast<T*>(at);
  const bool seen = scheduler.on() && !scheduler.is_local(word);
  if (seen) scheduler.step(Kind::update, where);
  const T before = *word;
  const T after = value_after(before);
  if (seen) memory::update(word, sizeof(T), before, after, order, where);
  *word = after;
  return before;
}

template <class T>
bool compare_exchange(volatile T* at, T* expected, T desired, int order, int failure, const void* where) {
  T* word = const_cast<T*>(at);
  const bool watched = scheduler.on() && !scheduler.is_local(word);
  if (watched) scheduler.step(Kind::update, where);
  const T before = *word;
  const T seen = watched ? static_cast<T>(memory::load(word, sizeof(T), before, failure, where)) : before;
  if (seen == *expected && before == *expected) {
    if (watched) memory::update(word, sizeof(T), before, desired, order, where);
    *word = desired;
    return true;
  }
  *expected = seen == *expected ? before : seen;
  return false;
}

void plain(const void* at, std::size_t bytes, bool write, const void* where) {
  if (scheduler.on() && !scheduler.part().ignored) memory::plain(at, bytes, write, where);
}

}  // namespace

#define FLYWHEEL_ATOMIC(bits, T)                                                                                           \
  T __tsan_atomic##bits##_load(const volatile T* a, int o) { return load<T>(a, o, FLYWHEEL_CALLER); }                       \
  void __tsan_atomic##bits##_store(volatile T* a, T v, int o) { store<T>(a, v, o, FLYWHEEL_CALLER); }                       \
  T __tsan_atomic##bits##_exchange(volatile T* a, T v, int o) { return update<T>(a, o, FLYWHEEL_CALLER, [v](T) { return v; }); } \
  T __tsan_atomic##bits##_fetch_add(volatile T* a, T v, int o) {                                                            \
    return update<T>(a, o, FLYWHEEL_CALLER, [v](T x) { return static_cast<T>(x + v); });                                    \
  }                                                                                                                         \
  T __tsan_atomic##bits##_fetch_sub(volatile T* a, T v, int o) {                                                            \
    return update<T>(a, o, FLYWHEEL_CALLER, [v](T x) { return static_cast<T>(x - v); });                                    \
  }                                                                                                                         \
  T __tsan_atomic##bits##_fetch_and(volatile T* a, T v, int o) {                                                            \
    return update<T>(a, o, FLYWHEEL_CALLER, [v](T x) { return static_cast<T>(x & v); });                                    \
  }                                                                                                                         \
  T __tsan_atomic##bits##_fetch_or(volatile T* a, T v, int o) {                                                             \
    return update<T>(a, o, FLYWHEEL_CALLER, [v](T x) { return static_cast<T>(x | v); });                                    \
  }                                                                                                                         \
  T __tsan_atomic##bits##_fetch_xor(volatile T* a, T v, int o) {                                                            \
    return update<T>(a, o, FLYWHEEL_CALLER, [v](T x) { return static_cast<T>(x ^ v); });                                    \
  }                                                                                                                         \
  bool __tsan_atomic##bits##_compare_exchange_strong(volatile T* a, T* e, T v, int o, int f) {                              \
    return compare_exchange<T>(a, e, v, o, f, FLYWHEEL_CALLER);                                                             \
  }                                                                                                                         \
  bool __tsan_atomic##bits##_compare_exchange_weak(volatile T* a, T* e, T v, int o, int f) {                                \
    return compare_exchange<T>(a, e, v, o, f, FLYWHEEL_CALLER);                                                             \
  }

#define FLYWHEEL_PLAIN(bytes)                                                                              \
  void __tsan_read##bytes(void* a) { plain(a, bytes, false, FLYWHEEL_CALLER); }                            \
  void __tsan_write##bytes(void* a) { plain(a, bytes, true, FLYWHEEL_CALLER); }                            \
  void __tsan_unaligned_read##bytes(void* a) { plain(a, bytes, false, FLYWHEEL_CALLER); }                  \
  void __tsan_unaligned_write##bytes(void* a) { plain(a, bytes, true, FLYWHEEL_CALLER); }                  \
  void __tsan_volatile_read##bytes(void* a) { plain(a, bytes, false, FLYWHEEL_CALLER); }                   \
  void __tsan_volatile_write##bytes(void* a) { plain(a, bytes, true, FLYWHEEL_CALLER); }

extern "C" {

FLYWHEEL_ATOMIC(8, std::uint8_t)
FLYWHEEL_ATOMIC(16, std::uint16_t)
FLYWHEEL_ATOMIC(32, std::uint32_t)
FLYWHEEL_ATOMIC(64, std::uint64_t)
FLYWHEEL_PLAIN(1)
FLYWHEEL_PLAIN(2)
FLYWHEEL_PLAIN(4)
FLYWHEEL_PLAIN(8)
FLYWHEEL_PLAIN(16)

void __tsan_atomic_thread_fence(int order) {
  if (!scheduler.on()) return;
  scheduler.step(Kind::fence, FLYWHEEL_CALLER);
  memory::fence(order, FLYWHEEL_CALLER);
}
void __tsan_atomic_signal_fence(int) {}
void __tsan_read_range(void* a, std::size_t bytes) { plain(a, bytes, false, FLYWHEEL_CALLER); }
void __tsan_write_range(void* a, std::size_t bytes) { plain(a, bytes, true, FLYWHEEL_CALLER); }
void __tsan_vptr_update(void** a, void* value) {
  if (*a != value) plain(a, sizeof(*a), true, FLYWHEEL_CALLER);
}
void __tsan_vptr_read(void** a) { plain(a, sizeof(*a), false, FLYWHEEL_CALLER); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}

}  // extern "C"
