// The platform policy: the few operations that differ between a warp on an SM, a CPU thread and a model checker.
//
// Every algorithm in runtime/ is a template over a platform `P`. It accesses shared words only through `P::block(word)`,
// `P::device(word)` and `P::system(word)`, and each access names its order. So ThreadSanitizer checks on CPU threads the same
// code that runs on 132 SMs. CpuPlatform is here; the GPU's ThreadPlatform and WarpPlatform are in device/platform.cuh.
#pragma once

#include <cstdint>
#include <type_traits>

#include <flywheel/detail/native_atomic.hpp>
#include "global_word.hpp"
#include "order.hpp"

/// Marks a function that is not inlined, because it is rarely called or too large.
#define FLYWHEEL_COLD FLYWHEEL_TASK [[gnu::noinline]] inline

/// Stands before a loop that polls a constant number of times: nvcc unrolls it whole, 512 polls, and that is of no use.
#ifdef __CUDA_ARCH__
#define FLYWHEEL_ROLLED _Pragma("unroll 1")
#else
#define FLYWHEEL_ROLLED
#endif

#ifndef __CUDA_ARCH__
#include <chrono>
#include <thread>
#endif

namespace flywheel {

/// An atomic view of a plain word that other threads access with scope `S`. Every access names its order; there is no
/// default. On a GPU the words of Scope::device must lie in global memory. Each call site states its pair and reason.
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
  /// Performs fetch_and() if `wanted`; otherwise leaves the word alone and returns 0. For a relaxed 8-byte access a GPU
  /// does not wait for the old value before it is used.
  FLYWHEEL_TASK T fetch_and_if(bool wanted, T value, Order o) const {
#ifdef __CUDA_ARCH__
    if constexpr (kGlobal && sizeof(T) == 8)
      if (o == Order::relaxed) return static_cast<T>(detail::global_fetch_and_if(wanted, bits(), static_cast<Bits>(value)));
#endif
    return wanted ? fetch_and(value, o) : T{0};
  }
  /// fetch_add() without the old value: a GPU does not wait for it. The order is relaxed or release.
  FLYWHEEL_TASK void add(T value, Order o) const {
#ifdef __CUDA_ARCH__
    if constexpr (kGlobal) return detail::global_add(bits(), static_cast<Bits>(value), o);
#endif
    native_.fetch_add(value, detail::native(o));
  }
  /// fetch_or() without the old value: a GPU does not wait for it. The order is relaxed or release.
  FLYWHEEL_TASK void set(T wanted, Order o) const {
#ifdef __CUDA_ARCH__
    if constexpr (kGlobal) return detail::global_set(bits(), static_cast<Bits>(wanted), o);
#endif
    native_.fetch_or(wanted, detail::native(o));
  }
  /// Stores `desired` and returns true if the word held `expected`. A failed exchange is a relaxed load: it returns nothing of
  /// the word, so no caller relies on what was written before.
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
/// The CPU's steady clock, in ns.
FLYWHEEL_TASK inline std::uint64_t cpu_now_ns() {
#ifdef __CUDA_ARCH__
  return 0;  // the CPU platform is never instantiated for the device
#else
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
#endif
}

/// Spins, then yields, then sleeps: idle CPU workers must not take the cores from the thread that submits work to them.
FLYWHEEL_TASK inline void cpu_pause([[maybe_unused]] std::uint32_t spins) {
#ifndef __CUDA_ARCH__
  if (spins < 64) return;
  if (spins < 512) return std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::microseconds(spins < 4096 ? 20 : 200));
#endif
}

/// The platform of one CPU thread.
///
/// An algorithm that releases or acquires several words at once calls release_fence(), accesses each word with
/// kAfterRelease, kBeforeAcquire or (read-modify-write) kBetween, and calls acquire_fence(). Where an acquire and a
/// release follow each other directly, it calls fence() once. A GPU executes the fences and relaxed accesses. A CPU
/// executes no fences and orders each access, because ThreadSanitizer does not follow fences.
struct CpuPlatform {
  using Leader = CpuPlatform;  // the platform of the one thread that decides where several lanes poll together

