// The GPU's kernel on an emulated GPU: the load warp goes from level to level of a graph, between compiled runs, phased runs
// and suspensions, and what comes in between: failures, cancellations, roots that others take.
#include <array>

#include "support/emulated_bench.hpp"
#include "support/seed.hpp"
#include "support/yields.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

#ifdef __SANITIZE_THREAD__
constexpr bool kSanitized = true;  // a step of a grid takes 100 times as long
#else
constexpr bool kSanitized = false;
#endif

/// A point of a grid that depends on its neighbours one step before, and on none in step 0. Cells are plain memory: the
/// dependencies alone order them.
struct Point {
  std::uint64_t* cells;
  std::uint32_t width, step, place;
  std::uint32_t fails;  // a code, or 0

  FLYWHEEL_TASK static std::uint64_t value(std::uint64_t left, std::uint64_t own, std::uint64_t right) {
    return left + 3 * own + 5 * right + 1;
  }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (!block.leader()) return;
    const std::uint64_t* before = cells + (step - 1) * width;
    cells[step * width + place] = step ? value(before[(place + width - 1) % width], before[place], before[(place + 1) % width])
                                       : block.iteration() + place;
    if (fails) block.fail(fails);
  }
};

/// What a grid holds after pass `pass`, from 0.
std::vector<std::uint64_t> grid_after(std::uint32_t pass, std::uint32_t width, std::uint32_t steps) {
  std::vector<std::uint64_t> cells;
  for (std::uint32_t i = 0; i < width; ++i) cells.push_back(pass + i);
  for (std::uint32_t step = 1; step < steps; ++step)
    for (std::uint32_t i = 0; i < width; ++i) {
      const std::uint64_t* before = cells.data() + (step - 1) * width;
      cells.push_back(Point::value(before[(i + width - 1) % width], before[i], before[(i + 1) % width]));
    }
  return cells;
}

struct Grids {
  explicit Grids(const Options& options, std::uint64_t seed = fresh_seed())
      : runtime(start_emulated<Point, Count, Rounds>(options, seed)),
        words(runtime.allocate<std::uint32_t>(64)) {}

  /// `failing`: the number of a task that fails, if there is one of that number.
  Executable grid(const Buffer<std::uint64_t>& cells, std::uint32_t width, std::uint32_t steps, std::uint32_t failing = ~0u) {
    Graph graph;
    std::vector<TaskRef<>> before, now;
    for (std::uint32_t step = 0; step < steps; ++step, before = std::exchange(now, {}))
      for (std::uint32_t i = 0; i < width; ++i) {
        now.push_back(graph.add(Point{cells.data(), width, step, i, step * width + i == failing ? 7u : 0u}));
        std::vector<std::uint32_t> near{(i + width - 1) % width, i, (i + 1) % width};
        std::ranges::sort(near);
        near.erase(std::unique(near.begin(), near.end()), near.end());
        for (const std::uint32_t n : near)
          if (step) graph.edge(before[n], now[i]);
      }
    return runtime.load(graph);
  }
  std::uint32_t get(std::size_t i) const {
    std::uint32_t value = 0;
    words.read(&value, 1, i);
    return value;
  }
  std::uint32_t* at(std::size_t i) const { return words.data() + i; }

  Runtime runtime;
  Buffer<std::uint32_t> words;
};

}  // namespace

TEST_CASE("kernel, awaited: a grid as wide as the GPU needs few queues") {
  constexpr std::uint32_t kSteps = kSanitized ? 14 : 40;
  FLYWHEEL_TEST_SEED(seed);
  for (const std::uint32_t width : {1u, 2u, 3u, 4u, 7u}) {
    Grids grids(emulated_options(), seed + width);
    Buffer<std::uint64_t> cells = grids.runtime.allocate<std::uint64_t>(std::size_t{width} * kSteps);
    const Executable executable = grids.grid(cells, width, kSteps);
    for (std::uint32_t passes = 1; passes <= 4; ++passes) {
      CHECK(grids.runtime.submit(executable, repeat(passes)).status() == Status::ok);
      CHECK(cells.read() == grid_after(passes - 1, width, kSteps));
    }
  }
}

TEST_CASE("kernel, awaited: both workers of a ring of two points go on, while without awaiting one of two tasks is published") {
  constexpr std::uint32_t kSteps = 50, kPasses = 10;
  FLYWHEEL_TEST_SEED(seed);
  double share = 0;  // of the tasks that their worker kept; how large it is depends on how busy the processors are
  for (std::uint32_t attempt = 0; attempt < 40 && share <= 0.6; ++attempt) {
    Grids grids(emulated_options(), seed + attempt);
    const Buffer<std::uint64_t> cells = grids.runtime.allocate<std::uint64_t>(2 * kSteps);
    REQUIRE(grids.runtime.submit(grids.grid(cells, 2, kSteps), repeat(kPasses)).status() == Status::ok);
    grids.runtime.shutdown();
    const Stats stats = grids.runtime.stats();
    CHECK(stats.tasks == 2 * kSteps * kPasses);
    CHECK(stats.kept + stats.queued + stats.handed == stats.tasks);
    share = static_cast<double>(stats.kept) / static_cast<double>(stats.tasks);
  }
  CHECK(share > 0.6);
}

