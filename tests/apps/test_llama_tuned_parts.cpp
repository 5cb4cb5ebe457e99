// The tuned parts of the decode's matrix tasks, thread by thread as a GPU runs them, against sums in double.
#include <numeric>
#include <random>
#include <set>

#include "catch.hpp"
#include "support/fiber_block.hpp"

#include "apps/llama/tuned/choose.cuh"
#include "apps/llama/tuned/gate.cuh"
#include "apps/llama/tuned/share.hpp"
#include "llama_oracle_support.hpp"

namespace llama {
namespace {

using flywheel::testing::pack_fibers;
using flywheel::testing::run_fibers;

struct Case {
  int columns, rows, first, groups, sequences;
};

/// Inputs are rounded to halves.
constexpr double kMostError = 5e-4;

template <class Task>
void run_parts(const Task& task) {
  flywheel::testing::FiberOptions options;
  options.scratch_bytes =
      static_cast<std::uint32_t>(std::max(32 << 10, kTileWarps * product_scratch(task.columns, task.input.sequences)));
  run_fibers(task, pack_fibers(task), options);
}

RowsTask rows_of(const Case& c, const Streamed& streamed, const Packed& input) {
  return {{input.input(), c.columns, c.groups}, streamed.matrix(), c.rows, c.first};
}

const Stamped kUntouched{0x7ff77ff7};

/// What the residual stream's makers leave beside it.
void check_next(const Case& c, const std::vector<Stamped>& x, const std::vector<float>& norm,
                const std::vector<Stamped>& packed, const std::vector<Stamped>& squares) {
  for (int s = 0; s < c.sequences; ++s) {
    double wanted = 0;
    Errors errors;
    for (int row = c.first * 8; row < std::min(c.rows, (c.first + c.groups) * 8); ++row) {
      const auto value = static_cast<double>(x[static_cast<std::size_t>(s * c.rows + row)].value());
      wanted += value * value;
      errors.add(static_cast<double>(unpacked(packed, c.rows, s, row)),
                 value * static_cast<double>(norm[static_cast<std::size_t>(row)]));
    }
    CHECK(squares[static_cast<std::size_t>(s)].value() == Approx(wanted).epsilon(1e-5));
    CHECK(squares[static_cast<std::size_t>(s)].stamp() == 1);
    CHECK(errors.relative() < kMostError);
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int columns : {64, 256, 576, 1024, 2048, 2560, 4096}) all.push_back({columns, 64, 0, 8, 1});
  for (const int sequences : {1, 2, 4, 8}) {
    all.push_back({2048, 44, 1, 5, sequences});  // the last group is not whole
    all.push_back({576, 200, 3, 20, sequences});
  }
  for (const int columns : {4104, 6144, 8192, 9728})
    for (const int sequences : {1, 4, 8}) all.push_back({columns, 40, 1, 4, sequences});
  for (const int groups : {1, 3, 8})
    for (const int columns : {2048, 4096, 8192}) all.push_back({columns, 8 * groups + 4, 1, groups, 16});
  all.push_back({2048, 196, 5, 20, 16});
  for (const int columns : {64, 576, 2816, 2824, 4864}) all.push_back({columns, 64, 0, columns <= 2816 ? 8 : 4, 16});
  std::mt19937_64 random(flywheel::testing::fresh_seed());
  const auto drawn = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
  for (const int sequences : {1, 2, 4, 8, 16})
    for (int n = 0; n < 4; ++n) {
      const int columns = 8 * drawn(1, n < 3 ? 800 : 1600),
                most = is_streamed(columns, sequences) ? streamed_groups(columns, sequences) : 9;
      const int first = drawn(0, 2), groups = drawn(3, most);  // fewer sums may cancel
      all.push_back({columns, 8 * (first + groups) - 4 * drawn(0, 1), first, groups, sequences});
    }
  return all;
}

}  // namespace

TEST_CASE("tuned: activations are halves, and what is too large becomes infinite") {
  CHECK(activation_of(round_activation(1048000)) == Approx(1048000).epsilon(0.0005));
  CHECK(std::isinf(from_half(round_activation(-1049000))));
  CHECK(std::isnan(from_half(round_activation(std::nanf("")))));
}

TEST_CASE("tuned: four tiles packed in 13 of 16 bits come out as they were") {
  std::mt19937 random(7);
  for (int run = 0; run < 1000; ++run) {
    TilePart parts[kQuad], again[kQuad];
    for (TilePart& part : parts)
      for (std::uint32_t& two : part.registers) two = static_cast<std::uint32_t>(random()) & LaneQuad::kWeight;
    LaneQuad::pack(parts).unpack(again);
    for (int t = 0; t < kQuad; ++t)
      for (int i = 0; i < 4; ++i) REQUIRE(again[t].registers[i] == parts[t].registers[i]);
  }
}

TEST_CASE("tuned: y = W norm(x), with a bias and without one, all shapes of inputs") {
  const bool biased = GENERATE(false, true);
  for (const Case& c : cases()) {
    if (is_streamed(c.columns, c.sequences)) continue;
    INFO("columns " << c.columns << ", rows " << c.rows << ", sequences " << c.sequences << ", biased " << biased);
    Numbers numbers;
    const auto weights = numbers.weights(c.rows * c.columns);
    const auto x = numbers.floats(c.sequences * c.columns), norm = numbers.floats(c.columns);
    std::vector<Stamped> y(static_cast<std::size_t>(c.sequences * c.rows), kUntouched);
    const Packed input(x, norm, c.sequences);
    const Streamed streamed(weights, c.columns);
    const TunedProject task{rows_of(c, streamed, input), input.norm(), y.data()};
    const std::vector<float> bias = biased ? numbers.floats(c.rows) : std::vector<float>(static_cast<std::size_t>(c.rows));
    if (biased) run_parts(TunedProjectBiased{task, bias.data()});
    else run_parts(task);
    Errors errors;
    for (int s = 0; s < c.sequences; ++s)
      for (int row = 0; row < c.rows; ++row) {
        const Stamped got = y[static_cast<std::size_t>(s * c.rows + row)];
        const bool mine = row >= c.first * 8 && row < (c.first + c.groups) * 8;
        const auto added = static_cast<double>(bias[static_cast<std::size_t>(row)]);
        if (mine) errors.add(static_cast<double>(got.value()), normed_dot(weights, x, norm, row, s, c.columns) + added);
        CHECK(got.stamp() == (mine ? 1 : kUntouched.stamp()));
        if (!mine) CHECK(got.word == kUntouched.word);
      }
    CHECK(errors.relative() < kMostError);
  }
}

TEST_CASE("tuned: x += W input, with inputs that stay and inputs that are streamed") {
  for (const Case& c : cases()) {
    INFO("columns " << c.columns << ", rows " << c.rows << ", sequences " << c.sequences);
    Numbers numbers;
    const auto weights = numbers.weights(c.rows * c.columns);
    const auto input = numbers.floats(c.sequences * c.columns), before = numbers.floats(c.sequences * c.rows);
    const std::vector<Stamped> old = stamped(before);
    std::vector<Stamped> x(old.size(), kUntouched);
    const auto next_norm = numbers.floats(c.rows);
    std::vector<Stamped> squares(static_cast<std::size_t>(c.sequences)), packed_x(packed_size(c.sequences, c.rows));
    const Packed packed(input, {}, c.sequences);
    const Streamed streamed(weights, c.columns);
    run_parts(TunedResidual{
        rows_of(c, streamed, packed), nullptr, old.data(), {x.data(), packed_x.data(), next_norm.data(), squares.data()}});
    check_next(c, x, next_norm, packed_x, squares);
    Errors errors;
    for (int s = 0; s < c.sequences; ++s)
      for (int row = 0; row < c.rows; ++row) {
        const auto at = static_cast<std::size_t>(s * c.rows + row);
        const bool mine = row >= c.first * 8 && row < (c.first + c.groups) * 8;
        if (mine) errors.add(static_cast<double>(x[at].value() - before[at]), dot(weights, input, row, s, c.columns));
        CHECK(x[at].stamp() == (mine ? 1 : kUntouched.stamp()));
        if (!mine) CHECK(x[at].word == kUntouched.word);
      }
    CHECK(errors.relative() < kMostError);
  }
}

TEST_CASE("tuned: a text's sums are the same bits beside any others") {
  for (const int columns : {576, 1536, 3072, 4296, 5120, 9728, 11008}) {
    INFO("columns " << columns);
    const Case c{columns, 32, 0, 4, 1};
    Numbers numbers;
    auto weights = numbers.weights(c.rows * columns);
    for (std::size_t i = 0; i < weights.size(); i += 97) weights[i].bits = static_cast<std::uint16_t>(0x2c00 + i % 0x600);
    const Streamed streamed(weights, columns);
    CHECK(streamed.list().patches.size() > weights.size() / 200);
    const auto input = numbers.floats(16 * columns), zeros = std::vector<float>(static_cast<std::size_t>(16 * c.rows));
    const std::vector<Stamped> old = stamped(zeros);
    std::vector<Stamped> alone;
    for (const int sequences : {1, 2, 4, 8, 16}) {
      const std::vector<float> some(input.begin(), input.begin() + sequences * columns);
      const auto next_norm = numbers.floats(c.rows);
      std::vector<Stamped> x(static_cast<std::size_t>(sequences * c.rows)), squares(16),
          packed_x(packed_size(sequences, c.rows));
      const Packed packed(some, {}, sequences);
      run_parts(TunedResidual{rows_of({columns, c.rows, 0, 4, sequences}, streamed, packed),
                              nullptr,
                              old.data(),
                              {x.data(), packed_x.data(), next_norm.data(), squares.data()}});
      if (alone.empty()) alone = x;
      for (int row = 0; row < c.rows; ++row)
        CHECK(x[static_cast<std::size_t>(row)].word == alone[static_cast<std::size_t>(row)].word);
    }
  }
}

/// Rows of weights that halves do not keep, each row of another kind, all of any sign.
std::vector<Bf16> weights_without_halves(int rows, int columns) {
  std::mt19937_64 random(flywheel::testing::fresh_seed());
  const auto drawn = [&](std::uint32_t least, std::uint32_t most) {
    return static_cast<std::uint16_t>(std::uniform_int_distribution(least, most)(random));
  };
  std::vector<Bf16> all;
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column) {
      std::uint16_t code = drawn(0x3c00, 0x3f80);
      if (row % 6 == 0) code = drawn(0x2c00, 0x327f);                                 // 2^-39 to 2^-26
      if (row % 6 == 1) code = drawn(0x4180, 0x6000);                                 // 16 to 2^65
      if (row % 6 == 2 && column == 5 * row % columns) code = 0x5000;                 // one outlier
      if (row % 6 == 3) code = column % 2 ? drawn(0x3000, 0x3100) : drawn(1, 0x100);  // every second one tiny
      if (row % 6 == 4) code = drawn(1, 0x7f);                                        // denormal
      if (row % 6 == 5 && column % 50 == 7) code = drawn(0x3100, 0x3200);
      all.push_back({static_cast<std::uint16_t>(code | drawn(0, 1) << 15)});
    }
  return all;
}

