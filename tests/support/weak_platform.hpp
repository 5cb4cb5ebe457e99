// A CPU platform with one memory order made weaker than the code asks for.
//
// The algorithms of runtime/ name an order at each access. Here one of them (say, the release of a slot's
// store) is replaced by a weaker one, on the words a test names. ThreadSanitizer must then see a race on the
// plain memory that travels over the wire; if it does not, either the order was not needed or the test does
// not test it.
#pragma once

#include <cstddef>
#include <string_view>

#include "runtime/base/platform.hpp"
#include "support/internals.hpp"

namespace flywheel::testing {

enum class Access { load, store, exchange, fetch_add, fetch_or, fetch_and, compare_exchange };

/// On the words that the wire's test calls `words`, accesses that ask for `from` get `to`.
struct Mutation {
  std::string_view wire;
  std::string_view words;
  Access access;
  Order from;
  Order to;
};

/// Set before any thread starts, constant while they run.
struct Weakening {
  const Mutation* mutation = nullptr;
  const std::byte* first = nullptr;
  const std::byte* last = nullptr;
};
inline Weakening weakening;

/// Tells which memory a mutation means by `name`.
inline void name_words(std::string_view name, const void* words, std::size_t bytes) {
  if (!weakening.mutation || weakening.mutation->words != name) return;
  weakening.first = static_cast<const std::byte*>(words);
  weakening.last = weakening.first + bytes;
}
template <class T>
void name_word(std::string_view name, const T& word) {
  name_words(name, &word, sizeof(word));
}

/// All accesses are inlined, so that each has a place of its own in the program, by which the simulator knows it.
template <class T, Scope S>
class WeakRef {
 public:
  explicit WeakRef(T& word) : word_(&word), native_(word) {}
  [[gnu::always_inline]] T load(Order o) const { return native_.load(order(Access::load, o)); }
  [[gnu::always_inline]] void store(T value, Order o) const { native_.store(value, order(Access::store, o)); }
  T exchange(T value, Order o) const { return native_.exchange(value, order(Access::exchange, o)); }
  T fetch_add(T value, Order o) const { return native_.fetch_add(value, order(Access::fetch_add, o)); }
  T fetch_or(T value, Order o) const { return native_.fetch_or(value, order(Access::fetch_or, o)); }
  T fetch_and(T value, Order o) const { return native_.fetch_and(value, order(Access::fetch_and, o)); }
  T fetch_and_if(bool wanted, T value, Order o) const { return wanted ? fetch_and(value, o) : T{0}; }
  void add(T value, Order o) const { native_.add(value, order(Access::fetch_add, o)); }
  void set(T wanted, Order o) const { native_.set(wanted, order(Access::fetch_or, o)); }
  bool compare_exchange(T expected, T desired, Order o) const {
    return native_.compare_exchange(expected, desired, order(Access::compare_exchange, o));
  }

 private:
  Order order(Access access, Order outcome) const {
    const Mutation* m = weakening.mutation;
    const auto* at = reinterpret_cast<const std::byte*>(word_);
    const bool meant = m && m->access == access && m->from == outcome && at >= weakening.first && at < weakening.last;
    return meant ? m->to : outcome;
  }

  T* word_;
  AtomicRef<T, S> native_;
};

struct WeakPlatform : CpuPlatform {
  using Leader = WeakPlatform;

  template <class T>
  static auto block(T& word) {
    return WeakRef<T, Scope::block>(word);
  }
  template <class T>
  static auto device(T& word) {
    return WeakRef<T, Scope::device>(word);
  }
  template <class T>
  static auto system(T& word) {
    return WeakRef<T, Scope::system>(word);
  }
};

}  // namespace flywheel::testing
