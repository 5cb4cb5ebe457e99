// The platform policy: the few things that differ between a warp on an SM, a CPU thread and a model checker.
//
// Every algorithm in runtime/ is a template over a platform `P` and touches shared words only through
// `P::block(word)`, `P::device(word)` and `P::system(word)`, each call naming its order. So the code that runs on
// 132 SMs is the code that ThreadSanitizer sees on CPU threads.
#pragma once

#include <cstdint>
#include <type_traits>

#include "global_word.hpp"
#include <flywheel/detail/native_atomic.hpp>
#include "order.hpp"

/// A function of its own: rarely called, or too large to be part of its caller.
#define FLYWHEEL_COLD FLYWHEEL_TASK [[gnu::noinline]] inline

#ifndef __CUDA_ARCH__
#include <chrono>
#include <thread>
#endif

namespace flywheel {

/// An atomic view of a plain word that others see with scope `S`. Never defaults an order. On a GPU words of Scope::device lie
/// in global memory.
template <class T, Scope S>
class AtomicRef {
 public:
  FLYWHEEL_TASK explicit AtomicRef(T& word) : native_(word), word_(&word) {}
  FLYWHEEL_TASK T load(Order o) const { return native_.load(detail::native(o)); }
  FLYWHEEL_TASK void store(T value, Order o) const { native_.store(value, detail::native(o)); }
  FLYWHEEL_TASK T exchange(T value, Order o) const {
#ifdef __CUDA_ARCH__
    if constexpr (kGlobal) return static_cast<T>(detail::global_exchange(bits(), static_cast<Bits>(value), o));
#endif
    return native_.exchange(value, detail::native(o));
  }
  FLYWHEEL_TASK T fetch_add(T value, Order o) const {
#ifdef __CUDA_ARCH__
    if constexpr (kGlobal) return static_cast<T>(detail::global_fetch_add(bits(), static_cast<Bits>(value), o));
#endif
    return native_.fetch_add(value, detail::native(o));
  }
  FLYWHEEL_TASK T fetch_or(T value, Order o) const {
#ifdef __CUDA_ARCH__
    if constexpr (kGlobal) return static_cast<T>(detail::global_fetch_or(bits(), static_cast<Bits>(value), o));
#endif
    return native_.fetch_or(value, detail::native(o));
  }
  FLYWHEEL_TASK T fetch_and(T value, Order o) const {
#ifdef __CUDA_ARCH__
    if constexpr (kGlobal) return static_cast<T>(detail::global_fetch_and(bits(), static_cast<Bits>(value), o));
#endif
    return native_.fetch_and(value, detail::native(o));
  }
  /// Only if `wanted`; 0 otherwise. Of 8 bytes and relaxed, a GPU does not wait for the old value before it is used.
  FLYWHEEL_TASK T fetch_and_if(bool wanted, T value, Order o) const {
#ifdef __CUDA_ARCH__
    if constexpr (kGlobal && sizeof(T) == 8)
      if (o == Order::relaxed) return static_cast<T>(detail::global_fetch_and_if(wanted, bits(), static_cast<Bits>(value)));
#endif
    return wanted ? fetch_and(value, o) : T{0};
  }
  /// For those who do not want the old value, and do not wait for it. Relaxed or release.
  FLYWHEEL_TASK void add(T value, Order o) const {
#ifdef __CUDA_ARCH__
    if constexpr (kGlobal) return detail::global_add(bits(), static_cast<Bits>(value), o);
#endif
    native_.fetch_add(value, detail::native(o));
  }
  FLYWHEEL_TASK void set(T wanted, Order o) const {
#ifdef __CUDA_ARCH__
    if constexpr (kGlobal) return detail::global_set(bits(), static_cast<Bits>(wanted), o);
#endif
    native_.fetch_or(wanted, detail::native(o));
  }
  /// True if `word` held `expected` and now holds `desired`. A failure reads relaxed.
  FLYWHEEL_TASK bool compare_exchange(T expected, T desired, Order o) const {
    return native_.compare_exchange_strong(expected, desired, detail::native(o), detail::native(Order::relaxed));
  }

