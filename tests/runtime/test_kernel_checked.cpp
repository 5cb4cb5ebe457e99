// The GPU's kernel on an emulated GPU, checked runs: mistakes with pages, handoffs and sent() fail the task that makes them
// by name, at once, and other tasks and runs go on.
#include "support/dependent_tasks.hpp"
#include "support/early_tasks.hpp"
#include "support/emulated_bench.hpp"
#include "support/operand_mistakes.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

Options checked(bool bulk = true, std::uint32_t pages = 3) {
  Options options = emulated_options();
  options.log_level = "off";
  options.check_operands = true;
  options.check_budget = std::chrono::seconds(60);  // of processors that others keep busy
  options.tuning.bulk_copies = bulk;
  options.operand_pages = pages;
  options.tuning.operand_window = pages * kPageBytes;
  return options;
}

/// Says sent() so many times in its second pass, before or after it has put its word. In the others once, after.
struct Sender {
  static constexpr bool kEarly = true;
  Stamped* word;
  std::uint32_t times;
  bool puts, stores;  // in its second pass; from its store part

  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
  template <class Block, class Operands>
  requires Block::kOnGpu FLYWHEEL_TASK void compute(Block& block, Operands&) const {
    if (!stores && block.warp() == 0) send(block);
  }
  template <class Block>
  requires Block::kOnGpu FLYWHEEL_TASK void store(Block& block) const {
    if (stores) send(block);
  }

 private:
  template <class Block>
  FLYWHEEL_TASK void send(Block& block) const {
    const bool wrong = block.iteration() == 1;
    if (block.lane() == 0 && (puts || !wrong)) put_stamped(*word, 5u, block.stamp());
    for (std::uint32_t i = 0; i < (wrong ? times : 1); ++i)
      if (block.leader() || stores) block.sent();
  }
};

/// Waits for the word.
struct Receiver {
  static constexpr bool kEarly = true;
  const Stamped* word;
  std::uint32_t* wrong;
  bool stores;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
  template <class Block, class Operands>
  requires Block::kOnGpu FLYWHEEL_TASK void compute(Block& block, Operands&) const {
    if (!stores) receive(block);
  }
  template <class Block>
  requires Block::kOnGpu FLYWHEEL_TASK void store(Block& block) const {
    if (stores) receive(block);
  }

 private:
  template <class Block>
  FLYWHEEL_TASK void receive(Block& block) const {
    if (!block.await_sent()) return;
    Stamped seen{};
    const bool came = block.spin([&] { return (seen = look_at(*word)).stamp() == block.stamp(); });
    if (came && seen.bits() != 5) add_to(*wrong, 1u);
  }
};

struct Pair {
  Pair(Runtime& runtime, std::uint32_t times, bool puts, bool stores)
      : words(runtime.allocate<Stamped>(1)),
        wrong(runtime.allocate<std::uint32_t>(1)) {
    const auto sender = graph.add(Sender{words.data(), times, puts, stores});
    const auto receiver = graph.add(Receiver{words.data(), wrong.data(), stores}, after(sender));
    graph.place(sender, 0);
    graph.place(receiver, 1);
  }
  Graph graph;
  Buffer<Stamped> words;
  Buffer<std::uint32_t> wrong;
};

/// Ends with its run, and not before.
struct Endless {
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    while (!block.cancelled()) {}
  }
};

/// Waits for ever, unless the runtime is aborted, in either part.
struct Stuck {
  bool stores;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
  template <class Block, class Operands>
  requires Block::kOnGpu FLYWHEEL_TASK void compute(Block& block, Operands& operands) const {
    while (operands.consumer_wait()) operands.consumer_release();
    if (!stores) wait(block);
  }
  template <class Block>
  requires Block::kOnGpu FLYWHEEL_TASK void store(Block& block) const {
    if (stores) wait(block);
  }
  std::uint32_t operand_bytes() const { return 16; }
  template <class Block>
  FLYWHEEL_TASK void pack(Block&, unsigned char*) const {}

 private:
  template <class Block>
  FLYWHEEL_TASK void wait(Block& block) const {
    block.spin([&] { return block.lane() == 77; });
  }
};

}  // namespace

TEST_CASE("kernel, checked: a mistake with pages or handoffs fails its task by name, and other runs go on") {
  for (const bool bulk : {true, false}) {
    Runtime runtime = start_emulated<Packed, Mistaken>(checked(bulk));
    INFO(runtime.device());
    check_mistakes(runtime);
  }
}

