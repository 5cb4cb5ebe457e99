// The GPU's kernel on an emulated GPU: traced runs of dynamic and phased graphs, and traced batches.
#include "support/emulated_bench.hpp"
#include "support/traced_runs.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

Options tracing(std::uint32_t events = 4096) {
  Options options = emulated_options();
  options.trace_events = events;
  return options;
}

struct Fixture {
  EmulatedBench bench{tracing()};
};

}  // namespace

TEST_CASE_METHOD(Fixture, "kernel, traced: random dynamic graphs, one span for each task and pass") {
  check_traced_graphs(bench, 6);
}
TEST_CASE_METHOD(Fixture, "kernel, traced: runs of a chain") { check_traced_followers(bench, 20); }
TEST_CASE_METHOD(Fixture, "kernel, traced: spawned tasks have their type") { check_traced_spawns(bench); }
TEST_CASE_METHOD(Fixture, "kernel, traced: phases and their meetings") { check_traced_phases(bench); }
TEST_CASE_METHOD(Fixture, "kernel, traced: grid tasks and the meetings in them") { check_traced_grid(bench); }
TEST_CASE_METHOD(Fixture, "kernel, traced: batches") { check_traced_batches(bench); }
TEST_CASE_METHOD(Fixture, "kernel, traced: batches of several types") { check_traced_mixed_batches(bench); }
TEST_CASE_METHOD(Fixture, "kernel, traced: runs that fail or are cancelled") { check_traced_failures(bench); }
TEST_CASE_METHOD(Fixture, "kernel, traced: stop()") { check_traced_stop(bench); }
TEST_CASE_METHOD(Fixture, "kernel, traced: one after the other, whatever their kind") { check_traced_in_turn(bench); }
TEST_CASE_METHOD(Fixture, "kernel, traced: over several launches") { check_traced_over_launches(bench); }
TEST_CASE("kernel, traced: events there was no room for, of dynamic runs") {
  EmulatedBench bench(tracing(8));
  check_traced_drops(bench);
}
