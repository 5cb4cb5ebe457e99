// The functions that the compiler calls for each access to memory with -fsanitize=thread: ours, in place of ThreadSanitizer's.
#include <cstddef>
#include <cstdint>

#include "simulate/atomics.hpp"
#include "simulate/leaks.hpp"

using namespace flywheel::simulate;

#define FLYWHEEL_CALLER __builtin_return_address(0)
#define FLYWHEEL_HOW(order) \
  How { order, kSystem, FLYWHEEL_CALLER }

namespace {

/// The simulator's own code calls functions of the standard library's templates that the program has, too: the linker keeps one
/// of each, the program's. What such a function does for the simulator is nobody's access.
void plain(const void* at, std::size_t bytes, bool write, const void* where) {
  if (scheduler.on() && !scheduler.part().ignored && !leaks::OurOwn::depth) memory::plain(at, bytes, write, where);
}

}  // namespace

#define FLYWHEEL_ATOMIC(bits, T)                                                                   \
  T __tsan_atomic##bits##_load(const volatile T* a, int o) { return load<T>(a, FLYWHEEL_HOW(o)); } \
  void __tsan_atomic##bits##_store(volatile T* a, T v, int o) { store<T>(a, v, FLYWHEEL_HOW(o)); } \
  T __tsan_atomic##bits##_exchange(volatile T* a, T v, int o) {                                    \
    return update<T>(a, FLYWHEEL_HOW(o), [v](T) { return v; });                                    \
  }                                                                                                \
  T __tsan_atomic##bits##_fetch_add(volatile T* a, T v, int o) {                                   \
    return update<T>(a, FLYWHEEL_HOW(o), [v](T x) { return static_cast<T>(x + v); });              \
  }                                                                                                \
  T __tsan_atomic##bits##_fetch_sub(volatile T* a, T v, int o) {                                   \
    return update<T>(a, FLYWHEEL_HOW(o), [v](T x) { return static_cast<T>(x - v); });              \
  }                                                                                                \
  T __tsan_atomic##bits##_fetch_and(volatile T* a, T v, int o) {                                   \
    return update<T>(a, FLYWHEEL_HOW(o), [v](T x) { return static_cast<T>(x & v); });              \
  }                                                                                                \
  T __tsan_atomic##bits##_fetch_or(volatile T* a, T v, int o) {                                    \
    return update<T>(a, FLYWHEEL_HOW(o), [v](T x) { return static_cast<T>(x | v); });              \
  }                                                                                                \
  T __tsan_atomic##bits##_fetch_xor(volatile T* a, T v, int o) {                                   \
    return update<T>(a, FLYWHEEL_HOW(o), [v](T x) { return static_cast<T>(x ^ v); });              \
  }                                                                                                \
  bool __tsan_atomic##bits##_compare_exchange_strong(volatile T* a, T* e, T v, int o, int f) {     \
    return compare_exchange<T>(a, *e, v, FLYWHEEL_HOW(o), f);                                      \
  }                                                                                                \
  bool __tsan_atomic##bits##_compare_exchange_weak(volatile T* a, T* e, T v, int o, int f) {       \
    return compare_exchange<T>(a, *e, v, FLYWHEEL_HOW(o), f);                                      \
  }

#define FLYWHEEL_PLAIN(bytes)                                                             \
  void __tsan_read##bytes(void* a) { plain(a, bytes, false, FLYWHEEL_CALLER); }           \
  void __tsan_write##bytes(void* a) { plain(a, bytes, true, FLYWHEEL_CALLER); }           \
  void __tsan_unaligned_read##bytes(void* a) { plain(a, bytes, false, FLYWHEEL_CALLER); } \
  void __tsan_unaligned_write##bytes(void* a) { plain(a, bytes, true, FLYWHEEL_CALLER); } \
  void __tsan_volatile_read##bytes(void* a) { plain(a, bytes, false, FLYWHEEL_CALLER); }  \
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
  memory::fence(FLYWHEEL_HOW(order));
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

#undef FLYWHEEL_HOW