TEST_CASE("kernel, checked: sent() more than once in a pass, from either part") {
  Runtime runtime = start_emulated<Sender, Receiver>(checked());
  INFO(runtime.device());
  for (const bool stores : {false, true}) {
    Pair wrong(runtime, 2, true, stores), right(runtime, 1, true, stores);
    const Executable bad = runtime.load(wrong.graph, compiled), good = runtime.load(right.graph, compiled);
    for (int round = 0; round < 3; ++round) {
      CHECK(runtime.submit(bad).status() == Status::ok);
      Run run = runtime.submit(bad, repeat(3));
      CHECK(run.status() == Status::sent_twice);
      check_says(error_of<RunError>([&] { run.wait(); }), {"task 0", "Sender", "more than once"});
      CHECK(runtime.submit(good, repeat(3)).status() == Status::ok);
    }
    CHECK(wrong.wrong.read()[0] + right.wrong.read()[0] == 0);
  }
}

TEST_CASE("kernel, checked: words that do not come after sent(), in either part") {
  Options options = checked();
  options.check_budget = std::chrono::milliseconds(500);
  options.stall_limit = std::chrono::seconds(60);
  for (const bool stores : {false, true}) {
    Runtime runtime = start_emulated<Sender, Receiver>(options);
    INFO(runtime.device());
    Pair wrong(runtime, 1, false, stores), right(runtime, 1, true, stores);
    const Executable bad = runtime.load(wrong.graph, compiled), good = runtime.load(right.graph, compiled);
    CHECK(runtime.submit(bad).status() == Status::ok);
    Run run = runtime.submit(bad, repeat(3));
    CHECK(run.status() == Status::words_missing);
    check_says(error_of<RunError>([&] { run.wait(); }),
               {"task 1", "Receiver", "Options::check_budget", "before it calls sent()"});
    CHECK(runtime.submit(good, repeat(3)).status() == Status::ok);
    CHECK(wrong.wrong.read()[0] + right.wrong.read()[0] == 0);
  }
}

TEST_CASE("kernel, checked: a wait that no task gets out of is over after the check's own budget, and names task and role") {
  Options options = checked();
  options.check_budget = std::chrono::milliseconds(200);
  Runtime runtime = start_emulated<Endless>(options);
  INFO(runtime.device());
  Graph graph;
  for (int i = 0; i < 3; ++i) graph.add(Endless{});
  Run run = runtime.submit(runtime.load(graph, compiled));
  CHECK(run.status() == Status::spin_budget_spent);
  check_says(error_of<RunError>([&] { run.wait(); }),
             {"at task", "Endless", "store role waited", "another warp of its worker"});
}

TEST_CASE("kernel, checked: right tasks of all kinds run as they do unchecked") {
  for (const bool bulk : {true, false}) {
    Runtime runtime = start_emulated<Packed, Write, Check, Direct, Stored, Collect>(checked(bulk, 5));
    INFO(runtime.device());
    for (const Walk walk : {Walk::all, Walk::late}) {
      OperandRuns runs(runtime, 14, walk, 50);
      runs.submit(3).wait();
      runs.check();
    }
    Stages stages(runtime, 8, 16000);
    runtime.submit(runtime.load(stages.graph, compiled), repeat(3)).wait();
    CHECK(stages.notes.read()[0].wrong == 0);
    const auto words = runtime.allocate<Stamped>(24);
    EarlyGraph early(runtime, words, {6, 4}, 3);
    runtime.submit(runtime.load(early.graph, compiled), repeat(4)).wait();
    CHECK(early.seen().wrong == 0);
    CHECK(early.seen().computes == 4 * 24);
  }
}

TEST_CASE("kernel: a part that waits for ever is reported by task and role, and an aborted kernel ends") {
  for (const bool stores : {false, true}) {
    Options options = emulated_options();
    options.log_level = "off";
    options.spin_budget = std::chrono::milliseconds(100);
    options.stall_limit = std::chrono::milliseconds(200);
    Runtime runtime = start_emulated<Stuck, Packed>(options);
    INFO(runtime.device());
    Graph graph;
    for (int i = 0; i < 6; ++i) graph.add(Stuck{stores});
    const Executable executable = runtime.load(graph, compiled);
    Run run = runtime.submit(executable);
    check_says(error_of<Error>([&] { run.wait(); }), {"Stuck", "worker", "Remedy"});
    // Of a compute part the store role tells, which waits for it. A store part is ended by shutdown().
    std::string message;
    const auto told = [&] {
      message = error_of<DeviceError>([&] { runtime.try_submit(executable); });
      return !message.empty();
    };
    if (!stores) CHECK(eventually(told));
    if (!stores) check_says(message, {"worker", "at task", "Stuck", "store role waited", "address 0x"});
    runtime.shutdown();
    CHECK(runtime.stats().parks == 1);
  }
}
