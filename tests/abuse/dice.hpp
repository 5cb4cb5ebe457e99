// Draws of one operation. Each operation has dice of its own, made from the seed, its thread and its number: what one draws
// does not depend on what others did.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace flywheel::abuse {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  Dice(std::uint64_t seed, std::uint64_t thread, std::uint64_t number) : state_(seed) {
    state_ = next() ^ thread;
    state_ = next() ^ number;
  }

  /// Splitmix64.
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(next() % n); }
  std::uint32_t between(std::uint32_t low, std::uint32_t high) { return low + below(high - low + 1); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }
  template <class T>
  T of(std::initializer_list<T> choices) {
    return *(choices.begin() + below(static_cast<std::uint32_t>(choices.size())));
  }

 private:
  std::uint64_t state_;
};

}  // namespace flywheel::abuse