  template <class T>
  FLYWHEEL_TASK static auto block(T& word) {
    return AtomicRef<T, Scope::block>(word);
  }
  template <class T>
  FLYWHEEL_TASK static auto device(T& word) {
    return AtomicRef<T, Scope::device>(word);
  }
  template <class T>
  FLYWHEEL_TASK static auto system(T& word) {
    return AtomicRef<T, Scope::system>(word);
  }

  static constexpr Order kAfterRelease = Order::release;   // of a store or read-modify-write after release_fence()
  static constexpr Order kBeforeAcquire = Order::acquire;  // of a load or read-modify-write before acquire_fence()
  static constexpr Order kBetween = Order::acq_rel;        // of a read-modify-write between the two
  FLYWHEEL_TASK static void release_fence() {}
  FLYWHEEL_TASK static void acquire_fence() {}
  FLYWHEEL_TASK static void fence() {}
  FLYWHEEL_TASK static void acquire_fence_of_system() {}  // acquire_fence() for words that the host stores
  FLYWHEEL_TASK static void release_fence_of_system() {}  // release_fence() for words that the host loads

  // Operations of a whole warp. Only the inbox poller uses more than one lane.
  FLYWHEEL_TASK static constexpr std::uint32_t lane() { return 0; }
  FLYWHEEL_TASK static constexpr std::uint32_t lanes() { return 1; }
  FLYWHEEL_TASK static void converge() {}
  FLYWHEEL_TASK static bool any(bool vote) { return vote; }
  /// The lanes' votes, lane l's in bit l.
  FLYWHEEL_TASK static std::uint32_t votes(bool vote) { return vote; }
  /// Returns word w of an array that is distributed over the lanes: lane i holds words i, i + lanes(), ... in `mine`.
  FLYWHEEL_TASK static std::uint32_t word_of_lanes(const std::uint32_t* mine, std::uint32_t w) { return mine[w]; }

  /// A clock that all workers share, in ns. For time limits.
  FLYWHEEL_TASK static std::uint64_t now_ns() { return cpu_now_ns(); }
  /// The most that one interval between two clock readings counts towards a wait's budget, in ns (runtime/base/wait.hpp).
  /// A waiting thread normally reads the clock at least every few milliseconds, so a longer interval means that the
  /// thread was stopped or not scheduled. 0: threads of this platform cannot be stopped.
  static constexpr std::uint64_t kMostBetweenReadings = 20'000'000;
  /// The worker's own clock, for traces. On a GPU it is finer than now_ns(), but each worker's clock has its own zero.
  FLYWHEEL_TASK static std::uint64_t ticks() { return cpu_now_ns(); }
  static constexpr bool kOneClock = true;    // ticks() and now_ns() are the same clock
  static constexpr bool kNearMemory = true;  // a load of a shared word costs little compared with a task
  /// Backs off in a polling loop; `spins` is the number of polls so far.
  FLYWHEEL_TASK static void pause(std::uint32_t spins) { cpu_pause(spins); }
  /// The same for polls that many threads make, none of which is in a hurry: a GPU sleeps some 0.5 us from the first on.
  FLYWHEEL_TASK static void doze(std::uint32_t spins) { cpu_pause(spins); }
  /// Lets so many ticks of the SM's clock pass, on a GPU.
  FLYWHEEL_TASK static void wait_ticks(std::uint32_t) {}
  /// For wait reports: the caller's packed WaitPart in a compiled run, or 0. A CPU thread plays all roles, so it has none.
  FLYWHEEL_TASK static std::uint64_t waiting_part() { return 0; }
};

/// Places a word on a cache line of its own, so that polling one word does not slow down writes to another.
template <class T>
struct alignas(128) Padded {
  T value;
};

}  // namespace detail
}  // namespace flywheel
