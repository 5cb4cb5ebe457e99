#include "simulate/workloads/bench.hpp"

#include <algorithm>
#include <atomic>

#include "host/futures/core.hpp"
#include "simulate/workloads.hpp"
#include "support/control_steps.hpp"
#include "support/internals.hpp"

namespace flywheel::simulate {

namespace {
std::string text;
std::string shape_name;
// Several times what the slowest of many schedules took. A runtime starts and ends within the first of these.
constexpr std::uint64_t kStepsOfRuntime = 700'000, kStepsOfTask = 3000, kStepsOfSleep = 10;
std::uint64_t owed_steps = 0;

/// Words of a queue that nobody uses any more.
void check_queue(const char* name, std::int64_t tokens, std::int64_t expected, const QueueWords& words,
                 std::uint32_t capacity) {
  const std::string queue = std::string("the queue of ") + name;
  if (words.peak.value > capacity) wrong(queue + " held more than its capacity");
  if (tokens != expected) wrong(queue + " counts " + std::to_string(tokens) + " in the end, not " + std::to_string(expected));
  if (words.tail.value - words.head.value != static_cast<std::uint64_t>(expected)) wrong(queue + " lost count of its tickets");
}

void check_device_state(const DeviceState& dev) {
  constexpr const char* kNames[kPriorities] = {"high tasks", "normal tasks", "low tasks"};
  const ControlWords& control = *dev.control;
  for (std::uint32_t level = 0; level < kPriorities; ++level) {
    check_queue(kNames[level], control.broadcast.queued[level], 0, dev.queue_words[level], dev.queue_capacity);
    for (std::uint32_t word = 0; word < (dev.run_slots + 63) / 64; ++word)
      expect(control.root_bits[level][word] == 0, "a run has its bit set though no roots are left");
  }
  check_queue("spawn records", control.pooled.value, dev.spawn_capacity, dev.queue_words[kPriorities], dev.spawn_capacity);
}
}  // namespace

void wrong(const std::string& what) { finding(what.c_str()); }
void expect(bool fine, const char* what) {
  if (!fine) wrong(what);
}
void check_run(Run& run, const char* what) {
  const Status status = run.status();
  if (status != Status::ok) wrong(std::string(what) + ": " + describe(status).what);
}

const std::string& workload_text() { return text; }
void begin_text(const std::string& shape) {
  shape_name = text = shape;
  owed_steps = kStepsOfRuntime;
}

void describe_program(const std::string& what) { text = std::string(shape_name) + ": " + what; }

void describe_program(const Options& o, const std::string& more) {
  text = shape_name + ": " + std::to_string(o.workers) + (o.mode == Mode::drain ? " draining" : "") + " workers, max_runs " +
         std::to_string(o.max_runs) + ", overlap " + std::to_string(o.overlap) + ", queue_capacity " +
         std::to_string(o.queue_capacity) + ", spawn_capacity " + std::to_string(o.spawn_capacity) + ", stream_capacity " +
         std::to_string(o.stream_capacity) + ", park_after " + std::to_string(o.park_after.count()) +
         (o.tuning.cpu_yields ? ", yield_every " + std::to_string(o.yield_every.count()) : "") + (more.empty() ? "" : ", ") +
         more;
}

void owe(const Options& o, std::uint64_t tasks, std::uint64_t runs, std::uint64_t sleep_us) {
  const std::uint64_t threads = o.workers + 3;  // and the inbox poller, the dispatcher and who waits
  std::atomic_ref(owed_steps)
      .fetch_add(threads * (tasks + 4 * runs + 10) * kStepsOfTask + sleep_us * kStepsOfSleep, std::memory_order_relaxed);
}

void check_progress() {
  if (journal::steps() > owed_steps)
    wrong("it took " + std::to_string(journal::steps()) + " steps, and " + std::to_string(owed_steps) +
          " are enough for what there was to do");
}

Options options_of(Random& random, std::uint32_t most_tasks) {
  Options o;
  o.target = Target::cpu;
  o.mode = random.one_in(6) ? Mode::drain : Mode::resident;
  o.workers = !random.small && random.one_in(64) ? 9 + random.below(32) : 1 + random.below(random.one_in(3) ? 8 : 4);
  o.heap_bytes = 1 << 12;
  o.max_tasks = 64;
  o.max_edges = 256;
  o.max_executables = 4;
  o.max_runs = 1u << random.below(4);
  o.max_waiting = 1 + random.below(8);
  o.overlap = 1 + random.below(3);
  o.spawn_capacity = 2u << random.below(3);
  o.queue_capacity = 2;
  while (o.queue_capacity < most_tasks + o.spawn_capacity) o.queue_capacity *= 2;
  if (random.one_in(2)) o.queue_capacity *= 4;
  o.stream_capacity = 1u << random.below(4);
  if (random.one_in(3)) o.stream_unread = 1u << random.below(4);
  o.result_bytes = 1024;
  o.scratch_bytes = 64;
  o.park_after = std::chrono::milliseconds(random.one_in(3) ? 0 : random.below(20));
  o.spin_budget = std::chrono::milliseconds(3'000);
  o.shutdown_timeout = std::chrono::milliseconds(60'000);
  o.tuning.keep_successor = !random.one_in(4);
  o.tuning.cpu_yields = random.one_in(3);
  o.yield_every = std::chrono::milliseconds(1 + random.below(3));
  o.tuning.yield_gap = std::chrono::microseconds(random.below(200));
  if (random.one_in(2)) o.tuning.yield_patience = std::chrono::milliseconds(1 + random.below(3));
  o.log_level = "off";
  return o;
}

Runtime start_runtime(const Options& options) {
  return start<Node, Taker, Alone, Link, Cell, Leaf, Source, Nop, Job, Lone, Meeting, SpawnTree, Harvest, testing::Step,
               testing::StepJoin, testing::StepSprout>(options);
}

Bench::Bench(const Options& chosen, std::uint32_t tasks)
    : options(chosen),
      runtime(start_runtime(chosen)),
      memory(runtime.allocate<std::uint32_t>(3 * tasks + 2)) {
  describe_program(options);
  words = {memory.data(), memory.data() + tasks, memory.data() + 2 * tasks};
}

void Bench::check_peak() {
  expect(runtime.stats().queue_peak <= options.queue_capacity, "stats().queue_peak is above Options::queue_capacity");
  expect(testing::peek_at(*words.wrong) == 0, "a task did not find what its predecessors wrote");
}

NodeGraph random_graph(Random& random, const Words& words, std::uint32_t count, bool priorities) {
  NodeGraph made;
  constexpr Priority kPriority[] = {Priority::inherit, Priority::high, Priority::normal, Priority::low};
  const std::uint32_t dense = random.below(4);  // edges of most tasks
  for (std::uint32_t i = 0; i < count; ++i) {
    Node node{words, i, 0, {}, 0};
    for (std::uint32_t e = 0; i && e < random.below(dense + 1); ++e) {
      const std::uint32_t before = random.below(i);
      if (std::find(node.before, node.before + node.predecessors, before) == node.before + node.predecessors &&
          node.predecessors < kMostPredecessors)
        node.before[node.predecessors++] = before;
    }
    made.tasks.push_back(made.graph.add(node, priorities ? kPriority[random.below(4)] : Priority::inherit));
    for (std::uint32_t e = 0; e < node.predecessors; ++e) made.graph.edge(made.tasks[node.before[e]], made.tasks[i]);
  }
  return made;
}

void watch_inbox(const Executable& any) {
  const DeviceState& dev = any.loaded()->core->memory.dev();
  journal::watch_inbox(dev.inbox, dev.inbox_capacity);
}

void watch_bodies(const Executable& any) {
  const DeviceState& dev = any.loaded()->core->memory.dev();
  journal::watch_bodies(dev.heartbeats, dev.workers, sizeof(Heartbeat));
}

void check_end(Runtime& runtime, const Executable& any) {
  const Stats stats = runtime.stats();
  const std::shared_ptr<Core> core = any.loaded()->core;
  expect(stats.peak_live <= core->memory.dev().run_slots, "more runs were in flight than Options::max_runs");
  runtime.shutdown();
  check_device_state(core->memory.dev());
}

}  // namespace flywheel::simulate
