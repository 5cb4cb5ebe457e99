// The GPU's kernel on an emulated GPU: pages of operands and handoffs to store parts, while warps go at random paces,
// copies land late and in pieces, and garbage stands where they have not landed.
#include "support/compiled_mixes.hpp"
#include "support/emulated_bench.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// How pages come.
struct Way {
  bool bulk;
  std::uint32_t pages;
  std::uint32_t window;
};

constexpr Way kWays[] = {{true, 2, 1},  {true, 2, 3},  {true, 3, 1},  {true, 5, 3},  {true, 5, 5},
                         {false, 2, 1}, {false, 2, 2}, {false, 3, 3}, {false, 5, 1}, {false, 5, 5}};

/// Each thread hands over `count` words of its own; the store part takes `takes` of the handoffs, and leaves the rest.
struct Handing {
  OperandNotes* notes;
  std::uint32_t number;
  std::uint32_t count;
  std::uint32_t takes;
  std::uint32_t bytes = 0;  // of operands
  std::uint32_t fail_at = ~0u;
  std::uint32_t stop_at = ~0u;
  std::uint32_t lag = 0;  // how often the store warp meets before it reads a handoff

  std::uint32_t operand_bytes() const { return bytes; }
  template <class Block>
  FLYWHEEL_TASK void pack(Block& block, unsigned char* to) const {
    block.for_each(static_cast<int>(bytes), [&](int i) { to[i] = operand_byte(number, static_cast<std::uint32_t>(i)); });
  }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}

  template <class Block>
  FLYWHEEL_TASK std::uint64_t word(Block& block, std::uint32_t handoff, int thread) const {
    return mix(mix(number, handoff), mix(static_cast<std::uint64_t>(thread), block.iteration()));
  }
  /// Handoffs before pages or after: the same for all warps, else some could wait for pages that others keep while they
  /// wait for the first to hand over.
  template <class Block, class Operands>
  requires Block::kOnGpu FLYWHEEL_TASK void compute(Block& block, Operands& operands) const {
    if (number % 2) read(block, operands);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (auto* words = block.template producer_acquire<std::uint64_t>()) words[block.rank()] = word(block, i, block.rank());
      block.producer_commit();
    }
    if (number % 2 == 0) read(block, operands);
    if (block.leader()) add_to(notes->computes, 1u);
  }
  template <class Block, class Operands>
  FLYWHEEL_TASK void read(Block& block, Operands& operands) const {
    std::uint32_t at = 0;
    while (const unsigned char* page = operands.consumer_wait()) {
      for (int i = block.lane(); i < static_cast<int>(kPageBytes) && at + static_cast<std::uint32_t>(i) < bytes; i += 32)
        if (page[i] != operand_byte(number, at + static_cast<std::uint32_t>(i))) add_to(notes->wrong, 1u);
      at += kPageBytes;
      operands.consumer_release();
    }
  }

  template <class Block>
  FLYWHEEL_TASK void store(Block& block) const {
    std::uint32_t taken = 0;
    for (; taken < takes; ++taken) {
      const auto* words = block.template consumer_wait<std::uint64_t>();
      if (!words) break;
      for (std::uint32_t meetings = 0; meetings < lag; ++meetings) block.sync();
      block.for_each(256, [&](int thread) {
        if (words[thread] != word(block, taken, thread)) add_to(notes->wrong, 1u);
      });
      block.consumer_release();
    }
    if (taken != (takes < count ? takes : count) && block.leader()) add_to(notes->wrong, 1u);
    if (block.leader()) add_to(notes->stores, 1u);
    if (block.leader() && block.iteration() == fail_at) block.fail(number);
    if (block.leader() && block.iteration() == stop_at) block.stop();
  }
};

/// Asks for scratch without borrowing.
struct Asking {
  std::uint32_t bytes;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.template scratch<unsigned char>(static_cast<int>(bytes));
  }
};

Options options_of(const Way& way) {
  Options options = emulated_options();
  options.tuning.bulk_copies = way.bulk;
  options.operand_pages = way.pages;
  options.tuning.operand_window = way.window * kPageBytes;
  options.trace_events = 4096;
  return options;
}

template <class Action>
void each_way(Action&& action) {
  for (const Way& way : kWays) {
    INFO((way.bulk ? "bulk copies, " : "cp.async, ") << way.pages << " pages, window " << way.window);
    Runtime runtime = start_emulated<Packed, Handing, Borrowing, Count, Fail, StopAt>(options_of(way));
    INFO(runtime.device());
    if constexpr (requires { action(runtime, way); }) action(runtime, way);
    else action(runtime);
  }
}

