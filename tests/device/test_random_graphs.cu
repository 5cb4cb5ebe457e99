// Random graphs on the GPU against the serial oracle: FLYWHEEL_GRAPHS of them (10,000), from FLYWHEEL_SEED
// (1) on.
#include "catch.hpp"
#include "support/graph_driver.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

Options on_gpu() {
  Options options;
  options.target = Target::gpu;
  options.max_edges = 1u << 20;
  return options;
}

void check_graphs(const Options& options, std::uint64_t first_seed, std::uint32_t graphs, std::uint32_t most_tasks) {
  Runtime runtime = start<Node, ReturningNode, Sprout>(options);
  Tally tally;
  const std::uint32_t threads = std::min(8u, std::max(2u, std::thread::hardware_concurrency() / 2));
  run_campaign(runtime, {first_seed, graphs, most_tasks, threads}, tally);
  INFO(tally.problem);
  CHECK_FALSE(tally.bad);
  CHECK(tally.graphs == graphs);
}

std::uint64_t seed() { return number_from("FLYWHEEL_SEED", 1); }
std::uint32_t share(std::uint32_t parts) { return static_cast<std::uint32_t>(number_from("FLYWHEEL_GRAPHS", 10'000)) / parts; }

}  // namespace

TEST_CASE("random graphs on the GPU") { check_graphs(on_gpu(), seed(), share(1), 5000); }

TEST_CASE("random graphs on four workers with tight queues") {
  Options options = on_gpu();
  options.workers = 4;
  options.max_runs = 4;
  options.queue_capacity = 16384;
  options.spawn_capacity = 64;
  options.stream_capacity = 8;
  check_graphs(options, seed() + 1'000'000, share(20), 3000);
}

TEST_CASE("random graphs on a kernel that parks at once and keeps no successor") {
  Options options = on_gpu();
  options.park_after = std::chrono::milliseconds(0);
  options.tuning.keep_successor = false;
  options.overlap = 1;
  check_graphs(options, seed() + 2'000'000, share(20), 3000);
}

TEST_CASE("random graphs in drain mode") {
  Options options = on_gpu();
  options.mode = Mode::drain;
  check_graphs(options, seed() + 3'000'000, share(20), 3000);
}