TEST_CASE("tuned: weights that halves do not keep are added as they are, row by row") {
  constexpr double kOfFloats = 2e-6;
  for (const Case& c : {Case{64, 24, 0, 3, 1}, Case{576, 44, 1, 4, 2}, Case{2048, 48, 0, 6, 1}, Case{2048, 48, 0, 6, 4},
                        Case{4296, 24, 0, 3, 8}, Case{1032, 36, 0, 5, 4}, Case{8192, 24, 0, 3, 1}, Case{2048, 36, 1, 4, 16},
                        Case{6144, 48, 0, 6, 16}, Case{3080, 28, 0, 4, 16}}) {
    INFO("columns " << c.columns << ", rows " << c.rows << ", sequences " << c.sequences);
    const auto weights = weights_without_halves(c.rows, c.columns);
    Numbers numbers;
    auto input = numbers.floats(c.sequences * c.columns);
    for (float& value : input) value = activation_of(round_activation(value));  // so that no input is rounded
    const std::vector<Stamped> old = stamped(std::vector<float>(static_cast<std::size_t>(c.sequences * c.rows)));
    const std::vector<float> next_norm(static_cast<std::size_t>(c.rows));
    std::vector<Stamped> x(old.size()), squares(16), packed_x(packed_size(c.sequences, c.rows));
    const Packed packed(input, {}, c.sequences);
    const Streamed streamed(weights, c.columns);
    run_parts(TunedResidual{
        rows_of(c, streamed, packed), nullptr, old.data(), {x.data(), packed_x.data(), next_norm.data(), squares.data()}});
    for (int s = 0; s < c.sequences; ++s)
      for (int row = c.first * 8; row < std::min(c.rows, (c.first + c.groups) * 8); ++row) {
        INFO("row " << row << ", sequence " << s);
        double terms = 0;
        for (int i = 0; i < c.columns; ++i)
          terms += std::fabs(static_cast<double>(to_float(weights[static_cast<std::size_t>(row * c.columns + i)])) *
                             static_cast<double>(input[static_cast<std::size_t>(s * c.columns + i)]));
        const double got = x[static_cast<std::size_t>(s * c.rows + row)].value();
        CHECK(std::fabs(got - dot(weights, input, row, s, c.columns)) <= terms * kOfFloats + 1e-44);
      }
  }
}

