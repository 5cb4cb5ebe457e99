// The ladder's rungs on an emulated block, as far as it goes: no cuda::pipeline, no clusters.
#include "apps/ladder/rung_01_naive.cuh"
#include "apps/ladder/rung_02_tiled.cuh"
#include "apps/ladder/rung_05_ring.cuh"
#include "apps/ladder/rung_07_ping_pong.cuh"
#include "apps/ladder/rung_08_order.cuh"

#include <cmath>
#include <random>
#include <set>
#include <vector>

#include "catch.hpp"

using namespace ladder;

namespace {

class Case {
 public:
  explicit Case(int n) : n_(n), a_(values()), b_(values()), c_(a_.size(), NAN) {}

  /// The largest error of C, in units of the sum's own size.
  double worst_of(Launch (*prepare)(const Problem&)) {
    prepare({a_.data(), b_.data(), c_.data(), n_})(nullptr);
    double worst = 0;
    for (int row = 0; row < n_; ++row) {
      std::vector<double> sums(static_cast<std::size_t>(n_));
      for (int k = 0; k < n_; ++k)
        for (int column = 0; column < n_; ++column)
          sums[static_cast<std::size_t>(column)] += double{a_[at(row, k)]} * double{b_[at(k, column)]};
      for (int column = 0; column < n_; ++column) {
        const double off = std::abs(double{c_[at(row, column)]} - sums[static_cast<std::size_t>(column)]);
        if (!(off <= worst)) worst = off;  // no number is the worst
      }
    }
    return worst / std::sqrt(n_);
  }

 private:
  std::size_t at(int row, int column) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(n_) + static_cast<std::size_t>(column);
  }
  std::vector<float> values() {
    std::vector<float> all(static_cast<std::size_t>(n_) * static_cast<std::size_t>(n_));
    for (float& one : all) one = std::uniform_real_distribution<float>(-1, 1)(random_);
    return all;
  }

  std::mt19937_64 random_{flywheel::testing::fresh_seed()};
  int n_;
  std::vector<float> a_, b_, c_;
};

constexpr double kMost = 1e-5;

/// Tiles in the order in which blocks take them: each once.
template <class Order>
bool takes_each_once(const Order& order, int rows, int columns) {
  std::set<std::pair<int, int>> seen;
  for (int tile = 0; tile < rows * columns; ++tile) {
    const int2 place = order(tile);
    if (place.x < 0 || place.x >= rows || place.y < 0 || place.y >= columns) return false;
    seen.insert({place.x, place.y});
  }
  return static_cast<int>(seen.size()) == rows * columns;
}

}  // namespace

TEST_CASE("the ladder's plain rungs") {
  CHECK(Case(256).worst_of(prepare_naive) < kMost);
  CHECK(Case(256).worst_of(prepare_tiled) < kMost);
  CHECK(Case(256).worst_of(prepare_registers) < kMost);
}

TEST_CASE("the ladder's ring") { CHECK(Case(256).worst_of(prepare_ring) < kMost); }

TEST_CASE("the ladder's roles: each block has several tiles") {
  CHECK(Case(512).worst_of(prepare_roles) < kMost);
  CHECK(Case(256).worst_of(prepare_order) < kMost);
}

TEST_CASE("the ladder's two groups") { CHECK(Case(512).worst_of(prepare_ping_pong) < kMost); }

TEST_CASE("orders of tiles take each once") {
  for (const int rows : {1, 2, 15, 16, 17, 32, 40})
    for (const int columns : {1, 3, 8, 16}) {
      CHECK(takes_each_once(ByBands{rows, columns}, rows, columns));
      CHECK(takes_each_once(ByRows{columns}, rows, columns));
    }
}
