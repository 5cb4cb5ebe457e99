// Values of 1 to 16 bytes that threads of a block exchange, and an order to combine them in that shows if it is not kept.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "support/atomics.hpp"

namespace flywheel::testing {

/// The map x -> scale x + shift of numbers modulo 16, in one byte. Scales are odd, so that no map forgets those before it.
struct ByteMap {
  unsigned char byte;
  FLYWHEEL_TASK static ByteMap of(std::uint64_t bits) { return {static_cast<unsigned char>((bits & 0xff) | 1)}; }
  FLYWHEEL_TASK ByteMap then(ByteMap next) const {
    const std::uint32_t scale = byte & 15, shift = byte >> 4, by = next.byte & 15;
    return {static_cast<unsigned char>(((scale * by) & 15) | ((by * shift + (next.byte >> 4)) & 15) << 4)};
  }
};
/// The map x -> bytes[0] x + v of vectors of bytes, v being the other bytes.
template <int kBytes>
struct BytesMap {
  unsigned char bytes[kBytes];
  FLYWHEEL_TASK static BytesMap of(std::uint64_t bits) {
    BytesMap made;
    for (int i = 0; i < kBytes; ++i) made.bytes[i] = static_cast<unsigned char>(mix(bits, static_cast<std::uint64_t>(i)));
    made.bytes[0] |= 1;
    return made;
  }
  FLYWHEEL_TASK BytesMap then(BytesMap next) const {
    BytesMap both;
    both.bytes[0] = static_cast<unsigned char>(bytes[0] * next.bytes[0]);
    for (int i = 1; i < kBytes; ++i) both.bytes[i] = static_cast<unsigned char>(next.bytes[0] * bytes[i] + next.bytes[i]);
    return both;
  }
};
/// The same of numbers of 32 bits.
struct WordMap {
  std::uint32_t scale, shift;
  FLYWHEEL_TASK static WordMap of(std::uint64_t bits) {
    return {static_cast<std::uint32_t>(bits) | 1, static_cast<std::uint32_t>(bits >> 32)};
  }
  FLYWHEEL_TASK WordMap then(WordMap next) const { return {scale * next.scale, next.scale * shift + next.shift}; }
};
/// With an odd determinant.
struct Matrix {
  std::uint32_t a, b, c, d;
  FLYWHEEL_TASK static Matrix of(std::uint64_t bits) {
    const auto low = static_cast<std::uint32_t>(bits), high = static_cast<std::uint32_t>(bits >> 32);
    return {low | 1, high * 2, low ^ high, low * high | 1};
  }
  FLYWHEEL_TASK Matrix then(Matrix next) const {
    return {a * next.a + b * next.c, a * next.b + b * next.d, c * next.a + d * next.c, c * next.b + d * next.d};
  }
};
struct Half {
  std::uint16_t value;
  FLYWHEEL_TASK static Half of(std::uint64_t bits) { return {static_cast<std::uint16_t>(bits)}; }
  FLYWHEEL_TASK Half then(Half next) const { return {static_cast<std::uint16_t>(value + next.value)}; }
};
struct Word {
  std::uint32_t value;
  FLYWHEEL_TASK static Word of(std::uint64_t bits) { return {static_cast<std::uint32_t>(bits)}; }
  FLYWHEEL_TASK Word then(Word next) const { return {value + next.value}; }
};
/// Not associative: the result says which pairs were combined.
struct Pairing {
  std::uint64_t value;
  FLYWHEEL_TASK static Pairing of(std::uint64_t bits) { return {bits}; }
  FLYWHEEL_TASK Pairing then(Pairing next) const { return {mix(value, next.value)}; }
};

struct Then {
  template <class T>
  FLYWHEEL_TASK T operator()(const T& a, const T& b) const {
    return a.then(b);
  }
};

template <class... Ts>
struct TypesToVisit {
  /// f(T{}) for the type with that number, modulo the number of types.
  template <class F>
  FLYWHEEL_TASK static void visit(std::uint32_t number, F&& f) {
    std::uint32_t left = number % sizeof...(Ts);
    ((left-- == 0 ? f(Ts{}) : void()), ...);
  }
};
using ExchangedTypes = TypesToVisit<ByteMap, BytesMap<2>, BytesMap<3>, BytesMap<5>, BytesMap<8>, BytesMap<11>, BytesMap<12>,
                                    BytesMap<16>, Half, Word, WordMap, Matrix, Pairing>;

template <class T>
FLYWHEEL_TASK std::uint64_t hash_of(const T& value) {
  std::uint64_t words[2] = {0, sizeof(T)};
  memcpy(words, &value, sizeof(T));
  return mix(words[0], words[1]);
}

/// The values of ranks 0 to each one's own, inclusive, or `init` and those before each: one after the other.
template <class T>
std::vector<T> scanned(const std::vector<T>& values, int /*lanes*/, const std::unique_ptr<T>& init) {
  std::vector<T> told;
  for (std::size_t r = 0; r < values.size(); ++r) {
    const T mine = init ? (r ? values[r - 1] : *init) : values[r];
    told.push_back(r ? told.back().then(mine) : mine);
  }
  return told;
}
/// In the order that blocks promise: in each warp, log2(lanes) steps in which a lane puts the value of a lane before it in
/// front of its own; then the last lanes' values of the warps before, one after the other, and behind them the lane's own.
inline std::vector<Pairing> scanned(std::vector<Pairing> values, int lanes, const std::unique_ptr<Pairing>& init) {
  const auto width = static_cast<std::size_t>(lanes);
  for (std::size_t distance = 1; distance < width; distance *= 2)
    for (std::size_t r = values.size(); r-- > 0;)
      if (r % width >= distance) values[r] = values[r - distance].then(values[r]);
  std::vector<Pairing> told;
  std::unique_ptr<Pairing> before = init ? std::make_unique<Pairing>(*init) : nullptr;
  for (std::size_t r = 0; r < values.size(); ++r) {
    if (init) told.push_back(r % width ? before->then(values[r - 1]) : *before);
    else told.push_back(before ? before->then(values[r]) : values[r]);
    if (r % width == width - 1) before = std::make_unique<Pairing>(before ? before->then(values[r]) : values[r]);
  }
  return told;
}

}  // namespace flywheel::testing
