// A body that throws on a CPU worker fails its run, with what it said, and nothing else.
#include "runtime/thrown.hpp"

#include <stdexcept>

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

Runtime throwing_runtime() { return start<Throw, ThrowNumber, ThrowAmong, Count>(on_cpu(3)); }
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
