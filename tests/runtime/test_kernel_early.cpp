// The GPU's kernel on an emulated GPU: early tasks, whose parts begin before the tasks before them are done, and stamped
// words, which reach them before those have settled.
#include "support/early_tasks.hpp"
#include "support/emulated_bench.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

Runtime emulated() {
  Options options;
  options.workers = 3;
  options.log_level = "off";
  options.start_timeout = std::chrono::seconds(60);  // of processors that others keep busy
  return start_emulated<Direct, Stored, Late, Plain, Collect>(options);
}

}  // namespace

TEST_CASE("kernel, early: stages of stamped words, whichever part sends them and wherever tasks are placed") {
  for (const Shape shape : {Shape{2, 1}, Shape{6, 3}, Shape{5, 7}, Shape{7, 4, 1}, Shape{6, 6, 2}}) {
    Runtime runtime = emulated();
    INFO(runtime.device() << ", " << shape.stages << " stages of " << shape.width);
    const auto words = runtime.allocate<Stamped>(shape.stages * shape.width);
    // Two graphs over the same words: what one has left there must never be taken for what the other waits for.
    EarlyGraph one(runtime, words, shape, 10), other(runtime, words, shape, 77);
    const Executable first = runtime.load(one.graph, compiled), second = runtime.load(other.graph, compiled);
    for (const std::uint32_t passes : {1u, 1u, 5u, 2u}) {
      runtime.submit(first, repeat(passes)).wait();
      runtime.submit(second, repeat(passes)).wait();
    }
    for (const EarlyGraph* graph : {&one, &other}) {
      CHECK(graph->seen().wrong == 0);
      CHECK(graph->seen().checks == 9);
      CHECK(graph->seen().computes == 9 * shape.stages * shape.width);
    }
  }
}

TEST_CASE("kernel, early: a task fails, before or after it has sent; the next runs are right") {
  for (const Fails fails : {Fails::before_it_sends, Fails::after_it_has_sent})
    for (const std::uint32_t workers : {~0u, 1u, 2u}) {
      Runtime runtime = emulated();
      INFO(runtime.device() << ", fails " << static_cast<int>(fails) << ", workers " << workers);
      const Shape good{6, 4, workers}, bad{6, 4, workers, 1, fails};
      const auto words = runtime.allocate<Stamped>(24);
      EarlyGraph failing(runtime, words, bad, 3), clean(runtime, words, good, 4);
      const Executable broken = runtime.load(failing.graph, compiled), whole = runtime.load(clean.graph, compiled);
      for (int i = 0; i < 3; ++i) {
        CHECK(runtime.submit(broken, repeat(3)).status() == Status::task_failed);
        CHECK(runtime.submit(whole, repeat(2)).status() == Status::ok);
      }
      CHECK(failing.seen().wrong == 0);
      CHECK(failing.seen().checks == 3);  // of the pass before the failure
      CHECK(clean.seen().wrong == 0);
      CHECK(clean.seen().checks == 6);
    }
}

TEST_CASE("kernel, early: who waits until all is done sees plain words, and passes go on without anything sent") {
  Runtime runtime = emulated();
  INFO(runtime.device());
  const auto notes = runtime.allocate<EarlyNotes>(1);
  const auto plain = runtime.allocate<std::uint32_t>(4), counts = runtime.allocate<std::uint32_t>(4);
  Graph graph;
  for (std::uint32_t i = 0; i < 4; ++i)
    graph.add(Late{plain.data() + i, counts.data() + i, notes.data()}, after(graph.add(Plain{plain.data() + i})));
  const Executable executable = runtime.load(graph, compiled);
  for (const std::uint32_t passes : {3u, 4u}) runtime.submit(executable, repeat(passes)).wait();
  CHECK(notes.read()[0].wrong == 0);
  CHECK(counts.read() == std::vector<std::uint32_t>(4, 7));
}
