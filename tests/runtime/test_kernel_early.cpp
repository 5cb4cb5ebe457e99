// The GPU's kernel on an emulated GPU: early tasks, whose parts begin before the tasks before them are done, and stamped
// words, which reach them before those have settled.
#include <algorithm>
#include <vector>

#include "support/compiled_tasks.hpp"
#include "support/emulated_bench.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

struct EarlyNotes {
  std::uint32_t wrong, computes, checks;
};

/// Stage s of a graph has `width` words: each depends on all of the stage before.
struct Layer {
  const Stamped* in;  // null: the first stage
  Stamped* out;
  std::uint32_t width, seed;

  FLYWHEEL_TASK static std::uint32_t value(std::uint32_t sum_before, std::uint32_t seed, std::uint32_t task, std::uint32_t pass) {
    return static_cast<std::uint32_t>(mix(mix(sum_before, seed), std::uint64_t{task} << 32 | pass));
  }

  /// A warp: what the stage before has put in this pass, added up.
  template <class Block>
  FLYWHEEL_TASK std::uint32_t sum(const Block& block) const {
    if (!in) return 0;
    const auto lane = static_cast<std::uint32_t>(block.lane());
    Stamped word{};
    block.spin([&] {
      if (lane < width) word = look_at(in[lane]);
      return lane >= width || word.stamp() == block.stamp();
    });
    std::uint32_t sum = lane < width ? word.bits() : 0;
    for (int apart = 16; apart; apart /= 2) sum += block.shuffle_xor(sum, apart);
    return sum;
  }
};

enum class Fails { never, before_it_sends, after_it_has_sent };

/// Sends from its compute part. An impatient one looks for its words from the start: their stamps alone tell.
struct Direct {
  static constexpr bool kEarly = true;
  Layer layer;
  std::uint32_t task, fail_at;
  Fails fails;
  bool impatient;
  EarlyNotes* notes;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
  template <class Block, class Operands>
    requires Block::kOnGpu
  FLYWHEEL_TASK void compute(Block& block, Operands&) const {
    if (!impatient && !block.await_sent()) return;
    const std::uint32_t sum = layer.sum(block);
    block.sync();
    if (!block.leader()) return;
    const bool now = block.iteration() == fail_at;
    if (now && fails == Fails::before_it_sends) return block.fail(1);
    put_stamped(layer.out[task], Layer::value(sum, layer.seed, task, block.iteration()), block.stamp());
    block.sent();
    add_to(notes->computes, 1u);
    if (now && fails == Fails::after_it_has_sent) block.fail(2);
  }
};

/// Sends from its store part.
struct Stored {
  static constexpr bool kEarly = true;
  Layer layer;
  std::uint32_t task;
  EarlyNotes* notes;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
  template <class Block, class Operands>
    requires Block::kOnGpu
  FLYWHEEL_TASK void compute(Block& block, Operands&) const {
    if (!block.await_sent()) return;
    const std::uint32_t sum = layer.sum(block);
    block.template hand<std::uint32_t>()[block.rank()] = sum;
    block.pass_on();
  }
  template <class Block>
    requires Block::kOnGpu
  FLYWHEEL_TASK void store(Block& block) const {
    const auto* sums = block.template take<std::uint32_t>();
    if (!sums) return;
    std::uint32_t differ = 0;
    for (int i = block.rank(); i < 256; i += block.size()) differ += sums[i] != sums[0];
    if (differ) add_to(notes->wrong, differ);
    if (block.leader()) put_stamped(layer.out[task], Layer::value(sums[0], layer.seed, task, block.iteration()), block.stamp());
    block.give_back();
    block.sent();
    if (block.leader()) add_to(notes->computes, 1u);
  }
};

/// Begins early, and waits until all before it is done, for it tells nobody and reads what is not stamped.
struct Late {
  static constexpr bool kEarly = true;
  const std::uint32_t* plain;
  std::uint32_t* count;
  EarlyNotes* notes;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
  template <class Block, class Operands>
    requires Block::kOnGpu
  FLYWHEEL_TASK void compute(Block& block, Operands&) const {
    if (!block.await() || !block.leader()) return;
    if (*plain != block.iteration() + 7) add_to(notes->wrong, 1u);
    ++*count;
  }
};
struct Plain {
  std::uint32_t* word;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) *word = block.iteration() + 7;
  }
};

/// After the last stage: whether all is as a plain loop has it.
struct Collect {
  const Stamped* out;
  std::uint32_t width, stages, seed;
  EarlyNotes* notes;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (!block.leader()) return;
    std::uint32_t sum = 0, wrong = 0;
    for (std::uint32_t s = 0; s < stages; ++s) {
      std::uint32_t next = 0;
      for (std::uint32_t t = 0; t < width; ++t) next += Layer::value(sum, seed + s, t, block.iteration());
      if (s + 1 == stages)
        for (std::uint32_t t = 0; t < width; ++t) wrong += out[t].bits() != Layer::value(sum, seed + s, t, block.iteration());
      sum = next;
    }
    if (wrong) add_to(notes->wrong, wrong);
    add_to(notes->checks, 1u);
  }
};

struct Shape {
  std::uint32_t stages, width;
  std::uint32_t workers_used = ~0u;  // tasks are placed on the first of them
  std::uint32_t fail_at = ~0u;
  Fails fails = Fails::never;
};

/// Stages of both kinds in turn. Graphs made of the same words run one after the other.
struct EarlyGraph {
  EarlyGraph(Runtime& runtime, const Buffer<Stamped>& words, const Shape& shape, std::uint32_t seed)
      : notes(runtime.allocate<EarlyNotes>(1)) {
    After before;
    for (std::uint32_t s = 0; s < shape.stages; ++s) {
      const Layer layer{s ? words.data() + (s - 1) * shape.width : nullptr, words.data() + s * shape.width, shape.width, seed + s};
      After stage;
      for (std::uint32_t t = 0; t < shape.width; ++t) {
        const bool fails = s == shape.stages / 2 && t == shape.width / 2;
        const auto task = (s + seed) % 2 && !fails
                              ? graph.add(Stored{layer, t, notes.data()}, before)
                              : graph.add(Direct{layer, t, fails ? shape.fail_at : ~0u, shape.fails, shape.fail_at == ~0u, notes.data()}, before);
        if (shape.workers_used != ~0u) graph.place(task, t % shape.workers_used);
        stage.tasks.push_back(task.index);
        stage.graphs.push_back(task.graph);
      }
      before = stage;
    }
    graph.add(Collect{words.data() + (shape.stages - 1) * shape.width, shape.width, shape.stages, seed, notes.data()}, before);
  }
  EarlyNotes seen() const { return notes.read()[0]; }

  Graph graph;
  Buffer<EarlyNotes> notes;
};

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