TEST_CASE("tuned: SwiGLU's first half") {
  for (const Case& c : {Case{256, 64, 0, 8, 1}, Case{2048, 72, 2, 7, 1}, Case{1024, 100, 4, 9, 2}, Case{576, 64, 1, 7, 4},
                        Case{2560, 48, 0, 6, 8}, Case{5120, 48, 1, 2, 1}, Case{5120, 20, 1, 2, 8}, Case{2048, 60, 2, 6, 16},
                        Case{4096, 40, 1, 4, 16}, Case{576, 64, 1, 7, 16}, Case{3000, 24, 1, 2, 16}}) {
    INFO("columns " << c.columns << ", rows " << c.rows << ", sequences " << c.sequences);
    Numbers numbers;
    const auto gate = numbers.weights(c.rows * c.columns), up = numbers.weights(c.rows * c.columns);
    const auto x = numbers.floats(c.sequences * c.columns), norm = numbers.floats(c.columns);
    const Packed input(x, norm, c.sequences);
    std::vector<Stamped> packed_y(packed_size(c.sequences, c.rows), kUntouched);
    const Streamed of_gate(gate, c.columns), of_up(up, c.columns);
    run_parts(TunedGateUp{{input.input(), c.columns, 2 * c.groups},
                          of_gate.matrix(),
                          of_up.matrix(),
                          input.norm(),
                          nullptr,
                          packed_y.data(),
                          c.rows,
                          c.first});
    Errors errors;
    for (int s = 0; s < c.sequences; ++s)
      for (int row = 0; row < c.rows; ++row) {
        const float got = unpacked(packed_y, c.rows, s, row);
        const bool mine = row >= c.first * 8 && row < (c.first + c.groups) * 8;
        if (!mine) {
          CHECK(packed_y[static_cast<std::size_t>(s * c.rows + row) / 2].word == kUntouched.word);
          continue;
        }
        const Product g = normed_product(gate, x, norm, row, s, c.columns), u = normed_product(up, x, norm, row, s, c.columns);
        const double sigmoid = 1 / (1 + std::exp(-g.sum)), wanted = g.sum * sigmoid * u.sum;
        const double slope = sigmoid * (1 + g.sum * (1 - sigmoid));  // of g sigmoid(g)
        errors.add(got, wanted, std::hypot(wanted, slope * u.sum * g.norm, g.sum * sigmoid * u.norm));
      }
    CHECK(errors.relative() < 2 * kMostError);
  }
}

