// Bit arithmetic, against counting one by one.
#include "runtime/base/bits.hpp"
#include "support/internals.hpp"

#include <rapidcheck.h>

#include <vector>

#include "catch.hpp"

using namespace flywheel;

namespace {
/// The set bits from `start` upwards, going round.
std::vector<std::uint32_t> positions(std::uint64_t bits, std::uint32_t start) {
  std::vector<std::uint32_t> set;
  for (std::uint32_t i = 0; i < 64; ++i)
    if (bits >> (start + i) % 64 & 1) set.push_back((start + i) % 64);
  return set;
}

bool agrees_with_counting(std::uint64_t bits, std::uint32_t n, std::uint32_t start) {
  const auto set = positions(bits, start);
  std::uint64_t first = 0;
  for (std::uint32_t i = 0; i < n && i < set.size(); ++i) first |= std::uint64_t{1} << set[i];
  return count_bits(bits) == set.size() && pick_bits(bits, n, start) == first &&
         (bits == 0 || lowest_bit(bits) == positions(bits, 0).front());
}
}  // namespace

TEST_CASE("bit arithmetic agrees with counting one by one") {
  CHECK(rc::check([] {
    RC_ASSERT(
        agrees_with_counting(*rc::gen::arbitrary<std::uint64_t>(), *rc::gen::inRange(0u, 66u), *rc::gen::inRange(0u, 64u)));
  }));
}

TEST_CASE("bit arithmetic at the edges") {
  for (const std::uint64_t bits : {0ull, 1ull, 1ull << 63, 1ull << 31, ~0ull})
    for (std::uint32_t n = 0; n < 66; ++n)
      for (const std::uint32_t start : {0u, 1u, 31u, 32u, 63u}) CHECK(agrees_with_counting(bits, n, start));
}

TEST_CASE("ones from position 0 on are counted up to the first zero") {
  for (std::uint32_t ones = 0; ones < 32; ++ones) {
    CHECK(low_ones((1u << ones) - 1) == ones);
    CHECK(low_ones(~(1u << ones)) == ones);
  }
  CHECK(low_ones(~0u) == 32);
}