TEST_CASE("kernel, awaited: the load warp serves compiled runs as well, and phased runs come in between") {
  constexpr std::uint32_t kWidth = 3, kSteps = 12, kRounds = 12;
  FLYWHEEL_TEST_SEED(seed);
  Grids grids(emulated_options(), seed);
  Buffer<std::uint64_t> cells = grids.runtime.allocate<std::uint64_t>(std::size_t{kWidth} * kSteps);
  Graph planned, phased;
  planned.add(Count{grids.at(1)}, after(planned.add(Count{grids.at(0)})));
  phased.add_grid(Rounds{grids.at(8), grids.at(2), 2});
  const Executable grid = grids.grid(cells, kWidth, kSteps), compiled_run = grids.runtime.load(planned, compiled),
                   phased_run = grids.runtime.load(phased);
  for (std::uint32_t round = 1; round <= kRounds; ++round) {
    std::array<Run, 4> runs{grids.runtime.submit(grid, repeat(3)), grids.runtime.submit(compiled_run, repeat(2)),
                            grids.runtime.submit(phased_run), grids.runtime.submit(compiled_run)};
    for (Run& run : runs) CHECK(run.status() == Status::ok);
    CHECK(cells.read() == grid_after(2, kWidth, kSteps));
    CHECK(grids.get(1) == 3 * round);
    CHECK(grids.get(2) == 0);
  }
}

TEST_CASE("kernel, awaited: a failure skips what depends on it, and the next run is well") {
  constexpr std::uint32_t kWidth = 5, kSteps = 6, kUntouched = 99;
  FLYWHEEL_TEST_SEED(seed);
  Random random(seed);
  Grids grids(emulated_options(), seed);
  Buffer<std::uint64_t> cells = grids.runtime.allocate<std::uint64_t>(std::size_t{kWidth} * kSteps);
  const std::vector<std::uint64_t> right = grid_after(0, kWidth, kSteps);
  const Executable well = grids.grid(cells, kWidth, kSteps);
  for (std::uint32_t round = 0; round < 6; ++round) {
    const std::uint32_t failing = pick(random, 0, kWidth * kSteps - 1);
    const Executable bad = grids.grid(cells, kWidth, kSteps, failing);
    for (std::uint32_t again = 0; again < 3; ++again) {
      cells.write(std::vector<std::uint64_t>(right.size(), kUntouched));
      CHECK(grids.runtime.submit(bad).status() == Status::task_failed);
      std::vector<std::uint64_t> left = right;
      for (std::uint32_t step = failing / kWidth + 1, reach = 1; step < kSteps; ++step, ++reach)
        for (std::uint32_t i = 0; i < kWidth; ++i) {
          const std::uint32_t apart = (i + kWidth - failing % kWidth) % kWidth;
          if (std::min(apart, kWidth - apart) <= reach) left[step * kWidth + i] = kUntouched;
        }
      CHECK(cells.read() == left);
    }
    CHECK(grids.runtime.submit(well).status() == Status::ok);
    CHECK(cells.read() == right);
  }
}

TEST_CASE("kernel, awaited: cancelled at any moment, and the next run is well") {
  constexpr std::uint32_t kSteps = 8;
  FLYWHEEL_TEST_SEED(seed);
  Random random(seed);
  for (const std::uint32_t width : {1u, 3u}) {
    Grids grids(emulated_options(), seed + width);
    Buffer<std::uint64_t> cells = grids.runtime.allocate<std::uint64_t>(std::size_t{width} * kSteps);
    const Executable executable = grids.grid(cells, width, kSteps);
    for (std::uint32_t round = 0; round < 60; ++round) {
      Run run = grids.runtime.submit(executable, repeat_until_stop());
      std::this_thread::sleep_for(std::chrono::microseconds(pick(random, 0, 3000)));
      run.cancel();
      CHECK(run.status() == Status::cancelled);
      if (round % 8) continue;
      CHECK(grids.runtime.submit(executable).status() == Status::ok);
      CHECK(cells.read() == grid_after(0, width, kSteps));
    }
  }
}

TEST_CASE("kernel, awaited: the kernel is suspended in the middle of grids") {
  constexpr std::uint32_t kWidth = 4, kSteps = 20;
  Grids grids(emulated_options());
  Buffer<std::uint64_t> cells = grids.runtime.allocate<std::uint64_t>(std::size_t{kWidth} * kSteps);
  const Executable executable = grids.grid(cells, kWidth, kSteps);
  Yielder yielder(grids.runtime);
  for (std::uint32_t round = 0; round < (kSanitized ? 4 : 10); ++round) {
    CHECK(grids.runtime.submit(executable, repeat(5)).status() == Status::ok);
    CHECK(cells.read() == grid_after(4, kWidth, kSteps));
  }
  CHECK(yielder.wait_for(5, executable));
}

TEST_CASE("kernel, awaited: many roots that others take while a worker decides whether to await") {
  constexpr std::uint32_t kRounds = kSanitized ? 1 : 5, kPasses = kSanitized ? 40 : 100;  // 24 s a round of 100 there, else 0.1
  constexpr std::uint32_t kRoots = 30, kSteps = 3;
  FLYWHEEL_TEST_SEED(seed);
  Grids grids(emulated_options(9), seed);  // one queued task is few
  Graph graph;
  for (std::uint32_t i = 0; i < kRoots; ++i) {
    TaskRef<> last = graph.add(Count{grids.at(0)});
    for (std::uint32_t step = 1; step < kSteps; ++step) last = graph.add(Count{grids.at(0)}, after(last));
  }
  const Executable executable = grids.runtime.load(graph);
  for (std::uint32_t round = 1; round <= kRounds; ++round) {
    REQUIRE(grids.runtime.submit(executable, repeat(kPasses)).status() == Status::ok);
    REQUIRE(grids.get(0) == kPasses * kRoots * kSteps * round);
  }
}
