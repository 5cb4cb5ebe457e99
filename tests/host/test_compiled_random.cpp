// Random graphs, compiled, on CPU workers against the serial oracle: repeats, failures, stops, cancellations,
// streams and results. FLYWHEEL_GRAPHS and FLYWHEEL_SEED choose how many and which.
#include "catch.hpp"
#include "support/graph_driver.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

#ifdef __SANITIZE_THREAD__
constexpr std::uint32_t kGraphs = 300, kMostTasks = 200;
#else
constexpr std::uint32_t kGraphs = 900, kMostTasks = 2000;
#endif

/// One part of three of the graphs.
void check_part(Options options, std::uint32_t part, std::uint32_t threads) {
  options.target = Target::cpu;
  const auto graphs = static_cast<std::uint32_t>(number_from("FLYWHEEL_GRAPHS", kGraphs)) / 3;
  const Campaign plan{number_from("FLYWHEEL_SEED", 70'000) + part * graphs, graphs, kMostTasks, threads, true};
  Runtime runtime = start<Node, ReturningNode, Sprout>(options);
  Tally tally;
  run_campaign(runtime, plan, tally);
  INFO(tally.problem);
  CHECK_FALSE(tally.bad);
  CHECK(tally.graphs == graphs);
  CHECK(tally.failed > 0);
  CHECK(tally.streamed > 0);
}

}  // namespace

TEST_CASE("compiled random graphs: three workers, two submitting threads") {
  Options options;
  options.workers = 3;
  check_part(options, 0, 2);
}

TEST_CASE("compiled random graphs: seven workers that park at once, short streams") {
  Options options;
  options.workers = 7;
  options.park_after = std::chrono::milliseconds(0);
  options.stream_capacity = 4;
  check_part(options, 1, 1);
}

TEST_CASE("compiled random graphs: one worker in drain mode") {
  Options options;
  options.workers = 1;
  options.mode = Mode::drain;
  check_part(options, 2, 2);
}
