// How much of what can happen has happened, over many runs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace flywheel::simulate {

/// Lies in zeroed memory.
class Reached {
 public:
  static std::uint64_t mix(std::uint64_t x) {
    x *= 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 32)) * 0xbf58476d1ce4e5b9ull;
    return x ^ (x >> 29);
  }
  /// `hash`: of where each thread stands.
  void note_state(std::uint64_t hash) {
    const std::uint64_t mixed = mix(hash);
    const auto rank = static_cast<std::uint8_t>(1 + __builtin_clzll((mixed << kIndexBits) | 1));
    std::uint8_t& most = ranks_[mixed >> (64 - kIndexBits)];
    if (rank > most) most = rank;
  }
  /// A thread stopped at one place, and another went on from the other.
  void note_switch(std::uint64_t from, std::uint64_t to) {
    const std::uint64_t bit = mix(mix(from) + to) % (kSwitchWords * 64);
    switches_[bit / 64] |= std::uint64_t{1} << bit % 64;
  }
  /// A process that has only just been forked maps this memory at once: shared memory is mapped by the 64 KiB when it is read.
  void touch() const {
    for (std::size_t i = 0; i < kSwitchWords; i += kBytesMapped / sizeof(switches_[0]))
      (void)*static_cast<const volatile std::uint64_t*>(&switches_[i]);
  }
  void add(const Reached& other) {
    for (std::size_t i = 0; i < kRanks; ++i) ranks_[i] = std::max(ranks_[i], other.ranks_[i]);
    for (std::size_t i = 0; i < kSwitchWords; ++i) switches_[i] |= other.switches_[i];
  }

  /// Different ones, within 1% or so: HyperLogLog (Flajolet, Fusy, Gandouet, Meunier 2007).
  double states() const {
    double sum = 0;
    std::size_t empty = 0;
    for (const std::uint8_t rank : ranks_) sum += std::ldexp(1., -rank), empty += !rank;
    const double n = kRanks, estimate = 0.7213 / (1 + 1.079 / n) * n * n / sum;
    return estimate < 2.5 * n && empty ? n * std::log(n / static_cast<double>(empty)) : estimate;
  }
  /// Different ones, corrected for those that share a bit.
  double switches() const {
    std::size_t set = 0;
    for (const std::uint64_t word : switches_) set += static_cast<std::size_t>(__builtin_popcountll(word));
    const double bits = kSwitchWords * 64.;
    return -bits * std::log(1 - std::min(static_cast<double>(set), bits - 1) / bits);
  }

 private:
  static constexpr int kIndexBits = 14;
  static constexpr std::size_t kRanks = std::size_t{1} << kIndexBits, kSwitchWords = std::size_t{1} << 16;
  static constexpr std::size_t kBytesMapped = std::size_t{64} << 10;
  std::uint8_t ranks_[kRanks];
  std::uint64_t switches_[kSwitchWords];
};

}  // namespace flywheel::simulate
