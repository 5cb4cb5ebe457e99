// The GPU's kernel on an emulated GPU: dependent operands, fetched into pages once their tasks' turn has come.
#include "support/compiled_tasks.hpp"
#include "support/emulated_bench.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// Writes words that tell the pass they were written in.
struct Write {
  std::uint32_t* to;
  std::uint32_t count, seed;
  std::uint32_t fail_at = ~0u;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.for_each(static_cast<int>(count), [&](int i) { to[i] = word(seed, i, block.iteration()); });
    if (block.leader() && block.iteration() == fail_at) block.fail(1);
  }
  FLYWHEEL_TASK static std::uint32_t word(std::uint32_t seed, int i, std::uint32_t pass) {
    return static_cast<std::uint32_t>(mix(mix(seed, static_cast<std::uint64_t>(i)), pass));
  }
};

/// Every warp checks constants and then pieces that other tasks wrote in this pass.
struct Check {
  const std::uint32_t* pieces[2];
  std::uint32_t counts[2];  // words; multiples of 4
  std::uint32_t seed;       // of piece i: seed + i
  std::uint32_t constants;  // bytes
  OperandNotes* notes;
  const std::uint32_t* more = nullptr;  // null, or a word that says how many pieces it names besides

  std::uint32_t operand_bytes() const { return constants; }
  std::uint32_t dependent_pages() const { return pages_of(counts[0] * 4) + pages_of(counts[1] * 4); }
  template <class Fetch>
  FLYWHEEL_TASK void dependents(Fetch&& fetch) const {
    for (int i = 0; i < 2; ++i) fetch(pieces[i], counts[i] * 4);
    for (std::uint32_t i = 0; more && i < *more; ++i) fetch(pieces[0], 16u);
  }
  template <class Block>
  FLYWHEEL_TASK void pack(Block& block, unsigned char* to) const {
    block.for_each(static_cast<int>(constants), [&](int i) { to[i] = operand_byte(seed, static_cast<std::uint32_t>(i)); });
  }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
  template <class Block, class Operands>
    requires Block::kOnGpu
  FLYWHEEL_TASK void compute(Block& block, Operands& operands) const {
    std::uint32_t wrong = 0;
    each_page(operands, constants, [&](const unsigned char* page, std::uint32_t at, std::uint32_t n) {
      for (auto i = static_cast<std::uint32_t>(block.lane()); i < n; i += 32) wrong += page[i] != operand_byte(seed, at + i);
    });
    for (std::uint32_t p = 0; p < 2; ++p)
      each_page(operands, counts[p] * 4, [&](const unsigned char* page, std::uint32_t at, std::uint32_t n) {
        const auto* words = reinterpret_cast<const std::uint32_t*>(page);
        for (auto i = static_cast<std::uint32_t>(block.lane()); i < n / 4; i += 32)
          wrong += words[i] != Write::word(seed + p, static_cast<int>(at / 4 + i), block.iteration());
      });
    wrong += operands.next() != nullptr;
    if (wrong) add_to(notes->wrong, wrong);
    if (block.leader()) add_to(notes->computes, 1u);
  }

 private:
  template <class Operands, class Use>
  FLYWHEEL_TASK void each_page(Operands& operands, std::uint32_t bytes, Use&& use) const {
    for (std::uint32_t at = 0; at < bytes; at += kPageBytes) {
      const unsigned char* page = operands.next();
      if (!page) {
        add_to(notes->wrong, 1u);
        return;
      }
      use(page, at, bytes - at < kPageBytes ? bytes - at : kPageBytes);
      operands.give_back();
    }
  }
};

