// What a test tells that does not end, see tests/support/hang_report.cpp.
#include <chrono>
#include <string>

#include "support/child.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

TEST_CASE("child: a run that nobody lets end", "[.child]") {
  Bench bench(on_cpu(2));
  Executable held;
  Run run = bench.hold(0, held);
  run.wait_for(std::chrono::seconds(4));
  run.cancel();
}

TEST_CASE("a test that does not end in time tells its case and the stacks of its threads") {
  const ChildResult result =
      run_child("child: a run that nobody lets end", std::chrono::seconds(60), {{"FLYWHEEL_TEST_SECONDS", "2"}});
  INFO(result.output);
  check_says(result.output, {"takes too long", "child: a run that nobody lets end", "thread "});
  std::size_t threads = 0;
  for (std::size_t at = 0; (at = result.output.find("\nthread ", at)) != std::string::npos; ++at) ++threads;
  CHECK(threads >= 5);  // this one, the dispatcher's, the inbox poller's and two workers
}
