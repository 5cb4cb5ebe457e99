// Traced runs of dynamic and phased graphs and traced batches, on a GPU.
#include <algorithm>
#include <vector>

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

/// Notes when it begins, by the clock that all SMs share, and takes 40 us.
struct NotesBegin {
  std::uint64_t* began;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (!block.leader()) return;
    const std::uint64_t begin = shared_clock();
    *began = begin;
    while (shared_clock() - begin < 40'000) {}
  }
  FLYWHEEL_TASK static std::uint64_t shared_clock() {
    std::uint64_t ns = 0;
#ifdef __CUDA_ARCH__
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
#endif
    return ns;
  }
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
TEST_CASE("traced: a run of one short task a worker has the clocks right") {
  Runtime runtime = start<NotesBegin>(tracing());
  const std::uint32_t workers = runtime.workers();
  const auto began = runtime.allocate<std::uint64_t>(workers);
  Graph graph;
  for (std::uint32_t i = 0; i < workers; ++i) graph.add(NotesBegin{began.data() + i});
  const Executable tasks = runtime.load(graph);
  for (int round = 0; round < 20; ++round) {
    Run run = runtime.submit(tasks, traced);
    run.wait();
    const std::vector<std::uint64_t> shared = began.read();
    const std::uint64_t first = *std::ranges::min_element(shared);
    const Trace trace = run.trace();
    std::vector<double> off;  // of each task's begin in the trace, by the shared clock
    for (const TraceSpan& span : trace.spans())
      if (span.kind == TraceKind::body) off.push_back(span.begin_ns - static_cast<double>(shared[span.task] - first));
    REQUIRE(off.size() == workers);
    const auto [least, most] = std::ranges::minmax_element(off);
    CHECK(*most - *least < 4000);  // the shared clock goes in steps of up to 1 us
  }
}