/// Stages of writers and checkers, so that several tasks of a worker have dependent operands at once.
struct Stages {
  Stages(Runtime& runtime, std::uint32_t stages, std::uint32_t most_words, std::uint32_t fail_at = ~0u)
      : notes(runtime.allocate<OperandNotes>(1)) {
    for (std::uint32_t s = 0; s < stages; ++s) {
      const std::uint32_t counts[2] = {4 + s * 1237 % most_words / 4 * 4, 4 + s * 3571 % most_words / 4 * 4};
      After written;
      for (std::uint32_t p = 0; p < 2; ++p) {
        words.push_back(runtime.allocate<std::uint32_t>(counts[p]));
        const auto task = graph.add(Write{words.back().data(), counts[p], 10 * s + p, s == stages / 2 ? fail_at : ~0u});
        written.tasks.push_back(task.index);
        written.graphs.push_back(task.graph);
      }
      graph.add(Check{{words[2 * s].data(), words[2 * s + 1].data()}, {counts[0], counts[1]}, 10 * s, s * 4999 % 40'000,
                      notes.data()},
                written);
    }
  }
  Graph graph;
  std::vector<Buffer<std::uint32_t>> words;
  Buffer<OperandNotes> notes;
};

struct Way {
  bool bulk;
  std::uint32_t pages, window;
};

template <class Action>
void each_way(Action&& action) {
  for (const Way way : {Way{true, 4, 4}, Way{true, 5, 4}, Way{true, 5, 5}, Way{false, 4, 4}, Way{false, 5, 5}}) {
    INFO((way.bulk ? "bulk copies, " : "cp.async, ") << way.pages << " pages, window " << way.window);
    Options options = emulated_options();
    options.operand_pages = way.pages;
    options.operand_window = way.window * kPageBytes;
    options.bulk_copies = way.bulk;
    Runtime runtime = start_emulated<Write, Check, Count>(options);
    INFO(runtime.device());
    action(runtime);
  }
}

}  // namespace

TEST_CASE("kernel, dependents: pages hold what the predecessors of this pass wrote") {
  each_way([](Runtime& runtime) {
    Stages stages(runtime, 12, 16000);
    const Executable executable = runtime.load(stages.graph, compiled);
    for (const std::uint32_t passes : {1u, 4u, 2u}) runtime.submit(executable, repeat(passes)).wait();
    CHECK(stages.notes.read()[0].wrong == 0);
    CHECK(stages.notes.read()[0].computes == 7 * 12);
  });
}

TEST_CASE("kernel, dependents: a writer fails, its reader does not run, and the next run is right") {
  each_way([](Runtime& runtime) {
    Stages failing(runtime, 6, 10000, 1), clean(runtime, 5, 10000);
    const Executable bad = runtime.load(failing.graph, compiled), good = runtime.load(clean.graph, compiled);
    for (int i = 0; i < 3; ++i) {
      CHECK(runtime.submit(bad, repeat(3)).status() == Status::task_failed);
      CHECK(runtime.submit(good, repeat(2)).status() == Status::ok);
    }
    CHECK(failing.notes.read()[0].wrong == 0);
    CHECK(clean.notes.read()[0].wrong == 0);
    CHECK(clean.notes.read()[0].computes == 30);
  });
}

TEST_CASE("kernel, dependents: a task that names more pages than it said fails by name, and too many are refused") {
  Options options = emulated_options();
  options.operand_pages = 4;
  options.operand_window = 4 * kPageBytes;
  Runtime runtime = start_emulated<Write, Check>(options);
  const auto words = runtime.allocate<std::uint32_t>(5 * kPageBytes / 4);
  const auto notes = runtime.allocate<OperandNotes>(1);
  auto more = runtime.allocate<std::uint32_t>(1);
  const auto graph_of = [&](std::uint32_t count) {
    Graph graph;
    graph.add(Check{{words.data(), words.data()}, {8, count}, 1, 100, notes.data(), more.data()}, after(graph.add(Write{words.data(), 8, 1})));
    return graph;
  };
  const Executable executable = runtime.load(graph_of(8), compiled);
  CHECK(runtime.submit(executable).status() == Status::ok);
  more.write({1});
  CHECK(runtime.submit(executable).status() == Status::operands_misnamed);
  more.write({0});
  CHECK(runtime.submit(executable).status() == Status::ok);
  check_says(error_of<CapacityError>([&] { runtime.load(graph_of(4 * kPageBytes / 4), compiled); }), {"task 1", "5 pages", "Options::operand_window"});
}
