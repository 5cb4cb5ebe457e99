// The program ladder: what it checks, and what it says without a GPU.
#include <cmath>

#include "apps/ladder/problem.hpp"
#include "apps/ladder/rows.hpp"
#include "catch.hpp"
#include "measure_support.hpp"
#include "support/program.hpp"

namespace ladder {
namespace {

using measure::error_of;
using measure::mentions;

/// C = A B, as floats.
std::vector<float> product_of(const std::vector<float>& a, const std::vector<float>& b, int n) {
  const auto size = static_cast<std::size_t>(n);
  std::vector<float> c(size * size);
  for (std::size_t row = 0; row < size; ++row)
    for (std::size_t k = 0; k < size; ++k)
      for (std::size_t column = 0; column < size; ++column) c[row * size + column] += a[row * size + k] * b[k * size + column];
  return c;
}

}  // namespace

TEST_CASE("ladder: sizes") {
  for (const int n : {256, 4096, 16384}) CHECK_NOTHROW(check_size(n));
  for (const int n : {-256, 0, 255, 257, 1000, 16640})
    CHECK(mentions(error_of([&] { check_size(n); }), {"--size", "multiple of 256"}));
}

TEST_CASE("ladder: a wrong value is found and named") {
  constexpr int kSize = 256;
  const std::vector<float> a = draw_values(kSize), b = draw_values(kSize);
  const Expected expected(a, b, kSize);
  std::vector<float> c = product_of(a, b, kSize);
  CHECK_NOTHROW(expected.check(c, "rung"));
  c[77] = NAN;
  CHECK(mentions(error_of([&] { expected.check(c, "a rung"); }), {"a rung", "row 0, column 77", "nan"}));
  c = product_of(a, b, kSize);
  for (std::size_t row = 0; row < kSize; ++row) c[row * kSize + 5] += 0.01f;  // one of these rows is computed
  CHECK(mentions(error_of([&] { expected.check(c, "a rung"); }), {"a rung", "column 5"}));
}

TEST_CASE("ladder: what it says") {
  const auto answer = flywheel::testing::ask("apps/ladder/ladder", "--size 100", "2>&1");
  CHECK(answer.code == 1);
  CHECK(mentions(answer.text, {"--size 100", "multiple of 256"}));
  const auto other = flywheel::testing::ask("apps/ladder/ladder", "--size 256 --quick --rows ladder.naive", "2>&1");
  CHECK((other.code == 77 || other.code == 0));
  if (other.code == 77) CHECK(mentions(other.text, {"they need one"}));
}

}  // namespace ladder
