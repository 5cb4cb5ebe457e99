#include <bit>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "apps/llama/checkpoint/near_names.hpp"
#include "apps/llama/checkpoint/tensor.hpp"
#include "tests/catch.hpp"

using namespace llama;

namespace {

// By the definition of binary16, in double.
double plain_f16(std::uint32_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const double fraction = bits & 1023;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  return exponent == 0 ? sign * std::ldexp(fraction, -24) : sign * std::ldexp(1024 + fraction, exponent - 25);
}

bool same(double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b); }

}  // namespace

TEST_CASE("all 65536 binary16 values convert exactly") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = f16_to_float(static_cast<std::uint16_t>(bits));
    if (!same(value, plain_f16(bits))) FAIL("bits " << bits << " gave " << value);
  }
}

TEST_CASE("a bf16 value is the upper half of a float") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = bf16_to_float(static_cast<std::uint16_t>(bits));
    if (std::bit_cast<std::uint32_t>(value) != bits << 16) FAIL("bits " << bits);
  }
}

TEST_CASE("floats go only where there is room for them") {
  const std::vector<std::byte> bytes(8);
  const TensorView tensor{"t", DType::kF32, {2}, bytes};
  std::vector<float> small(1);
  CHECK_THROWS_AS(copy_floats(tensor, small), std::invalid_argument);
}

TEST_CASE("types and shapes have names") {
  CHECK(dtype_of("BF16") == DType::kBF16);
  CHECK_FALSE(dtype_of("bf16").has_value());
  CHECK(dtype_name(DType::kBool) == "BOOL");
  CHECK(dtype_size(DType::kI64) == 8);
  CHECK(shape_text(std::vector<std::int64_t>{256, 1024}) == "[256, 1024]");
  CHECK(shape_text({}) == "[]");
}

TEST_CASE("the nearest names come first") {
  const std::vector<std::string> names = {"alpha", "beta", "gamma", "betas"};
  CHECK(near_names("bet", names, 2) == R"("beta", "betas")");
  CHECK(near_names("x", {}).empty());
}
