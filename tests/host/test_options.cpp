#include <cmath>
#include <cstdlib>

#include "host/base/options.hpp"
#include "support/internals.hpp"

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
  check_says(capacity_error([](Options& o) { o.max_runs = 0; }), {"Options::max_runs is 0", "choose 1 to 32768"});
  check_says(capacity_error([](Options& o) { o.max_runs = 1 << 16; }), {"Options::max_runs", "choose 1 to 32768"});
  check_says(capacity_error([](Options& o) { o.stream_capacity = 0; }), {"Options::stream_capacity is 0"});
  check_says(capacity_error([](Options& o) { o.stream_capacity = 1u << 21; }), {"Options::stream_capacity"});
  check_says(capacity_error([](Options& o) { o.queue_capacity = 0; }), {"Options::queue_capacity is 0"});
  check_says(capacity_error([](Options& o) { o.spawn_capacity = 0; }), {"Options::spawn_capacity is 0"});
  check_says(capacity_error([](Options& o) { o.max_tasks = 0; }), {"Options::max_tasks is 0"});
  check_says(capacity_error([](Options& o) { o.max_tasks = 0xffffffff; }), {"Options::max_tasks"});
  for (const double pace : {-1., 0.001, std::nan("")})
    check_says(capacity_error([&](Options& o) { o.tuning.operand_pace = pace; }),
               {"Options::tuning.operand_pace", "from 0.01 on"});
  check_says(capacity_error([](Options& o) { o.max_waiting = 0; }), {"Options::max_waiting is 0"});
}

TEST_CASE("sizes that were taken as something else, or failed much later, are refused") {
  check_says(capacity_error([](Options& o) { o.overlap = 0; }), {"Options::overlap is 0", "choose 1 to 32768"});
  check_says(capacity_error([](Options& o) { o.overlap = 40'000; }), {"Options::overlap is 40000"});
  check_says(capacity_error([](Options& o) { o.max_edges = 0; }), {"Options::max_edges is 0", "choose 1 to"});
  check_says(capacity_error([](Options& o) { o.max_executables = 0; }), {"Options::max_executables is 0"});
  check_says(capacity_error([](Options& o) { o.trace_events = ~0u; }), {"Options::trace_events is 4294967295", "choose 0 to"});
  check_says(capacity_error([](Options& o) { o.device = -1; }), {"Options::device is -1", "choose 0 to"});
  check_says(capacity_error([](Options& o) { o.scratch_bytes = ~0u; }), {"Options::scratch_bytes is 4294967295"});
  check_says(capacity_error([](Options& o) { o.result_bytes = ~0u; }), {"Options::result_bytes is 4294967295"});
  check_says(capacity_error([](Options& o) { o.heap_bytes = ~std::size_t{0}; }),
             {"Options::heap_bytes is 18446744073709551615"});
  for (const std::uint32_t pages : {1u, 17u, ~0u})
    check_says(capacity_error([&](Options& o) { o.operand_pages = pages; }),
               {"Options::operand_pages is " + std::to_string(pages), "choose 2 to 16, or 0"});
  check_says(capacity_error([](Options& o) { o.tuning.operand_window = 0; }),
             {"Options::tuning.operand_window is 0", "one page"});
}

TEST_CASE("times are not negative, and not longer than can be counted in nanoseconds") {
  const std::pair<const char*, std::chrono::milliseconds Options::*> times[] = {
      {"park_after", &Options::park_after},     {"start_timeout", &Options::start_timeout},
      {"stall_limit", &Options::stall_limit},   {"spin_budget", &Options::spin_budget},
      {"check_budget", &Options::check_budget}, {"shutdown_timeout", &Options::shutdown_timeout}};
  for (const auto& [name, member] : times) {
    const std::string option = std::string("Options::") + name;
    const auto time = member;  // lambdas of Clang 14 take no structured binding
    check_says(capacity_error([&](Options& o) { o.*time = std::chrono::milliseconds(-1); }),
               {option + " is -1 ms", "choose 0 to"});
    check_says(capacity_error([&](Options& o) { o.*time = std::chrono::milliseconds::max(); }), {option, "ten years"});
    CHECK(capacity_error([&](Options& o) { o.*time = std::chrono::hours(24 * 365); }).empty());
  }
}

TEST_CASE("a level of the log that there is not is refused, and does not silence it") {
  const auto refusal = [](const std::string& level) {
    Options options = on_cpu();
    options.log_level = level;
    return error_of<UsageError>([&] { small_runtime(options); });
  };
  for (const char* const level : {"trace", "debug", "info", "warn", "error", "off"}) CHECK(refusal(level).empty());
  for (const char* const level : {"warning!", "WARN", "verbose", ""})
    check_says(refusal(level),
               {"Options::log_level is '" + std::string(level) + "'", "trace, debug, info, warn, error or off"});
  setenv("FLYWHEEL_LOG", "eror", 1);
  check_says(refusal("warn"), {"FLYWHEEL_LOG is 'eror'", "trace, debug, info, warn, error or off"});
  setenv("FLYWHEEL_LOG", "", 1);
  CHECK(refusal("warn").empty());
  unsetenv("FLYWHEEL_LOG");
}

TEST_CASE("FLYWHEEL_MODE is resident or drain, also where it has nothing to say") {
  Options options = on_cpu();
  for (const char* const mode : {"resident", "drain", ""}) {
    setenv("FLYWHEEL_MODE", mode, 1);
    CHECK_NOTHROW(small_runtime(options));
  }
  setenv("FLYWHEEL_MODE", "train", 1);
  check_says(error_of<UsageError>([&] { small_runtime(options); }), {"FLYWHEEL_MODE is 'train'", "resident or drain"});
  options.mode = Mode::resident;  // the program has chosen
  CHECK_NOTHROW(small_runtime(options));
  unsetenv("FLYWHEEL_MODE");
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
  options.max_tasks = options.max_edges = options.max_executables = options.max_runs = options.max_waiting = 1;
  options.overlap = 1;
  options.operand_pages = 2;
  options.tuning.operand_window = 1;  // taken as a page
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
