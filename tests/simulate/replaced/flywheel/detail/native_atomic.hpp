// In place of runtime/base/native_atomic.hpp: atomics that tell the simulator their scope.
#pragma once

#include <cstring>

#include "runtime/base/order.hpp"
#include "simulate/scoped.hpp"

#define FLYWHEEL_TASK

namespace flywheel::detail {

constexpr Order native(Order order) { return order; }

/// As std::atomic_ref, for words of 1, 2, 4 or 8 bytes. Inlined, so that each use is a place of its own.
template <class T, Scope S>
class SimulatedAtomic {
 public:
  explicit SimulatedAtomic(T& word) : word_(&word) {}
  [[gnu::always_inline]] T load(Order o) const { return value(simulate::scoped_load(word_, sizeof(T), o, S)); }
  [[gnu::always_inline]] void store(T v, Order o) const { simulate::scoped_store(word_, sizeof(T), bits(v), o, S); }
  [[gnu::always_inline]] T exchange(T v, Order o) const { return update(simulate::Change::exchange, v, o); }
  [[gnu::always_inline]] T fetch_add(T v, Order o) const { return update(simulate::Change::add, v, o); }
  [[gnu::always_inline]] T fetch_or(T v, Order o) const { return update(simulate::Change::set, v, o); }
  [[gnu::always_inline]] T fetch_and(T v, Order o) const { return update(simulate::Change::mask, v, o); }
  [[gnu::always_inline]] bool compare_exchange_strong(T& expected, T desired, Order o, Order) const {
    return simulate::scoped_compare_exchange(word_, sizeof(T), bits(expected), bits(desired), o, S);
  }

 private:
  static std::uint64_t bits(const T& v) {
    std::uint64_t all = 0;
    std::memcpy(&all, &v, sizeof(T));
    return all;
  }
  static T value(std::uint64_t all) {
    T v;
    std::memcpy(&v, &all, sizeof(T));
    return v;
  }
  [[gnu::always_inline]] T update(simulate::Change change, T v, Order o) const {
    return value(simulate::scoped_update(word_, sizeof(T), change, bits(v), o, S));
  }

  T* word_;
};

template <class T, Scope S>
struct NativeAtomic {
  using type = SimulatedAtomic<T, S>;
};

}  // namespace flywheel::detail