 private:
  static constexpr bool kGlobal = S == Scope::device && std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8);
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  FLYWHEEL_TASK const Bits* bits() const { return reinterpret_cast<const Bits*>(word_); }

  typename detail::NativeAtomic<T, S>::type native_;
  [[maybe_unused]] T* word_;
};

namespace detail {
FLYWHEEL_TASK inline std::uint64_t cpu_now_ns() {
#ifdef __CUDA_ARCH__
  return 0;  // the CPU platform is never instantiated for the device
#else
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
#endif
}

/// Spin, then yield, then sleep: idle CPU workers must not starve the thread that would feed them.
FLYWHEEL_TASK inline void cpu_pause([[maybe_unused]] std::uint32_t spins) {
#ifndef __CUDA_ARCH__
  if (spins < 64) return;
  if (spins < 512) return std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::microseconds(spins < 4096 ? 20 : 200));
#endif
}
}  // namespace detail

/// One CPU thread.
///
/// Where many words are released or acquired at once, the algorithms say release_fence(), touch each word with
/// kAfterRelease, kBeforeAcquire or (read-modify-write) kBetween, and say acquire_fence(), or once fence() where the one comes
/// right after the other. A GPU does fences and relaxed accesses. A CPU does no fence and orders each access, which
/// ThreadSanitizer can follow.
struct CpuPlatform {
  using Leader = CpuPlatform;  // who decides where several lanes poll together

  template <class T>
  FLYWHEEL_TASK static auto block(T& word) { return AtomicRef<T, Scope::block>(word); }
  template <class T>
  FLYWHEEL_TASK static auto device(T& word) { return AtomicRef<T, Scope::device>(word); }
  template <class T>
  FLYWHEEL_TASK static auto system(T& word) { return AtomicRef<T, Scope::system>(word); }

  static constexpr Order kAfterRelease = Order::release;
  static constexpr Order kBeforeAcquire = Order::acquire;
  static constexpr Order kBetween = Order::acq_rel;
  FLYWHEEL_TASK static void release_fence() {}
  FLYWHEEL_TASK static void acquire_fence() {}
  FLYWHEEL_TASK static void fence() {}

  // The inbox poller's poll is the one thing that a whole warp does together.
  FLYWHEEL_TASK static constexpr std::uint32_t lane() { return 0; }
  FLYWHEEL_TASK static constexpr std::uint32_t lanes() { return 1; }
  FLYWHEEL_TASK static void converge() {}
  FLYWHEEL_TASK static bool any(bool vote) { return vote; }
  /// Word w of those that are shared out over the lanes: lane i has words i, i + lanes(), ...
  FLYWHEEL_TASK static std::uint32_t word_of_lanes(const std::uint32_t* mine, std::uint32_t w) { return mine[w]; }

  FLYWHEEL_TASK static std::uint64_t now_ns() { return detail::cpu_now_ns(); }
  /// In a wait's budget, see runtime/base/wait: a waiting thread reads the clock every few milliseconds at most. 0: nothing stops it.
  static constexpr std::uint64_t kMostBetweenReadings = 20'000'000;
  /// The worker's own clock, for traces: finer than now_ns() on a GPU, but each worker's starts elsewhere.
  FLYWHEEL_TASK static std::uint64_t ticks() { return detail::cpu_now_ns(); }
  static constexpr bool kOneClock = true;  // ticks() and now_ns() are the same
  static constexpr bool kNearMemory = true;  // a look at a shared word costs little beside a task
  FLYWHEEL_TASK static void pause(std::uint32_t spins) { detail::cpu_pause(spins); }
  /// Between a thread's own arrival at a meeting and its first look at who else is there.
  FLYWHEEL_TASK static void let_others_arrive() {}
  /// For reports: the caller's part in a compiled run, see WaitPart. A thread that plays all roles has none to tell.
  FLYWHEEL_TASK static std::uint64_t waiting_part() { return 0; }
};

/// Keeps a word on a cache line of its own, so that pollers of one word never slow down writers of another.
template <class T>
struct alignas(128) Padded {
  T value;
};

}  // namespace flywheel
