// Runs that follow runs: a thread pours a graph of runs into the device as it discovers it, and waits for the last one only.
// Here: the least sum of a path down a triangle of numbers. Each run does a block of cells, after the two blocks above it.
// The program does the same a second time with a wait before each row, in turns, and prints what the followers buy.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace followers {

constexpr std::uint32_t kRows = 48;
constexpr int kRounds = 5;

/// The number in a cell of the triangle.
FLYWHEEL_TASK inline std::uint32_t number(std::uint32_t row, std::uint32_t column) { return (row * 31 + column * 17) % 100; }

FLYWHEEL_TASK inline std::size_t cell(std::uint32_t row, std::uint32_t column) { return row * kRows + column; }

/// The least sum of a path from the top to this cell, from those of the two cells above it.
FLYWHEEL_TASK inline std::uint32_t least(const std::uint32_t* sums, std::uint32_t row, std::uint32_t column) {
  std::uint32_t above = row ? ~0u : 0;
  if (row && column) above = sums[cell(row - 1, column - 1)];
  if (column < row && sums[cell(row - 1, column)] < above) above = sums[cell(row - 1, column)];
  return above + number(row, column);
}

struct Cell {
  std::uint32_t* sums;
  flywheel::Param<std::uint32_t> row, column;
  template <class Block>
  FLYWHEEL_TASK std::uint32_t operator()(Block& block) const {
    const std::uint32_t r = block.param(row), c = block.param(column);
    if (block.leader()) sums[cell(r, c)] = least(sums, r, c);
    block.sync();
    return sums[cell(r, c)];
  }
};

struct Triangle {
  explicit Triangle(flywheel::Runtime& runtime) : rt(runtime), sums(rt.allocate<std::uint32_t>(kRows * kRows)) {
    flywheel::Graph g;
    row = g.param<std::uint32_t>();
    column = g.param<std::uint32_t>();
    result = g.add(Cell{sums.data(), row, column});
    executable = rt.load(g);
  }
  template <class... Options>
  flywheel::Run submit(std::uint32_t r, std::uint32_t c, const Options&... options) {
    return rt.submit(executable, set(row, r), set(column, c), options...);
  }
  /// The least sum of the cells of the last row.
  std::uint32_t least_of(std::vector<flywheel::Run>& last) const {
    std::uint32_t sum = ~0u;
    for (flywheel::Run& run : last) sum = std::min(sum, run.get(result));
    return sum;
  }

  flywheel::Runtime& rt;
  flywheel::Buffer<std::uint32_t> sums;
  flywheel::Param<std::uint32_t> row{}, column{};
  flywheel::TaskRef<std::uint32_t> result{};
  flywheel::Executable executable;
};

/// All runs ahead, each after the two above it.
std::uint32_t with_followers(Triangle& triangle) {
  std::vector<flywheel::Run> above;
  for (std::uint32_t r = 0; r < kRows; ++r) {
    std::vector<flywheel::Run> row;
    for (std::uint32_t c = 0; c <= r; ++c) {
      const std::size_t from = c ? c - 1 : 0, to = std::min<std::size_t>(c + 1, above.size());
      row.push_back(triangle.submit(r, c,
                                    after(std::vector<flywheel::Run>(above.begin() + static_cast<std::ptrdiff_t>(from),
                                                                     above.begin() + static_cast<std::ptrdiff_t>(to)))));
    }
    above = std::move(row);
  }
  return triangle.least_of(above);
}

/// The host waits for each row.
std::uint32_t with_waits(Triangle& triangle) {
  std::vector<flywheel::Run> row;
  for (std::uint32_t r = 0; r < kRows; ++r) {
    row.clear();
    for (std::uint32_t c = 0; c <= r; ++c) row.push_back(triangle.submit(r, c));
    flywheel::when_all(row);
  }
  return triangle.least_of(row);
}

std::uint32_t with_a_loop() {
  std::vector<std::uint32_t> sums(kRows * kRows);
  for (std::uint32_t r = 0; r < kRows; ++r)
    for (std::uint32_t c = 0; c <= r; ++c) sums[cell(r, c)] = least(sums.data(), r, c);
  return *std::min_element(sums.end() - kRows, sums.end());
}

/// The time of the whole triangle in us; 0 if the result is wrong.
template <class Way>
double us_of(Triangle& triangle, Way way, std::uint32_t right) {
  const auto begin = std::chrono::steady_clock::now();
  if (way(triangle) != right) return 0;
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace followers

int main() {
  using namespace followers;
  flywheel::Options options;
  options.overlap = 64;  // runs of the one executable in flight, those that wait included
  flywheel::Runtime rt = flywheel::start<Cell>(options);
  Triangle triangle(rt);
  const std::uint32_t right = with_a_loop();
  double followed = 1e9, waited = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    followed = std::min(followed, us_of(triangle, with_followers, right));
    waited = std::min(waited, us_of(triangle, with_waits, right));
  }
  std::printf("%s: %u runs in %u rows, least sum %u: %.0f us with followers, %.0f with a wait for each row: %.1fx\n",
              rt.device().c_str(), kRows * (kRows + 1) / 2, kRows, right, followed, waited, waited / followed);
  return followed > 0 && waited > 0 ? 0 : 1;
}