TEST_CASE("tuned: logits, the likeliest of the task's rows, and the largest of each group") {
  for (const int sequences : {1, 2, 4, 8, 16}) {
    const Case c{1024, 150, 2, 16, sequences};
    Numbers numbers;
    const auto weights = numbers.weights(c.rows * c.columns);
    const auto x = numbers.floats(sequences * c.columns), norm = numbers.floats(c.columns);
    std::vector<float> logits(static_cast<std::size_t>(sequences * c.rows));
    std::vector<BestWords> best(best_words(sequences, 5));
    const Packed input(x, norm, sequences);
    const Streamed streamed(weights, c.columns);
    run_parts(TunedLogits{rows_of(c, streamed, input), input.norm(), logits.data(), best.data(), 3, 5});
    Errors errors;
    for (int s = 0; s < sequences; ++s) {
      std::uint64_t most = 0;
      const RowGroups groups{sequences};
      std::vector<std::uint32_t> of_group(static_cast<std::size_t>(groups.count()));
      int seen = 0;
      for (int group = 0; group < groups.count(); ++group)
        for (int i = 0; groups.row(group, i) < c.groups * 8; ++i, ++seen) {
          const float logit = logits[static_cast<std::size_t>(s * c.rows + c.first * 8 + groups.row(group, i))];
          std::uint32_t& largest = of_group[static_cast<std::size_t>(group)];
          largest = std::max(largest, order_key(logit));
        }
      CHECK(seen == c.groups * 8);
      const std::uint32_t* maxima = maxima_behind(best.data(), sequences, 5, s) + 3 * groups.count();
      CHECK(std::vector(maxima, maxima + groups.count()) == of_group);
      for (int row = c.first * 8; row < (c.first + c.groups) * 8; ++row) {
        const float logit = logits[static_cast<std::size_t>(s * c.rows + row)];
        errors.add(logit, normed_dot(weights, x, norm, row, s, c.columns));
        most = std::max(most, likelier_of(logit, row));
      }
      CHECK(best[static_cast<std::size_t>(s * 5 + 3)].value() == most);
    }
    CHECK(errors.relative() < kMostError);
  }
}

