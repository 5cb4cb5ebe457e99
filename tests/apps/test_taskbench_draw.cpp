// The random numbers of apps/taskbench: who asks decides, and the factors of uneven tasks are distributed as they say.
#include <cmath>

#include "apps/taskbench/point.hpp"
#include "catch.hpp"

namespace taskbench {
namespace {

constexpr int kCount = 200'000;

struct Moments {
  double mean, deviation, least, most;
};
template <class F>
Moments moments_of(F&& f) {
  double sum = 0, squares = 0, least = 1e300, most = -1e300;
  for (int i = 0; i < kCount; ++i) {
    const double value = f(draw(7, 1, static_cast<std::uint32_t>(i / 100), static_cast<std::uint64_t>(i % 100)));
    sum += value, squares += value * value;
    least = std::min(least, value), most = std::max(most, value);
  }
  const double mean = sum / kCount;
  return {mean, std::sqrt(squares / kCount - mean * mean), least, most};
}

double factor(Imbalance imbalance, std::uint64_t bits) { return 1.0 * factor_of(imbalance, bits) / kOne; }

}  // namespace

TEST_CASE("taskbench: a draw depends on each of seed, graph, step and point") {
  CHECK(draw(1, 2, 3, 4) == draw(1, 2, 3, 4));
  for (const std::uint64_t other : {draw(2, 2, 3, 4), draw(1, 3, 3, 4), draw(1, 2, 4, 4), draw(1, 2, 3, 5), draw(1, 2, 4, 3)})
    CHECK(other != draw(1, 2, 3, 4));
}

TEST_CASE("taskbench: a power of two is right to 1 in 5,000") {
  for (std::int32_t x = -8 * 65536; x < 8 * 65536; x += 331) {
    const double exact = std::exp2(x / 65536.0) * kOne;
    CHECK(exp2_fixed(x) == Approx(exact).epsilon(1.0 / 5000).margin(2));
  }
}

TEST_CASE("taskbench: the normal numbers have mean 0 and deviation 1") {
  const Moments found = moments_of([](std::uint64_t bits) { return normal_fixed(bits) / 65536.0; });
  CHECK(found.mean == Approx(0).margin(0.01));
  CHECK(found.deviation == Approx(1).epsilon(0.01));
  CHECK(found.least >= -6);
  CHECK(found.most <= 6);
}

TEST_CASE("taskbench: uneven tasks take 0.5 to 1.5 of the work, or log-normally much, and 1 on average") {
  const Moments uniform = moments_of([](std::uint64_t bits) { return factor(Imbalance::uniform, bits); });
  CHECK(uniform.mean == Approx(1).epsilon(0.005));
  CHECK(uniform.deviation == Approx(std::sqrt(1.0 / 12)).epsilon(0.01));
  CHECK(uniform.least >= 0.5);
  CHECK(uniform.most < 1.5);
  const Moments lognormal = moments_of([](std::uint64_t bits) { return factor(Imbalance::lognormal, bits); });
  CHECK(lognormal.mean == Approx(1).epsilon(0.01));
  const Moments logarithms = moments_of([](std::uint64_t bits) { return std::log(factor(Imbalance::lognormal, bits)); });
  CHECK(logarithms.mean == Approx(-0.125).margin(0.01));
  CHECK(logarithms.deviation == Approx(0.5).epsilon(0.01));
  CHECK(factor_of(Imbalance::none, 12345) == kOne);
}

TEST_CASE("taskbench: iterations are scaled in whole numbers") {
  const Shape shape{.seed = 3};
  const std::uint32_t factor = factor_of(Imbalance::lognormal, draw(3, 0, 5, 6));
  RunSettings settings{.iterations = 1'000'000, .imbalance = Imbalance::lognormal};
  CHECK(iterations_of(shape, 5, 6, settings) == static_cast<std::uint32_t>(1'000'000ull * factor >> 16));
  settings.imbalance = Imbalance::none;
  CHECK(iterations_of(shape, 5, 6, settings) == 1'000'000);
}

}  // namespace taskbench
