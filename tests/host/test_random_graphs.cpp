// Random graphs on the CPU engine against the serial oracle. FLYWHEEL_GRAPHS and FLYWHEEL_SEED choose how
// many and which.
#include "catch.hpp"
#include "support/graph_driver.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

#ifdef __SANITIZE_THREAD__
constexpr std::uint32_t kDrawnGraphs = 800, kMostDrawnTasks = 400;
#else
constexpr std::uint32_t kDrawnGraphs = 4000, kMostDrawnTasks = 5000;
#endif

/// One part of `parts` of the graphs, with these options.
void check_part(const Options& chosen, std::uint32_t part, std::uint32_t parts, std::uint32_t threads) {
  Options options = chosen;
  options.target = Target::cpu;
  const auto graphs = static_cast<std::uint32_t>(number_from("FLYWHEEL_GRAPHS", kDrawnGraphs)) / parts;
  const Campaign plan{number_from("FLYWHEEL_SEED", 1) + part * graphs, graphs, kMostDrawnTasks, threads};
  Runtime runtime = start<Node, ReturningNode, Sprout>(options);
  Tally tally;
  run_campaign(runtime, plan, tally);
  INFO(tally.problem);
  CHECK_FALSE(tally.bad);
  CHECK(tally.graphs == graphs);
}

}  // namespace

TEST_CASE("random graphs: four workers, three submitting threads") {
  Options options;
  options.workers = 4;
  check_part(options, 0, 4, 3);
}

TEST_CASE("random graphs: one worker, tight queues, few runs at once") {
  Options options;
  options.workers = 1;
  options.max_runs = 2;
  options.spawn_capacity = 64;
  options.queue_capacity = 8192;
  options.stream_capacity = 4;
  check_part(options, 1, 4, 2);
}

TEST_CASE("random graphs: two workers that keep no successor and park at once") {
  Options options;
  options.workers = 2;
  options.tuning.keep_successor = false;
  options.park_after = std::chrono::milliseconds(0);
  options.spawn_capacity = 4;
  options.overlap = 1;
  check_part(options, 2, 4, 2);
}

TEST_CASE("random graphs: drain mode") {
  Options options;
  options.workers = 3;
  options.mode = Mode::drain;
  check_part(options, 3, 4, 2);
}
