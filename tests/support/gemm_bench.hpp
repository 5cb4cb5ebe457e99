// Matrix products of sizes drawn at random, as graphs and as batches, against sums in double.
#pragma once

#include <flywheel/gemm.cuh>

#include <cmath>
#include <random>

#include "catch.hpp"
#include "support/atomics.hpp"
#include "support/seed.hpp"

namespace flywheel::testing {

/// An epilogue that looks at its place.
struct AddPlace {
  float factor;
  FLYWHEEL_TASK float operator()(float sum, int row, int column) const {
    return factor * sum + static_cast<float>(row % 3 - column % 2);
  }
};
/// The same for a product that may have a second B.
struct JoinPlace : AddPlace {
  FLYWHEEL_TASK static float join(float sum, float second) { return sum - 2 * second; }
};

/// One product: values, sizes and how it is cut.
class GemmCase {
 public:
  /// `joins`: some have a second B.
  GemmCase(std::uint64_t seed, std::uint32_t most_rows, std::uint32_t most_depth, bool joins) : random_(seed) {
    m = random_() % 3 ? draw(1, most_rows) : draw(1, 64);
    n = draw(1, most_rows);
    k = draw(1, most_depth);
    pitch_a = (k + 7) / 8 * 8 + 8 * draw(0, 2);
    pitch_b = (k + 7) / 8 * 8 + 8 * draw(0, 2);
    if (random_() % 2) n = (n + 7) / 8 * 8;  // then tensor copies can store C
    pitch_c = random_() % 3 ? (n + 7) / 8 * 8 + 8 * draw(0, 1) : n + draw(0, 9);
    floats = random_() % 2;
    factor = random_() % 2 ? 1.f : -0.5f;
    constexpr std::uint32_t kColumns[] = {0, 16, 64, 128, 256};
    options.tile_columns = kColumns[random_() % 5];
    options.splits = draw(0, 4);
    options.tiles_each = random_() % 2 ? draw(1, 5) : 0;
    options.alone = random_() % 2;
    live = random_() % 3 ? m : draw(0, m);
    own_partials = random_() % 2;
    options.add = floats && random_() % 2;
    a = values(std::size_t{m} * pitch_a);
    b = values(std::size_t{n} * pitch_b);
    if (joins && random_() % 2) second_b = values(b.size());
    options.leave_parts = floats && !options.add && second_b.empty() && random_() % 2;
    options.constant_b = random_() % 2;
    if (options.leave_parts) factor = 1;  // the epilogue is for the first part alone
  }

  /// Whether C is what it should be, and what lies between its rows is untouched; so are tiles without rows that count, which
  /// have 256 rows of C at most. Between those and the last row that counts a row is either.
  void check(const std::vector<float>& c) const {
    double worst = 0;
    bool beside = true;
    for (std::uint32_t i = 0; i < m; ++i) {
      for (std::uint32_t j = 0; j < pitch_c; ++j) {
        const double found = c[std::size_t{i} * pitch_c + j];
        if (j >= n || i >= live + 255 || live == 0) beside = beside && found == 0;
        else if (i < live || found != 0)
          worst = std::max(worst, std::abs(found - value(i, j)) / (std::sqrt(k) + std::abs(value(i, j))));
      }
    }
    INFO(m << " x " << n << " x " << k << ", pitches " << pitch_a << ", " << pitch_b << ", " << pitch_c << ", columns "
           << options.tile_columns << ", splits " << options.splits << ", tiles each " << options.tiles_each << ", " << live
           << " live rows" << (options.leave_parts ? ", parts are left" : "") << (options.constant_b ? ", B is constant" : "")
           << (second_b.empty() ? "" : ", two B") << (floats ? ", float" : ", bf16") << ", off by " << worst);
    CHECK(worst < (floats ? 1e-4 : 0.005));
    CHECK(beside);
  }

  /// Of a run: what is added up is so once.
  std::uint32_t passes() const { return options.add ? 1 : 2; }

  std::uint32_t m, n, k, pitch_a, pitch_b, pitch_c;
  std::uint32_t live;  // rows of A that count
  bool floats, own_partials;
  float factor;
  ProductOptions options;
  std::vector<Bf16> a, b, second_b;

