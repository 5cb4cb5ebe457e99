// Early tasks, dependent operands and checked runs on the GPU: the tasks that tests/runtime/test_kernel_*.cpp run on an
// emulated one.
#include "support/dependent_tasks.hpp"
#include "support/early_tasks.hpp"
#include "support/operand_mistakes.hpp"
#include "support/small_tasks.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

struct Way {
  bool bulk, checked;
  std::uint32_t pages, window;
};

constexpr Way kWays[] = {{true, false, 0, 2},  {true, false, 3, 3},  {true, false, 4, 2}, {true, true, 3, 2},
                         {false, false, 0, 2}, {false, false, 3, 3}, {false, true, 4, 3}};

Options options_of(const Way& way) {
  Options options;
  options.target = Target::gpu;
  options.log_level = "off";
  options.tuning.bulk_copies = way.bulk;
  options.operand_pages = way.pages;
  options.tuning.operand_window = way.window * kPageBytes;
  options.check_operands = way.checked;
  return options;
}

template <class... Tasks, class Action>
void each_way(Action&& action) {
  for (const Way& way : kWays) {
    INFO((way.bulk ? "bulk copies, " : "cp.async, ")
         << (way.checked ? "checked, " : "") << way.pages << " pages, window " << way.window);
    Runtime runtime = start<Tasks...>(options_of(way));
    action(runtime);
  }
}

}  // namespace

TEST_CASE("early: stages of stamped words, whichever part sends them and wherever tasks are placed") {
  each_way<Direct, Stored, Late, Plain, Collect>([](Runtime& runtime) {
    for (const Shape shape : {Shape{2, 1}, Shape{40, 3}, Shape{30, 32}, Shape{12, 4, 1}, Shape{20, 6, 2}}) {
      INFO(shape.stages << " stages of " << shape.width);
      const auto words = runtime.allocate<Stamped>(shape.stages * shape.width);
      EarlyGraph one(runtime, words, shape, 10), other(runtime, words, shape, 77);
      const Executable first = runtime.load(one.graph, compiled), second = runtime.load(other.graph, compiled);
      for (const std::uint32_t passes : {1u, 1u, 200u, 50u}) {
        runtime.submit(first, repeat(passes)).wait();
        runtime.submit(second, repeat(passes)).wait();
      }
      for (const EarlyGraph* graph : {&one, &other}) {
        CHECK(graph->seen().wrong == 0);
        CHECK(graph->seen().checks == 252);
        CHECK(graph->seen().computes == 252 * shape.stages * shape.width);
      }
    }
  });
}

TEST_CASE("early: a task fails, before or after it has sent; the next runs are right") {
  each_way<Direct, Stored, Late, Plain, Collect>([](Runtime& runtime) {
    for (const Fails fails : {Fails::before_it_sends, Fails::after_it_has_sent})
      for (const std::uint32_t workers : {~0u, 1u, 2u}) {
        const auto words = runtime.allocate<Stamped>(24);
        EarlyGraph failing(runtime, words, {6, 4, workers, 1, fails}, 3), clean(runtime, words, {6, 4, workers}, 4);
        const Executable broken = runtime.load(failing.graph, compiled), whole = runtime.load(clean.graph, compiled);
        for (int i = 0; i < 20; ++i) {
          CHECK(runtime.submit(broken, repeat(3)).status() == Status::task_failed);
          CHECK(runtime.submit(whole, repeat(2)).status() == Status::ok);
        }
        CHECK(failing.seen().wrong + clean.seen().wrong == 0);
        CHECK(failing.seen().checks == 20);  // of the pass before the failure
        CHECK(clean.seen().checks == 40);
      }
  });
}

TEST_CASE("early: who waits until all is done sees plain words, and passes go on without anything sent") {
  each_way<Direct, Stored, Late, Plain, Collect>([](Runtime& runtime) {
    const auto notes = runtime.allocate<EarlyNotes>(1);
    const auto plain = runtime.allocate<std::uint32_t>(100), counts = runtime.allocate<std::uint32_t>(100);
    Graph graph;
    for (std::uint32_t i = 0; i < 100; ++i)
      graph.add(Late{plain.data() + i, counts.data() + i, notes.data()}, after(graph.add(Plain{plain.data() + i})));
    const Executable executable = runtime.load(graph, compiled);
    for (const std::uint32_t passes : {30u, 170u}) runtime.submit(executable, repeat(passes)).wait();
    CHECK(notes.read()[0].wrong == 0);
    CHECK(counts.read() == std::vector<std::uint32_t>(100, 200));
  });
}

TEST_CASE("dependents: pages hold what the predecessors of this pass wrote, also after a writer has failed") {
  each_way<Write, Check>([](Runtime& runtime) {
    constexpr std::uint32_t kWords = kPageBytes / 4;  // a page a piece: not more may be under way at once
    Stages stages(runtime, 60, kWords), failing(runtime, 60, kWords, 1);
    const Executable clean = runtime.load(stages.graph, compiled), bad = runtime.load(failing.graph, compiled);
    for (const std::uint32_t passes : {1u, 60u, 39u}) {
      runtime.submit(clean, repeat(passes)).wait();
      CHECK(runtime.submit(bad, repeat(3)).status() == Status::task_failed);
    }
    CHECK(stages.notes.read()[0].wrong == 0);
    CHECK(stages.notes.read()[0].computes == 100 * 60);
    CHECK(failing.notes.read()[0].wrong == 0);
  });
}

TEST_CASE("checked: a mistake with pages or handoffs fails its task by name, and other runs go on") {
  for (const Way& way : {Way{true, true, 3, 2}, Way{false, true, 3, 2}}) {
    Runtime runtime = start<Packed, Mistaken>(options_of(way));
    check_mistakes(runtime);
  }
}
