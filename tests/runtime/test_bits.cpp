// Bit arithmetic, against counting one by one.
#include "runtime/bits.hpp"

#include <rapidcheck.h>

#include <vector>

#include "catch.hpp"

using namespace flywheel;

namespace {
std::vector<std::uint32_t> positions(std::uint32_t bits) {
  std::vector<std::uint32_t> set;
  for (std::uint32_t i = 0; i < 32; ++i)
    if (bits >> i & 1) set.push_back(i);
  return set;
}

void agrees_with_counting(std::uint32_t bits, std::uint32_t n) {
  const auto set = positions(bits);
  std::uint32_t lowest = 0;
  for (std::uint32_t i = 0; i < n && i < set.size(); ++i) lowest |= 1u << set[i];
  RC_ASSERT(count_bits(bits) == set.size());
  if (bits) RC_ASSERT(lowest_bit(bits) == set.front());
  RC_ASSERT(lowest_bits(bits, n) == lowest);
  RC_ASSERT(drop_bits(bits, n) == (bits & ~lowest));
  RC_ASSERT(nth_bit(bits, n) == (n < set.size() ? set[n] : 0));
}
}  // namespace

TEST_CASE("bit arithmetic agrees with counting one by one") {
  CHECK(rc::check([] { agrees_with_counting(*rc::gen::arbitrary<std::uint32_t>(), *rc::gen::inRange(0u, 34u)); }));
  for (const std::uint32_t bits : {0u, 1u, 0x80000000u, 0xffffffffu})
    for (std::uint32_t n = 0; n < 34; ++n) agrees_with_counting(bits, n);
}
