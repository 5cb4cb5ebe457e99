// Stamped words: 4 bytes of data and the number of the pass that wrote them, in one 8-byte word (as in NCCL's LL protocol).
//
// Value and stamp are stored and loaded together, so a reader needs no second word to know that the data is there. This
// is the fastest way from one worker to another: relaxed order suffices, because a word publishes nothing but itself.
// Early tasks of compiled graphs use it:
//
//   store part:    put_stamped(y[row], sum, block.stamp()); ... block.sent();
//   compute part:  block.await_sent(); block.spin([&] { return (word = look_at(x[i])).stamp() == block.stamp(); });
//
// Stamps and the reuse of buffers: README.md. Measured: tuning.md.
#pragma once

#include <bit>
#include <cstdint>

#include "platform.hpp"

namespace flywheel {

/// One stamped word.
struct alignas(8) Stamped {
  std::uint64_t word;  // {stamp:32 | value:32}

  FLYWHEEL_TASK constexpr std::uint32_t bits() const { return static_cast<std::uint32_t>(word); }
  FLYWHEEL_TASK constexpr std::uint32_t stamp() const { return static_cast<std::uint32_t>(word >> 32); }
  FLYWHEEL_TASK float value() const { return std::bit_cast<float>(bits()); }
};

/// Two adjacent stamped words, which Block::load_stamped_pair() reads with one load. Check both stamps.
struct alignas(16) StampedPair {
  Stamped first, second;
};

/// Combines a value and a stamp.
FLYWHEEL_TASK constexpr Stamped stamped(std::uint32_t bits, std::uint32_t stamp) { return {std::uint64_t{stamp} << 32 | bits}; }
FLYWHEEL_TASK inline Stamped stamped(float value, std::uint32_t stamp) {
  return stamped(std::bit_cast<std::uint32_t>(value), stamp);
}

/// Stores a value with its stamp. Relaxed: pairs with the loads in look_at() and Block::load_stamped_pair(), which see both
/// halves of the word or neither. A stamped word publishes no other data.
FLYWHEEL_TASK inline void put_stamped(Stamped& to, std::uint32_t bits, std::uint32_t stamp) {
  AtomicRef<std::uint64_t, Scope::device>(to.word).store(stamped(bits, stamp).word, Order::relaxed);
}
FLYWHEEL_TASK inline void put_stamped(Stamped& to, float value, std::uint32_t stamp) {
  put_stamped(to, std::bit_cast<std::uint32_t>(value), stamp);
}

/// Loads a stamped word. Relaxed: pairs with put_stamped(). The value is valid if the stamp is that of the current pass;
/// the load orders no other data.
FLYWHEEL_TASK inline Stamped look_at(const Stamped& at) {
  return {AtomicRef<std::uint64_t, Scope::device>(const_cast<std::uint64_t&>(at.word)).load(Order::relaxed)};
}

}  // namespace flywheel
