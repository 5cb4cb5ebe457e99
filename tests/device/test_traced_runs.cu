// Traced runs of dynamic and phased graphs and traced batches, on a GPU.
#include "support/small_runtime.hpp"
#include "support/traced_runs.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

Options tracing(std::uint32_t events = 4096) {
  Options options = on_gpu();
  options.trace_events = events;
  return options;
}

struct TracedBench {
  Bench bench{tracing(), 4096};
};

}  // namespace

TEST_CASE_METHOD(TracedBench, "traced: random dynamic graphs, one span for each task and pass") {
  check_traced_graphs(bench, 50);
}
TEST_CASE_METHOD(TracedBench, "traced: runs of a chain") { check_traced_followers(bench, 100); }
TEST_CASE_METHOD(TracedBench, "traced: spawned tasks have their type") { check_traced_spawns(bench); }
TEST_CASE_METHOD(TracedBench, "traced: phases and their meetings") { check_traced_phases(bench); }
TEST_CASE_METHOD(TracedBench, "traced: grid tasks and the meetings in them") { check_traced_grid(bench); }
TEST_CASE_METHOD(TracedBench, "traced: batches") { check_traced_batches(bench); }
TEST_CASE_METHOD(TracedBench, "traced: batches of several types") { check_traced_mixed_batches(bench); }
TEST_CASE_METHOD(TracedBench, "traced: runs that fail or are cancelled") { check_traced_failures(bench); }
TEST_CASE_METHOD(TracedBench, "traced: stop()") { check_traced_stop(bench); }
TEST_CASE_METHOD(TracedBench, "traced: one after the other, whatever their kind") { check_traced_in_turn(bench); }
TEST_CASE_METHOD(TracedBench, "traced: over several launches") { check_traced_over_launches(bench); }
