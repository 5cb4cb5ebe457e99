// A body that throws on a CPU worker fails its run, with what it said, and nothing else.
#include "runtime/cpu/thrown.hpp"

#include <chrono>
#include <stdexcept>
#include <thread>

#include "host/engine/thrown_texts.hpp"
#include "host/submit/completion.hpp"
#include "support/child.hpp"
#include "support/internals.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

struct Throw {
  std::uint32_t worker;  // which throws; any, for one beyond all
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.worker() == worker || worker > 100) throw std::runtime_error("no such row: 7");
  }
};

struct ThrowNumber {
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {
    throw 7;
  }
};

/// A grid task: one worker throws between meetings, at one of them or after the last.
struct ThrowAmong {
  std::uint32_t* cells;
  std::uint32_t meetings;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    for (std::uint32_t i = 0; i <= meetings; ++i) {
      if (block.worker() == 1 && i == cells[0]) throw std::runtime_error("among others");
      if (i < meetings && !block.grid_sync()) return;
    }
  }
};

struct FailAndThrow {
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.fail(1);
    throw std::runtime_error("its code came first");
  }
};

struct ThrowLate {
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    throw std::runtime_error("late");
  }
};

Runtime throwing_runtime() { return start<Throw, ThrowNumber, ThrowAmong, Count, FailAndThrow, ThrowLate>(on_cpu(3)); }
constexpr std::uint32_t kAny = 1000;

void check_threw(Run run, const std::vector<std::string>& words) {
  REQUIRE(run.wait_for(std::chrono::seconds(20)));
  CHECK(run.status() == Status::task_threw);
  check_says(error_of<RunError>([&] { run.wait(); }), words);
}
}  // namespace

TEST_CASE("a body that throws fails its run by name, and others go on") {
  Runtime runtime = throwing_runtime();
  const auto words = runtime.allocate<std::uint32_t>(2);
  Graph graph, other;
  graph.add(Count{words.data()});
  const auto bad = graph.add(Throw{kAny});
  graph.add(Count{words.data() + 1}, after(bad));
  other.add(ThrowNumber{});
  const Executable plain = runtime.load(graph), schedule = runtime.load(graph, compiled);
  for (int i = 0; i < 3; ++i) {
    check_threw(runtime.submit(plain), {"threw an exception", "task 1 (", "Throw", "no such row: 7", "block.fail()"});
    check_threw(runtime.submit(schedule), {"task 1 (", "no such row: 7"});
  }
  check_threw(runtime.submit(runtime.load(other)), {"task 0 (", "not a std::exception"});
  CHECK(words.read()[1] == 0);
}

TEST_CASE("a phased run whose task throws ends at a boundary, wherever its other workers are") {
  Runtime runtime = throwing_runtime();
  auto words = runtime.allocate<std::uint32_t>(2);
  Graph phased, good, among;
  phased.phase();
  phased.add(Throw{kAny});
  phased.phase();
  phased.add(Count{words.data() + 1});
  good.add_grid(Count{words.data()});
  among.add_grid(ThrowAmong{words.data(), 3});
  check_threw(runtime.submit(runtime.load(phased)), {"task 0 (", "no such row: 7"});
  const Executable others = runtime.load(among), counts = runtime.load(good);
  for (std::uint32_t at = 0; at <= 3; ++at) {
    words.write(&at, 1, 0);
    check_threw(runtime.submit(others), {"task 0 (", "among others"});
    CHECK(runtime.submit(counts).status() == Status::ok);
  }
  CHECK(words.read()[1] == 0);
}

TEST_CASE("what bodies threw is kept no longer than their runs") {
  const std::size_t before = count_what_bodies_threw();
  {
    Runtime runtime = throwing_runtime();
    Graph graph;
    graph.add(FailAndThrow{});
    CHECK(runtime.submit(runtime.load(graph)).status() == Status::task_failed);
    CHECK(count_what_bodies_threw() == before);
  }
  Options options = on_cpu(1);
  options.stall_limit = std::chrono::milliseconds(5);
  {
    Runtime runtime = start<ThrowLate>(options);
    Graph graph;
    graph.add(ThrowLate{});
    CHECK(runtime.submit(runtime.load(graph)).status() == Status::worker_stalled);  // told so, and throws after
  }
  CHECK(count_what_bodies_threw() == before);
}

TEST_CASE("child: leaves a run to the end of the program that throws then", "[.child]") {
  static Runtime runtime = throwing_runtime();
  Graph first, late;
  first.add(FailAndThrow{});
  late.add(ThrowLate{});
  static Run run = runtime.submit(runtime.load(first));
  CHECK(run.status() == Status::task_failed);
  run = runtime.submit(runtime.load(late));
}

TEST_CASE("bodies may throw while static objects go away") {
  check_child(run_child("child: leaves a run to the end of the program that throws then", std::chrono::seconds(60)));
}
