#include <cmath>
#include <cstdlib>

#include "host/options.hpp"

#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

template <class Change>
std::string capacity_error(Change&& change) {
  Options options = on_cpu();
  change(options);
  return error_of<CapacityError>([&] { small_runtime(options); });
}

}  // namespace

TEST_CASE("a limit that cannot work names itself and what it may be") {
  check_says(capacity_error([](Options& o) { o.workers = 5000; }), {"Options::workers is 5000", "1024"});
  check_says(capacity_error([](Options& o) { o.max_runs = 0; }),
             {"Options::max_runs is 0", "choose 1 to 32768"});
  check_says(capacity_error([](Options& o) { o.max_runs = 1 << 16; }),
             {"Options::max_runs", "choose 1 to 32768"});
  check_says(capacity_error([](Options& o) { o.stream_capacity = 0; }), {"Options::stream_capacity is 0"});
  check_says(capacity_error([](Options& o) { o.stream_capacity = 1u << 21; }), {"Options::stream_capacity"});
  check_says(capacity_error([](Options& o) { o.queue_capacity = 0; }), {"Options::queue_capacity is 0"});
  check_says(capacity_error([](Options& o) { o.spawn_capacity = 0; }), {"Options::spawn_capacity is 0"});
  check_says(capacity_error([](Options& o) { o.max_tasks = 0; }), {"Options::max_tasks is 0"});
  check_says(capacity_error([](Options& o) { o.max_tasks = 0xffffffff; }), {"Options::max_tasks"});
  for (const double pace : {-1., 0.001, std::nan("")})
    check_says(capacity_error([&](Options& o) { o.operand_pace = pace; }), {"Options::operand_pace", "from 0.01 on"});
  check_says(capacity_error([](Options& o) { o.max_waiting = 0; }), {"Options::max_waiting is 0"});
}

TEST_CASE("FLYWHEEL_CHECK is 1 or 0, and anything else is told") {
  for (const char* const wish : {"1", "0", ""}) {
    setenv("FLYWHEEL_CHECK", wish, 1);
    CHECK_NOTHROW(small_runtime(on_cpu()));
  }
  setenv("FLYWHEEL_CHECK", "yes", 1);
  check_says(error_of<UsageError>([] { small_runtime(on_cpu()); }), {"FLYWHEEL_CHECK is 'yes'", "set it to 1"});
  unsetenv("FLYWHEEL_CHECK");
}

TEST_CASE("the smallest of everything still works") {
  Options options = on_cpu(1);
  options.heap_bytes = 1;
  options.max_tasks = options.max_edges = options.max_executables = options.max_runs = options.max_waiting =
      1;
  options.overlap = 0;  // taken as 1
  options.queue_capacity = 2;
  options.spawn_capacity = options.stream_capacity = 1;
  options.result_bytes = 0;
  options.scratch_bytes = 0;
  options.park_after = std::chrono::milliseconds(0);
  Bench bench(options);
  Graph graph;
  graph.add(EmitRange{0, 5});
  const Executable executable = bench.runtime.load(graph);
  for (int round = 0; round < 20; ++round) {
    Run run = bench.runtime.submit(executable);
    for (std::uint32_t i = 0; i < 5; ++i) REQUIRE(run.next<std::uint32_t>() == i);
    CHECK(run.status() == Status::ok);
  }
}

TEST_CASE("capacities need not be powers of two") {
  Options options = on_cpu();
  options.max_runs = 3;
  options.queue_capacity = 1000;
  options.spawn_capacity = 100;
  options.stream_capacity = 5;
  Bench bench(options);
  const Executable counter = bench.counter(0);
  std::vector<Run> runs;
  for (int i = 0; i < 100; ++i) runs.push_back(bench.runtime.submit(counter));
  for (Run& run : runs) run.wait();
  CHECK(bench.get(0) == 100);
}
