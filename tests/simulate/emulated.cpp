#include "simulate/emulated.hpp"

#include <thread>
#include <vector>

#include "simulate/blocks.hpp"
#include "simulate/emulated_bench.hpp"
#include "simulate/workloads/control.hpp"
#include "simulate/workloads/followers.hpp"

namespace flywheel::simulate::emulated {

namespace {

[[maybe_unused]] const bool shared_memory_is_kept = [] {
  keep_for_blocks(&roles_shared(), sizeof(RolesShared));
  keep_for_blocks(&executor_shared(), sizeof(ExecutorShared));
  keep_for_blocks(memory, kEmulatedSharedBytes);
  return true;
}();

/// Runs of one graph, one after the other, each of some passes.
void graphs(Random& random, bool compiled_too) {
  const std::uint32_t count = 1 + random.below(8);
  Bench bench(random, options_of(random, count), count);
  NodeGraph made = random_graph(random, bench.words, count, !compiled_too);
  Executable executable = compiled_too ? bench.runtime.load(made.graph, compiled) : bench.runtime.load(made.graph);
  const std::uint32_t runs = 1 + random.below(2);
  for (std::uint32_t r = 0; r < runs; ++r) {
    const std::uint32_t passes = 1 + random.below(3);
    bench.clear();
    Run run = bench.runtime.submit(executable, repeat(passes));
    check_run(run, "a run of a graph");
    expect(run.iterations() == passes, "a run says another number of passes than it was to do");
    for (std::uint32_t i = 0; i < count; ++i) {
      expect(bench.count(i) == passes, "a task did not run once in each pass");
      expect(run.get(made.tasks[i]) == passes * 1000 + i, "a task's result is wrong");
    }
  }
  bench.check_peak();
  if (random.one_in(2)) bench.runtime.shutdown();
}

/// A compiled graph of gangs, whose tasks wait for one another, between other tasks.
void gangs(Random& random) {
  const Options options = options_of(random, 16);
  const std::uint32_t rows = 1 + random.below(3), passes = 1 + random.below(3);
  Bench bench(random, options, rows);
  Graph graph;
  std::vector<TaskRef<>> before;
  for (std::uint32_t r = 0; r < rows; ++r) {
    const std::uint32_t members = 1 + random.below(options.workers);
    std::vector<TaskRef<>> gang;
    for (std::uint32_t i = 0; i < members; ++i) {
      gang.push_back(graph.add(Meet{bench.words.counts + r, members}));
      const auto those_before = static_cast<std::uint32_t>(before.size());
      if (those_before && random.one_in(2)) graph.edge(before[random.below(those_before)], gang.back());
    }
    if (members > 1) graph.together(gang);
    before = gang;
  }
  Executable executable = bench.runtime.load(graph, compiled);
  Run run = bench.runtime.submit(executable, repeat(passes));
  check_run(run, "a compiled run of gangs");
}

void phases(Random& random) {
  const std::uint32_t width = 1 + random.below(4), steps = 1 + random.below(3), passes = 1 + random.below(3);
  Bench bench(random, options_of(random, width * steps), width * steps);
  Graph graph;
  for (std::uint32_t s = 0; s < steps; ++s) {
    if (s) graph.phase();
    for (std::uint32_t i = 0; i < width; ++i) graph.add(Cell{bench.words, s * width, s * width + i, width});
  }
  Executable executable = bench.runtime.load(graph);
  Run run = bench.runtime.submit(executable, repeat(passes));
  check_run(run, "a phased run");
  for (std::uint32_t i = 0; i < width * steps; ++i)
    expect(bench.count(i) == passes, "a phased task did not run once in each pass");
  bench.check_peak();
}

void streams(Random& random) {
  Bench bench(random, options_of(random, 4), 2);
  const std::uint32_t sources = 1 + random.below(3), values = random.below(12), spawns = random.below(5),
                      passes = 1 + random.below(3);
  Graph graph;
  for (std::uint32_t s = 0; s < sources; ++s) graph.add(Source{bench.words.counts, s, values, spawns});
  Executable executable = bench.runtime.load(graph);
  Run run = bench.runtime.submit(executable, repeat(passes));
  std::uint32_t seen[3] = {};
  while (const auto value = run.next<std::uint32_t>())
    expect((*value & 0xffff) == seen[*value >> 16]++, "one task's streamed values are out of order");
  check_run(run, "a run with a stream");
  for (std::uint32_t s = 0; s < sources; ++s) expect(seen[s] == passes * values, "streamed values are missing");
  expect(bench.count(0) == passes * sources * spawns, "spawned tasks did not run once each");
  bench.check_peak();
}

/// Runs that fail or are cancelled end alone.
void cancels(Random& random) {
  const std::uint32_t count = 1 + random.below(5), passes = 1 + random.below(6), bad = random.below(count);
  const bool fails = random.one_in(2);
  Bench bench(random, options_of(random, 2 * count), count + 1);
  Graph graph;
  for (std::uint32_t i = 0; i < count; ++i)
    graph.add(Node{bench.words, i, 0, {}, fails && i == bad ? 1 + random.below(passes) : 0});
  Graph other;
  other.add(Leaf{bench.words.counts + count});
  Executable executable = bench.runtime.load(graph), healthy = bench.runtime.load(other);
  Run run = bench.runtime.submit(executable, repeat(passes));
  Run beside = bench.runtime.submit(healthy);
  if (!fails || random.one_in(2)) run.cancel();
  const Status status = run.status();
  expect(status == Status::ok || status == Status::cancelled || (fails && status == Status::task_failed),
         "a run ended for no known reason");
  check_run(beside, "a run beside one that is cancelled");
  for (std::uint32_t i = 0; i < count; ++i) expect(bench.count(i) <= passes, "a task ran more often than once in each pass");
  expect(bench.count(count) == 1, "the task of the run beside did not run once");
}

/// Submits with pauses in which the runtime may park.
void parks(Random& random) {
  Options options = options_of(random, 8);
  options.park_after = std::chrono::milliseconds(random.below(2));
  Bench bench(random, options, 1);
  Graph graph;
  graph.add(Leaf{bench.words.counts});
  Executable executable = bench.runtime.load(graph);
  const std::uint32_t runs = 1 + random.below(4);
  std::vector<Run> all;
  for (std::uint32_t i = 0; i < runs; ++i) {
    all.push_back(bench.runtime.submit(executable));
    if (random.one_in(2)) std::this_thread::sleep_for(std::chrono::microseconds(random.below(4'000)));
  }
  for (Run& run : all) check_run(run, "a submitted run");
  expect(bench.count(0) == runs, "a submitted task did not run once");
  bench.check_peak();
}

/// Of many low roots some have a high successor. The worker of such a root keeps its successor and begins one task before it at
/// most, that was staged already.
void kept(Random& random) {
  constexpr std::uint32_t kMostBetween = 1;
  Options options = options_of(random, 128);
  options.tuning.keep_successor = true;
  const std::uint32_t low = 6 + random.below(50), high = 1 + random.below(3), all = low + high;
  Bench bench(random, options, all);
  std::uint32_t* const next = bench.words.wrong + 1;
  Graph graph;
  std::vector<TaskRef<>> roots;
  for (std::uint32_t i = 0; i < low; ++i) roots.push_back(graph.add(Note{bench.words.passes, bench.words.counts, next, i}));
  std::vector<std::uint32_t> before;
  for (std::uint32_t h = 0; h < high; ++h) {
    before.push_back(h * (low / high) + random.below(low / high));
    graph.add(Note{bench.words.passes, bench.words.counts, next, low + h}, after(roots[before[h]]), Priority::high);
  }
  Executable executable = bench.runtime.load(graph);
  Run run = bench.runtime.submit(executable, Priority::low);
  check_run(run, "a run of low roots");
  const std::uint32_t *begins = bench.words.passes, *workers = bench.words.counts;
  for (std::uint32_t h = 0; h < high; ++h) {
    std::uint32_t between = 0;
    for (std::uint32_t i = 0; i < low; ++i)
      between += workers[i] == workers[before[h]] && begins[i] > begins[before[h]] && begins[i] < begins[low + h];
    if (between > kMostBetween)
      wrong("a worker began " + std::to_string(between) + " low tasks before a high one that it kept");
  }
}

/// A repeated graph of more roots than two for each worker, in a small queue, while all workers but one are held.
void roots(Random& random) {
  Options options = options_of(random, 18);
  options.workers = 2 + random.below(3);
  options.max_runs = 4;
  options.spin_budget = std::chrono::milliseconds(1'000);  // no schedule's clock leaps that far
  options.spawn_capacity = 2;
  options.queue_capacity = 2;
  const std::uint32_t count = 2 * options.workers + 1;
  while (options.queue_capacity < count + options.workers + 1) options.queue_capacity *= 2;
  Bench bench(random, options, 1);
  std::uint32_t* const words = bench.memory.data();
  Graph holding, many;
  for (std::uint32_t i = 0; i + 1 < options.workers; ++i) holding.add(Hold{words});
  for (std::uint32_t i = 0; i < count; ++i) many.add(Leaf{words + 2});
  Executable hold = bench.runtime.load(holding), executable = bench.runtime.load(many);
  Run held = bench.runtime.submit(hold);
  while (shared_word(words[0]).load(Order::relaxed) + 1 < options.workers)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  const std::uint32_t passes = 1 + random.below(random.one_in(3) ? 40 : 8);
  Run run = bench.runtime.submit(executable, repeat(passes));
  check_run(run, "a run of many roots");
  expect(testing::peek_at(words[2]) == passes * count, "a root did not run once in each pass");
  shared_word(words[1]).store(1, Order::relaxed);
  check_run(held, "a run of long tasks");
  expect(bench.runtime.stats().queue_peak <= options.queue_capacity, "stats().queue_peak is above Options::queue_capacity");
}

void followers(Random& random) {
  const std::uint32_t count = 2 + random.below(5);
  Options options = options_of(random, 4);
  options.max_executables = 16;
  Bench bench(random, options, count);
  follow_at_random<Node, Leaf>(random, bench, count, expect);
  bench.check_peak();
}

/// Levels of tasks that each wait for some of the level before, as workers go through without queues, and tasks that nobody
/// awaits, since all their predecessors have others; in between runs of other kinds, failures and cancellations. Then once
/// more: all counters are as they were.
void awaited(Random& random) {
  const std::uint32_t width = 1 + random.below(random.one_in(4) ? 8 : 4), levels = 2 + random.below(7), grid = width * levels,
                      aside = random.one_in(2) ? random.below(levels) : 0, count = grid + aside;
  Options options = options_of(random, 2 * count);
  if (random.one_in(6)) options.workers = 8 + random.below(6);  // then a queued task, or a root, is no reason not to await
  const std::uint32_t passes = 1 + random.below(4), bad = random.below(random.one_in(3) ? count : 8 * count),
                      left_out = random.below(3);
  Bench bench(random, options, count + 1);
  Graph graph, leaf, meeting, planned;
  std::vector<TaskRef<std::uint32_t>> tasks;
  for (std::uint32_t i = 0; i < count; ++i) {
    Node node{bench.words, i, 0, {}, i == bad ? passes : 0};
    const std::uint32_t level_before = i < grid ? i / width - (i >= width) : random.below(levels - 1);
    for (std::uint32_t near = 0; i >= width && near < std::min(width, kMostPredecessors); ++near)
      if (near == 0 || i >= grid || !left_out || !random.one_in(1 + left_out))
        node.before[node.predecessors++] = level_before * width + (i + near) % width;
    const Priority priority = random.one_in(12) ? static_cast<Priority>(random.below(3)) : Priority::inherit;
    tasks.push_back(random.one_in(4) ? graph.add(WarpNode{node}, priority) : graph.add(node, priority));
    for (std::uint32_t e = 0; e < node.predecessors; ++e) graph.edge(tasks[node.before[e]], tasks[i]);
  }
  leaf.add(Leaf{bench.words.counts + count}, after(leaf.add(Leaf{bench.words.counts + count})));
  meeting.phase();
  meeting.add(Leaf{bench.words.counts + count}), meeting.add(Leaf{bench.words.counts + count});
  planned.add(Leaf{bench.words.counts + count}), planned.add(Leaf{bench.words.counts + count});
  Executable executable = bench.runtime.load(graph);
  const Executable others[] = {bench.runtime.load(leaf), bench.runtime.load(meeting), bench.runtime.load(planned, compiled)};
  for (const bool again : {false, true}) {
    const std::uint32_t turns = again ? passes - (bad < count) : passes;  // the second time it does not fail
    if (!turns) break;
    bench.clear();
    Run run = bench.runtime.submit(executable, repeat(turns));
    std::vector<Run> beside;
    for (std::uint32_t n = random.below(4); n; --n) beside.push_back(bench.runtime.submit(others[random.below(3)]));
    const bool cancels = !again && random.one_in(4);
    if (cancels && random.one_in(2)) std::this_thread::sleep_for(std::chrono::microseconds(random.below(200)));
    if (cancels) run.cancel();
    const Status status = run.status(), wanted = !again && bad < count ? Status::task_failed : Status::ok;
    expect(status == wanted || (cancels && status == Status::cancelled), "a run of levels ended for no known reason");
    for (Run& other : beside) check_run(other, "a run beside one of levels");
    expect(bench.count(count) == 2 * beside.size(), "a task of a run beside did not run once");
    for (std::uint32_t i = 0; i < count; ++i) {
      expect(bench.count(i) <= turns, "a task ran more often than once in each pass");
      if (status == Status::ok) expect(bench.count(i) == turns, "a task did not run once in each pass");
      if (status == Status::ok) expect(run.get(tasks[i]) == turns * 1000 + i, "a task's result is wrong");
    }
    expect(testing::peek_at(*bench.words.wrong) == 0, "a task did not find what its predecessors wrote");
  }
  bench.check_peak();
}

void control(Random& random) {
  auto programs = draw_programs(random, 8);
  Options options = options_of(random, 3);
  make_room(random, programs, options);
  Bench bench(random, options, 1);
  run_programs(
      random, bench.runtime, std::move(programs), [](std::uint64_t, std::uint64_t) {}, expect, wrong);
  bench.check_peak();
}

void run_shape(Random& random, Shape shape) {
  switch (shape) {
    case Shape::graphs:
      return graphs(random, false);
    case Shape::compiled:
      return graphs(random, true);
    case Shape::gangs:
      return gangs(random);
    case Shape::phases:
      return phases(random);
    case Shape::streams:
      return streams(random);
    case Shape::cancels:
      return cancels(random);
    case Shape::parks:
      return parks(random);
    case Shape::kept:
      return kept(random);
    case Shape::followers:
      return followers(random);
    case Shape::awaited:
      return awaited(random);
    case Shape::control:
      return control(random);
    default:
      return roots(random);
  }
}

}  // namespace

const std::string& workload_text() { return text; }

void run_workload(std::uint64_t seed, Shape shape) {
  Random random{seed * 0x9e3779b97f4a7c15ull};
  if (shape == Shape::any) shape = static_cast<Shape>(random.below(static_cast<std::uint32_t>(Shape::any)));
  random.draws = scheduler.draws();
  random.small = !scheduler.settings().large;
  text = kShapeNames[static_cast<int>(shape)];
  try {
    run_shape(random, shape);
  } catch (const std::exception& error) {
    wrong(std::string("an exception: ") + error.what());
  }
}

}  // namespace flywheel::simulate::emulated
