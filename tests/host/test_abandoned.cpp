// Runs that are given up while workers are still at them: their graphs stay until the kernel has ended.
#include <chrono>
#include <memory>
#include <thread>

#include "support/child.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

struct Sleep {
  std::uint32_t* words;  // [0]: begun, [1]: ended
  std::uint32_t ms;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {
    add_to(words[0], 1u);
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    add_to(words[1], 1u);
  }
};

/// A worker's task takes so long that the other's wait for it is given up, and all runs with it.
struct GivenUp {
  GivenUp() : runtime(start<Sleep, Count>(options())), words(runtime.allocate<std::uint32_t>(4)) {
    Graph graph;
    const auto slow = graph.add(Sleep{words.data(), 1500});
    const auto waits = graph.add(Count{words.data() + 2}, after(slow));
    graph.place(slow, 0);
    graph.place(waits, 1);
    Executable executable = runtime.load(graph, compiled);
    loaded = executable.loaded();
    Run run = runtime.submit(executable);
    CHECK(run.status() != Status::ok);
    REQUIRE(eventually([&] { return is_closed(executable); }));
  }
  static Options options() {
    Options options = on_cpu();
    options.stall_limit = std::chrono::milliseconds(30);
    options.spin_budget = std::chrono::milliseconds(30);
    options.log_level = "off";
    return options;
  }
  bool is_closed(const Executable& executable) {
    return !error_of<DeviceError>([&] { runtime.submit(executable); }).empty();
  }

  Runtime runtime;
  Buffer<std::uint32_t> words;
  std::weak_ptr<LoadedGraph> loaded;
};

}  // namespace

TEST_CASE("a graph that workers are still at is not freed, though its runs were given up") {
  GivenUp all;
  REQUIRE(peek_at(all.words.data()[0]) == 1);
  const bool ended = peek_at(all.words.data()[1]) != 0;
  const bool freed = all.loaded.expired();
  CHECK((ended || !freed));
  CHECK(eventually([&] { return all.loaded.expired(); }, std::chrono::seconds(20)));
  CHECK(peek_at(all.words.data()[1]) == 1);
}

TEST_CASE("a runtime whose runs were given up goes with them, also while a worker is still at one") {
  std::weak_ptr<LoadedGraph> loaded;
  {
    GivenUp all;
    loaded = all.loaded;
  }
  CHECK(loaded.expired());
}

TEST_CASE("child: a task that goes on after shutdown()", "[.child]") {
  Options options = on_cpu();
  options.workers = 1;
  options.shutdown_timeout = std::chrono::milliseconds(50);
  Runtime runtime = start<Sleep, Count>(options);
  Buffer<std::uint32_t> words = runtime.allocate<std::uint32_t>(2);
  Graph graph;
  graph.add(Sleep{words.data(), 1500});
  Run run = runtime.submit(runtime.load(graph));
  REQUIRE(eventually([&] { return peek_at(words.data()[0]) == 1; }));
  runtime.shutdown();
  CHECK(run.status() == Status::aborted);
  REQUIRE(eventually([&] { return peek_at(words.data()[1]) == 1; }));
}

TEST_CASE("shutdown() says what keeps the kernel") {
  const auto result =
      run_child("child: a task that goes on after shutdown()", std::chrono::seconds(60), {{"FLYWHEEL_LOG", "error"}});
  check_child(result);
  check_says(result.output, {"1 of 1 workers are there", "has run for", "block.cancelled()"});
}