 private:
  std::uint32_t draw(std::uint32_t least, std::uint32_t most) {
    return least + static_cast<std::uint32_t>(random_() % (most - least + 1));
  }
  std::vector<Bf16> values(std::size_t count) {
    std::normal_distribution<float> normal;
    std::vector<Bf16> all(count);
    for (Bf16& one : all) one = Bf16::nearest(normal(random_));
    return all;
  }
  float dot(const std::vector<Bf16>& with, std::uint32_t i, std::uint32_t j) const {
    double sum = 0;
    for (std::uint32_t d = 0; d < k; ++d)
      sum += double{a[std::size_t{i} * pitch_a + d].value()} * double{with[std::size_t{j} * pitch_b + d].value()};
    return static_cast<float>(sum);
  }
  double value(std::uint32_t i, std::uint32_t j) const {
    float sum = dot(b, i, j);
    if (!second_b.empty()) sum = JoinPlace::join(sum, dot(second_b, i, j));
    return AddPlace{factor}(sum, static_cast<int>(i), static_cast<int>(j));
  }

  std::mt19937_64 random_;
};

/// A case on a runtime of Gemm<Epilogue>, of AddPlace or JoinPlace.
template <class Epilogue>
class GemmBench {
 public:
  GemmBench(Runtime& runtime, const GemmCase& one)
      : runtime_(runtime),
        case_(one),
        a_(runtime.upload(one.a)),
        b_(runtime.upload(one.b)),
        second_b_(runtime.upload(one.second_b.empty() ? one.b : one.second_b)),
        floats_(runtime.allocate<float>(kMostParts * one.m * one.pitch_c)),
        bf16_(runtime.allocate<Bf16>(std::size_t{one.m} * one.pitch_c)),
        live_(runtime.upload(std::vector{one.live})),
        product_(make()) {}

  /// In a dynamic, a compiled and a phased graph and, where no task waits for others, in a batch.
  void check() {
    Graph plain, phased;
    product_.add_to(plain, {}, Epilogue{case_.factor});
    run("dynamic", [&] { runtime_.submit(runtime_.load(plain), repeat(case_.passes())).wait(); });
    run("compiled", [&] { runtime_.submit(runtime_.load(plain, compiled)).wait(); });
    phased.phase();
    product_.add_to(phased, {}, Epilogue{case_.factor});
    run("phased", [&] { runtime_.submit(runtime_.load(phased), repeat(case_.passes())).wait(); });
    if (product_.splits() > 1 && !case_.options.leave_parts) return;
    run("batch", [&] { runtime_.submit(product_.tasks(Epilogue{case_.factor})).wait(); });
  }

 private:
  static constexpr std::size_t kMostParts = 16;  // that are left

  /// Where parts are to be shared, a product of its own tells how much memory they take.
  Product make() {
    ProductOptions options = case_.options;
    if (case_.live < case_.m) options.live_rows = live_.data();
    if (!case_.second_b.empty()) options.second_b = second_b_.data();
    if (case_.own_partials) return make(options);
    partials_ = runtime_.allocate<float>(std::max<std::size_t>(make(options).partial_values(), 1));
    options.partials = partials_.data();
    return make(options);
  }
  Product make(const ProductOptions& options) {
    const flywheel::Matrix a{a_.data(), case_.m, case_.k, case_.pitch_a}, b{b_.data(), case_.n, case_.k, case_.pitch_b};
    if (case_.floats) return {runtime_, a, b, flywheel::Matrix{floats_.data(), case_.m, case_.n, case_.pitch_c}, options};
    return {runtime_, a, b, flywheel::Matrix{bf16_.data(), case_.m, case_.n, case_.pitch_c}, options};
  }
  template <class F>
  void run(const char* how, F&& submit) {
    INFO(how);
    std::vector<float> before(floats_.size());  // what is added to
    for (std::size_t i = 0; i < before.size() && case_.options.add; ++i) before[i] = static_cast<float>(i % 7) - 3;
    floats_.write(before);
    bf16_.write(std::vector<Bf16>(bf16_.size()));
    submit();
    std::vector<float> c = floats_.read();
    for (std::size_t i = 0; i < c.size(); ++i) c[i] -= before[i];
    if (case_.options.leave_parts) add_up(c);
    if (!case_.floats)
      for (std::size_t i = 0; const Bf16 one : bf16_.read()) c[i++] = one.value();
    case_.check(c);
  }

  /// Parts that were left, in the place of the first one.
  void add_up(std::vector<float>& c) const {
    REQUIRE(product_.splits() <= kMostParts);
    const std::size_t size = bf16_.size();
    for (std::size_t split = 1; split < product_.splits(); ++split)
      for (std::size_t i = 0; i < size; ++i) c[i] += c[split * size + i];
  }

  Runtime& runtime_;
  const GemmCase& case_;
  Buffer<Bf16> a_, b_, second_b_;
  Buffer<float> floats_;
  Buffer<Bf16> bf16_;
  Buffer<std::uint32_t> live_;
  Buffer<float> partials_;
  Product product_;
};

}  // namespace flywheel::testing
