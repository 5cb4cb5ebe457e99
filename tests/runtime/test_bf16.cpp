// Bf16: all codes, and rounding.
#include "runtime/gemm/bf16.hpp"

#include <cmath>
#include <random>

#include "catch.hpp"
#include "support/seed.hpp"

using namespace flywheel;

TEST_CASE("bf16: each code is the nearest to its own value") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Bf16 one{static_cast<std::uint16_t>(bits)};
    if (std::isnan(one.value())) CHECK(std::isnan(Bf16::nearest(one.value()).value()));
    else CHECK(Bf16::nearest(one.value()).bits == bits);
  }
}

TEST_CASE("bf16: a float becomes the nearest, and of two that are as near the even one") {
  FLYWHEEL_TEST_SEED(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 100'000; ++round) {
    const auto word = static_cast<std::uint32_t>(random());
    const auto value = std::bit_cast<float>(round % 4 ? word : (word & 0xffff0000u) | 0x8000u);
    if (!std::isfinite(value) || (word & 0x7f800000u) == 0x7f000000u) continue;  // the next one above is infinity
    const Bf16 found = Bf16::nearest(value);
    const auto below = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
    const double to_below = std::abs(double{value} - double{Bf16{below}.value()});
    const double to_above = std::abs(double{value} - double{Bf16{static_cast<std::uint16_t>(below + 1)}.value()});
    const bool upper = to_above < to_below || (to_above == to_below && below % 2);
    CHECK(found.bits == below + upper);
  }
}
