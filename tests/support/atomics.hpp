// Counting in memory that tasks share, on either processor.
#pragma once

#include "runtime/base/platform.hpp"
#include "support/internals.hpp"

namespace flywheel::testing {

/// Relaxed: tests read the sum after the run, whose completion orders it.
template <class T>
FLYWHEEL_TASK T add_to(T& word, T value) {
  return AtomicRef<T, Scope::device>(word).fetch_add(value, Order::relaxed);
}
template <class T>
FLYWHEEL_TASK T peek_at(T& word) {
  return AtomicRef<T, Scope::device>(word).load(Order::relaxed);
}
template <class T>
FLYWHEEL_TASK void put_in(T& word, T value) {
  AtomicRef<T, Scope::device>(word).store(value, Order::relaxed);
}

/// A hash of two numbers, SplitMix64's finaliser (Steele, Lea, Flood, OOPSLA 2014): order matters. Inline: see unwatched.hpp.
FLYWHEEL_TASK __attribute__((always_inline)) constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15ull + b + 0x632be59bd9b4e019ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace flywheel::testing
