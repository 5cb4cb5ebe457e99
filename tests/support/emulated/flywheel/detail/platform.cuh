// In place of device/platform.cuh: the GPU's platforms on fibers. Looks at memory that others write let other fibers
// run from time to time, so that no loop starves those it waits for.
#pragma once

#include "runtime/base/platform.hpp"
#include "support/emulated/cuda.hpp"
#include "support/emulated/fences.hpp"

namespace flywheel::detail {

/// The time first: who asks for two clocks at once must not be held up between them.
inline std::uint64_t global_timer_ns() {
  const std::uint64_t now = cpu_now_ns();
  testing::EmulatedBlock::current()->yield();
  return now;
}

/// As AtomicRef, from a fiber. Fibers of the block that wait without looking at memory are told of stores in block scope.
template <class T, Scope S>
class FiberAtomicRef {
 public:
  explicit FiberAtomicRef(T& word) : word_(word) { testing::EmulatedBlock::current()->look(); }
  T load(Order o) const { return word_.load(o); }
  void store(T value, Order o) const {
    word_.store(value, o);
    if constexpr (S == Scope::block) testing::EmulatedBlock::current()->wake_all();
  }
  T exchange(T value, Order o) const { return word_.exchange(value, o); }
  T fetch_add(T value, Order o) const { return word_.fetch_add(value, o); }
  T fetch_or(T value, Order o) const { return word_.fetch_or(value, o); }
  T fetch_and(T value, Order o) const { return word_.fetch_and(value, o); }
  T fetch_and_if(bool wanted, T value, Order o) const { return word_.fetch_and_if(wanted, value, o); }
  void add(T value, Order o) const { word_.add(value, o); }
  void set(T wanted, Order o) const { word_.set(wanted, o); }
  bool compare_exchange(T expected, T desired, Order o) const { return word_.compare_exchange(expected, desired, o); }

 private:
  AtomicRef<T, S> word_;
};
std::uint64_t waiting_part();  // see roles.cuh

struct ThreadPlatform : testing::FencedPlatform {
  using Leader = ThreadPlatform;

  template <class T>
  static auto block(T& word) {
    return detail::FiberAtomicRef<T, Scope::block>(word);
  }
  template <class T>
  static auto device(T& word) {
    return detail::FiberAtomicRef<T, Scope::device>(word);
  }
  template <class T>
  static auto system(T& word) {
    return detail::FiberAtomicRef<T, Scope::system>(word);
  }

  static std::uint64_t now_ns() { return detail::global_timer_ns(); }
  static std::uint64_t ticks() { return detail::cpu_now_ns(); }
  static constexpr bool kOneClock = false;
  static constexpr bool kNearMemory = false;
  static void pause(std::uint32_t) { testing::EmulatedBlock::current()->yield(); }
  static std::uint64_t waiting_part() { return detail::waiting_part(); }
};

struct WarpPlatform : ThreadPlatform {
  static constexpr std::uint32_t kAll = 0xffffffffu;
  static std::uint32_t lane() { return threadIdx.x % 32; }
  static constexpr std::uint32_t lanes() { return 32; }
  static void converge() { __syncwarp(kAll); }
  static bool any(bool vote) { return __any_sync(kAll, vote); }
  static std::uint32_t votes(bool vote) { return __ballot_sync(kAll, vote); }
  static std::uint32_t word_of_lanes(const std::uint32_t* mine, std::uint32_t w) {
    return __shfl_sync(kAll, mine[w / lanes()], static_cast<int>(w % lanes()));
  }
};

}  // namespace flywheel::detail