/// A random number of handoffs, from none to many, of which the store part takes some or all.
Handing random_handing(Random& random, OperandNotes* notes, std::uint32_t number) {
  const std::uint32_t count = pick(random, 0, 2) ? pick(random, 0, 3) : pick(random, 4, 20);
  const std::uint32_t takes = pick(random, 0, 2) ? count + 1 : pick(random, 0, count);
  return {notes, number, count, takes, pick(random, 0, 1) ? pick(random, 1, 40'000) : 0};
}

}  // namespace

TEST_CASE("kernel, operands: every byte of every page, warps at paces of their own") {
  each_way([](Runtime& runtime) {
    OperandRuns even(runtime, 14, Walk::all, 0), uneven(runtime, 11, Walk::all, 400), late(runtime, 11, Walk::late, 200);
    for (const std::uint32_t passes : {1u, 3u, 2u}) {
      even.submit(passes).wait();
      uneven.submit(passes).wait();
      late.submit(passes).wait();
    }
    even.check();
    uneven.check();
    late.check();
  });
}

TEST_CASE("kernel, operands: a traced run says how many bytes each body took") {
  each_way([](Runtime& runtime) { check_traced_bytes(runtime); });
}

// As many pages as there are may be held at once.
TEST_CASE("kernel, operands: pages that a compute part keeps or does not take are given back for it") {
  each_way([](Runtime& runtime) {
    Buffer<OperandNotes> notes = runtime.allocate<OperandNotes>(1);
    Graph graph;
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < 20; ++i) {
      const Packed task{notes.data(), i + 1, 1 + i * 7919 % 32'768, Walk::hoards, i % 3 ? 100u : 0u};
      sum += operand_sum(task.seed, task.bytes);
      graph.add(task);
    }
    const Executable executable = runtime.load(graph, compiled);
    CHECK(runtime.submit(executable, repeat(3)).status() == Status::ok);
    CHECK(notes.read()[0].wrong == 0);
    CHECK(notes.read()[0].sum == 3 * sum * Packed::kWarps);
    OperandRuns none(runtime, 20, Walk::none, 0), half(runtime, 20, Walk::half, 50), all(runtime, 12, Walk::all, 0);
    none.submit(3).wait();
    half.submit(3).wait();
    all.submit(2).wait();
    CHECK(none.seen().computes == 60);
    CHECK(none.seen().sum == 0);
    CHECK(half.seen().wrong == 0);
    CHECK(half.seen().computes == 60);
    all.check();
  });
}

TEST_CASE("kernel, operands: a run that stops, fails or is cancelled throws away what was fetched ahead") {
  each_way([](Runtime& runtime) {
    ThrownAway runs(runtime, 20, 7919);
    for (int round = 0; round < 3; ++round) runs.round(std::chrono::milliseconds(round * 5));
    runs.check();
  });
}

TEST_CASE("kernel, handoffs: all that is handed over arrives once, in order, and what is left is taken back") {
  FLYWHEEL_TEST_SEED(seed);
  Random random(seed);
  each_way([&](Runtime& runtime) {
    Buffer<OperandNotes> notes = runtime.allocate<OperandNotes>(1);
    Graph graph;
    std::vector<TaskRef<>> tasks;
    for (std::uint32_t i = 0; i < 30; ++i)
      tasks.push_back(graph.add(random_handing(random, notes.data(), i + 1),
                                i && pick(random, 0, 1) ? after(tasks[pick(random, 0, i - 1)]) : After{}));
    const Executable executable = runtime.load(graph, compiled);
    for (const std::uint32_t passes : {1u, 3u}) CHECK(runtime.submit(executable, repeat(passes)).status() == Status::ok);
    const OperandNotes got = notes.read()[0];
    CHECK(got.wrong == 0);
    CHECK(got.computes == 30 * 4);
    CHECK(got.stores == 30 * 4);
  });
}

TEST_CASE("kernel, handoffs: a task that hands nothing over borrows their places, whoever comes before and after it") {
  FLYWHEEL_TEST_SEED(seed);
  Random random(seed);
  each_way([&](Runtime& runtime, const Way& way) {
    const std::uint32_t all = Options{}.scratch_bytes + kHandoffs * kHandoffBytes;
    Buffer<OperandNotes> notes = runtime.allocate<OperandNotes>(1);
    Graph graph, greedy;
    for (std::uint32_t i = 0; i < 24; ++i) {
      Handing holding = random_handing(random, notes.data(), i + 1);
      holding.lag = i % 2 ? pick(random, 20, 60) : 0;
      if (i % 4 == 2) graph.add(Borrowing{notes.data(), i, pick(random, 0, 1) ? all : pick(random, 4, 2000)});
      else graph.add(holding);
    }
    const Executable executable = runtime.load(graph, compiled);
    for (const std::uint32_t passes : {1u, 3u}) CHECK(runtime.submit(executable, repeat(passes)).status() == Status::ok);
    CHECK(notes.read()[0].wrong == 0);
    CHECK(notes.read()[0].computes == 24 * 4);
    greedy.add(Borrowing{notes.data(), 1, all + 16});
    CHECK(runtime.submit(runtime.load(greedy, compiled)).status() == Status::scratch_exhausted);
    // A dynamic run has the pages beside it, which the next compiled run fills again.
    const std::uint32_t with_pages = all + way.pages * kPageBytes;
    Graph dynamic, too_greedy;
    dynamic.add(Borrowing{notes.data(), 2, with_pages});
    too_greedy.add(Borrowing{notes.data(), 3, with_pages + 16});
    CHECK(runtime.submit(runtime.load(dynamic)).status() == Status::ok);
    CHECK(runtime.submit(runtime.load(too_greedy)).status() == Status::scratch_exhausted);
    CHECK(runtime.submit(executable).status() == Status::ok);
    CHECK(notes.read()[0].wrong == 0);
  });
}

TEST_CASE("kernel, handoffs: tasks of dynamic and phased runs may borrow their places, each for itself") {
  constexpr std::uint32_t kAll = Options{}.scratch_bytes + kHandoffs * kHandoffBytes;
  Runtime runtime = start_emulated<Borrowing, Asking>(emulated_options(1));
  Buffer<OperandNotes> notes = runtime.allocate<OperandNotes>(1);
  Graph dynamic, phased;
  for (Graph* graph : {&dynamic, &phased})
    for (std::uint32_t i = 0; i < 10; ++i) graph->add(Borrowing{notes.data(), i, i % 2 ? kAll : 1024 * i + 4});
  CHECK(runtime.submit(runtime.load(dynamic), repeat(2)).status() == Status::ok);
  CHECK(notes.read()[0].computes == 20);
  phased.phase();
  phased.add(Asking{Options{}.scratch_bytes});
  CHECK(runtime.submit(runtime.load(phased), repeat(2)).status() == Status::ok);
  CHECK(notes.read()[0].computes == 40);
  phased.add(Asking{kAll});
  CHECK(runtime.submit(runtime.load(phased)).status() == Status::scratch_exhausted);
  CHECK(notes.read()[0].wrong == 0);
}

TEST_CASE("kernel, handoffs: store parts that fail or stop the run") {
  FLYWHEEL_TEST_SEED(seed);
  Random random(seed);
  Runtime runtime = start_emulated<Handing, Count>(emulated_options(), seed);
  Buffer<OperandNotes> notes = runtime.allocate<OperandNotes>(1);
  Buffer<std::uint32_t> words = runtime.allocate<std::uint32_t>(2);
  for (std::uint32_t round = 0; round < 15; ++round) {
    Graph graph;
    std::vector<TaskRef<>> tasks;
    const std::uint32_t chosen = pick(random, 0, 9);
    for (std::uint32_t i = 0; i < 10; ++i) {
      Handing task = random_handing(random, notes.data(), i + 1);
      if (i == chosen) task.fail_at = 3, task.stop_at = 1;
      tasks.push_back(graph.add(task, i && pick(random, 0, 1) ? after(tasks[i - 1]) : After{}));
    }
    const auto dependent = graph.add(Count{words.data()}, after(tasks[chosen]));
    graph.add(Count{words.data()}, after(dependent));
    words.write(std::vector<std::uint32_t>(2));
    const Executable executable = runtime.load(graph, compiled);
    CHECK(runtime.submit(executable, repeat_until_stop()).iterations() == 2);
    CHECK(words.read()[0] == 4);
  }
  Graph failing;
  Handing bad{notes.data(), 77, 9, 3, 20'000};
  bad.fail_at = 2;
  failing.add(Count{words.data() + 1}, after(failing.add(bad)));
  const Executable executable = runtime.load(failing, compiled);
  for (std::uint32_t i = 1; i <= 10; ++i) {
    Run run = runtime.submit(executable, repeat(5));
    CHECK(run.status() == Status::task_failed);
    CHECK(run.iterations() == 2);
    CHECK(words.read()[1] == 2 * i);
  }
  CHECK(notes.read()[0].wrong == 0);
}

TEST_CASE("kernel, compute parts: reduce() in one task after the other, warps at paces of their own") {
  Runtime runtime = start_emulated<Summed>(emulated_options());
  Buffer<std::uint32_t> wrong = runtime.allocate<std::uint32_t>(1);
  Graph graph;
  for (std::uint32_t i = 0; i < 40; ++i) graph.add(Summed{wrong.data(), i});
  runtime.submit(runtime.load(graph, compiled), repeat(30)).wait();
  CHECK(wrong.read()[0] == 0);
}

TEST_CASE("kernel, operands: traced runs show every role") {
  Runtime runtime = start_emulated<Packed>(options_of({true, 2, 1}));
  Buffer<OperandNotes> notes = runtime.allocate<OperandNotes>(1);
  Graph graph;
  for (std::uint32_t i = 0; i < 12; ++i) graph.add(Packed{notes.data(), i, 40'000});
  Run run = runtime.submit(runtime.load(graph, compiled), traced, repeat(2));
  CHECK(run.status() == Status::ok);
  std::uint32_t kinds[8] = {};
  for (const TraceSpan& span : run.trace().spans()) ++kinds[static_cast<std::uint32_t>(span.kind)];
  CHECK(kinds[static_cast<std::uint32_t>(TraceKind::body)] == 24);
  CHECK(kinds[static_cast<std::uint32_t>(TraceKind::store)] == 24);
  CHECK(kinds[static_cast<std::uint32_t>(TraceKind::page)] > 0);
  CHECK(kinds[static_cast<std::uint32_t>(TraceKind::landing)] > 0);
  CHECK(notes.read()[0].wrong == 0);
}