TEST_CASE("tuned: shares of a matrix differ by one unit at most, and bytes even out over matrices") {
  constexpr int kWorkers = 13, kUnits[] = {20, 40, 100, 7, 13, 300};
  Sharer share(kWorkers);
  std::vector<double> bytes(kWorkers);
  double largest_unit = 0, all = 0;
  for (int layer = 0; layer < 30; ++layer)
    for (const int units : kUnits) {
      const double unit = 1000. * (1 + units % 3);
      const int most = 4;
      std::vector<int> counts(kWorkers);
      int next = 0;
      for (const Share& s : share(units, unit, most)) {
        CHECK(s.first == next);
        CHECK((s.count > 0 && s.count <= most));
        next += s.count;
        counts[static_cast<std::size_t>(s.worker)] += s.count;
      }
      CHECK(next == units);
      const auto [fewest, greatest] = std::minmax_element(counts.begin(), counts.end());
      CHECK(*greatest - *fewest <= 1);
      for (std::size_t w = 0; w < counts.size(); ++w) bytes[w] += counts[w] * unit;
      largest_unit = std::max(largest_unit, unit);
      all += units * unit;
    }
  for (const double one : bytes) CHECK(std::abs(one - all / kWorkers) <= 2 * largest_unit);
}

TEST_CASE("tuned: who does something else first gets so much less of the next matrix, and makes up for it later") {
  Sharer share(10);
  const auto counts = [&](int units) {
    std::vector<int> all(10);
    for (const Share& s : share(units, 100, 1000)) all[static_cast<std::size_t>(s.worker)] += s.count;
    return all;
  };
  counts(25);
  const std::vector<int> workers = share.occupy(3, 250);
  CHECK(std::set<int>(workers.begin(), workers.end()).size() == 3);
  const std::vector<int> next = counts(31);
  for (int w = 0; w < 10; ++w) {
    const bool late = std::find(workers.begin(), workers.end(), w) != workers.end();
    INFO("worker " << w);
    CHECK(next[static_cast<std::size_t>(w)] == (late ? 1 : 4));
  }
  const std::vector<int> after = counts(14);  // of that only
  for (const int w : workers) CHECK(after[static_cast<std::size_t>(w)] == 2);
  CHECK_THROWS_AS(share.occupy(11, 1), std::out_of_range);
}

TEST_CASE("tuned: sharing out over no workers, or in shares of nothing, is refused instead of never ending") {
  for (const int workers : {0, -1}) CHECK_THROWS_AS(Sharer(workers), std::invalid_argument);
  Sharer share(3);
  CHECK_THROWS_AS(share(10, 100, 0), std::invalid_argument);
  CHECK_THROWS_AS(share(-1, 100, 4), std::invalid_argument);
  CHECK_THROWS_AS(share(10, 0, 4), std::invalid_argument);
  CHECK(share(0, 100, 4).empty());
}

}  // namespace llama
