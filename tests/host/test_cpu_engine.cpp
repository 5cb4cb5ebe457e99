// CPU workers where the system does not give enough threads.
#include <sys/resource.h>

#include <fstream>

#include "support/child.hpp"
#include "support/lane_tasks.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;  // their shadow is larger than any limit
#else
constexpr bool kSanitized = false;
#endif

/// From here on the process gets no more than this beside what it has.
void limit_memory(std::size_t more) {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = pages * 4096 + more;
  setrlimit(RLIMIT_AS, &limit);
}

}  // namespace

TEST_CASE("child: workers without memory for their stacks", "[.child]") {
  {
    Options options = on_cpu(200);
    options.log_level = "off";
    Bench bench(options);
    Graph graph;
    graph.add(Count{bench.at(0)});
    // A run of all workers cannot end while one is missing. A dynamic run could: the first threads may have ended it before
    // the last one is refused.
    const Executable collective = bench.runtime.load(graph, compiled);
    limit_memory(std::size_t{128} << 20);
    Run run = bench.runtime.submit(collective);
    std::puts(error_of<RunError>([&] { run.wait(); }).c_str());
    check_says(error_of<DeviceError>([&] { bench.runtime.submit(collective); }), {"cannot submit"});
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // threads that were left behind would use what is gone
  std::puts("the runtime is gone");
}

TEST_CASE("child: scratch of two sizes", "[.child]") {
  Options options = on_cpu(1);
  for (const std::uint32_t bytes : {300u << 10, 220u << 10, 200u << 10}) {
    options.scratch_bytes = bytes;
    options.log_level = bytes == 220u << 10 ? "error" : "warn";
    small_runtime(options);
  }
}

TEST_CASE("more scratch than any GPU has is told when CPU workers start") {
  const ChildResult result = run_child("child: scratch of two sizes", std::chrono::seconds(60));
  check_child(result);
  const std::string warning = "Options::scratch_bytes is ";
  check_says(result.output, {warning + "307200", "no GPU has more than 223232", "set it to less"});
  CHECK(result.output.find(warning) == result.output.rfind(warning));
}

TEST_CASE("a CPU worker's block is one warp of one lane") {
  Runtime runtime = start<Lanes, StoredLanes>(on_cpu());
  check_lanes(runtime);
}

TEST_CASE("threads that cannot be started fail the run, and those that could leave") {
  if (kSanitized) return;
  const ChildResult result = run_child("child: workers without memory for their stacks", std::chrono::seconds(60));
  check_child(result);
  check_says(result.output, {"of 201 threads", "could be started", "Options::workers", "the runtime is gone"});
}
