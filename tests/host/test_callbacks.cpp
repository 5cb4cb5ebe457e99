#include "host/futures/callbacks.hpp"

#include <atomic>
#include <stdexcept>
#include <thread>

#include "support/internals.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;
using namespace std::chrono_literals;

namespace {
Bench& callback_bench() {
  static Bench shared(on_cpu());
  return shared;
}
}  // namespace

TEST_CASE("a callback is called once, with the run, on one thread that is not the caller's") {
  std::atomic<int> calls{0};
  std::atomic<bool> right{true};
  std::thread::id thread;
  for (int i = 0; i < 200; ++i) {
    Graph graph;
    const auto square = graph.add(Square{9});
    callback_bench().runtime.submit(callback_bench().runtime.load(graph)).on_done([&, square](Run& run) {
      if (!run.done() || run.get(square) != 81) right = false;
      if (calls && thread != std::this_thread::get_id()) right = false;
      thread = std::this_thread::get_id();
      ++calls;
    });
  }
  REQUIRE(eventually([&] { return calls == 200; }));
  CHECK(right);
  CHECK(thread != std::this_thread::get_id());
}

TEST_CASE("a callback of a run that has ended is called, too, and of several each") {
  Run run = callback_bench().runtime.submit(callback_bench().counter(0));
  run.wait();
  std::atomic<int> calls{0};
  run.on_done([&](Run&) { ++calls; });
  run.on_done([&](Run&) { ++calls; });
  CHECK(eventually([&] { return calls == 2; }));
}

TEST_CASE("a run that nobody else waits for is found while it is in flight") {
  Executable held;
  Run run = callback_bench().hold(2, held);
  std::atomic<bool> called{false};
  run.on_done([&](Run&) { called = true; });
  std::this_thread::sleep_for(5ms);
  CHECK_FALSE(called);
  callback_bench().put(3, 1);
  CHECK(eventually([&] { return called.load(); }));
}

TEST_CASE("a callback may submit, wait and load") {
  std::atomic<std::uint64_t> result{0};
  Run run = callback_bench().runtime.submit(callback_bench().counter(4));
  run.on_done([&](Run&) {
    Graph graph;
    const auto square = graph.add(Square{12});
    result = callback_bench().runtime.submit(callback_bench().runtime.load(graph)).get(square);
  });
  CHECK(eventually([&] { return result == 144; }));
}

TEST_CASE("what a callback throws stays there") {
  std::atomic<int> calls{0};
  Run run = callback_bench().runtime.submit(callback_bench().counter(5));
  run.on_done([&](Run&) {
    ++calls;
    throw std::runtime_error("of a test");
  });
  run.on_done([&](Run&) {
    ++calls;
    throw 7;
  });
  run.on_done([&](Run&) { ++calls; });
  CHECK(eventually([&] { return calls == 3; }));
}

TEST_CASE("runs that end early are told of, waiting ones and live ones") {
  Options options = on_cpu();
  options.overlap = 1;
  options.shutdown_timeout = 300ms;
  std::atomic<int> cancelled{0}, aborted{0}, failed{0};
  {
    Bench own(options);
    Graph graph, failing;
    graph.add(Gate{own.at(0), own.at(1)});
    failing.add(Fail{7, 0});
    const Executable gate = own.runtime.load(graph);
    Run live = own.runtime.submit(gate), waiting = own.runtime.submit(gate), last = own.runtime.submit(gate);
    live.on_done([&](Run& run) { aborted += run.status() != Status::ok; });
    waiting.on_done([&](Run& run) { cancelled += run.status() == Status::cancelled; });
    last.on_done([&](Run& run) { aborted += run.status() != Status::ok; });
    own.runtime.submit(own.runtime.load(failing)).on_done([&](Run& run) { failed += run.status() == Status::task_failed; });
    waiting.cancel();
    CHECK(eventually([&] { return cancelled == 1 && failed == 1; }));
  }
  // The destructor has waited for the callbacks of the runs that it ended.
  CHECK(aborted == 2);
}

TEST_CASE("the runtime waits for its callbacks") {
  std::atomic<bool> returned{false};
  {
    Bench own(on_cpu(1));
    own.runtime.submit(own.counter(0)).on_done([&](Run&) {
      std::this_thread::sleep_for(20ms);
      returned = true;
    });
  }
  CHECK(returned);
}

TEST_CASE("the last owner of a runtime may be one of its callbacks") {
  std::atomic<bool> called{false};
  {
    auto own = std::make_shared<Bench>(on_cpu(1));
    Run run = own->runtime.submit(own->counter(0));
    run.on_done([own, run, &called](Run&) mutable {
      own.reset();
      called = true;
    });
  }
  CHECK(eventually([&] { return called.load(); }));
}

TEST_CASE("many threads add callbacks to runs in every state") {
  constexpr int kThreads = 3, kEach = 200;
  const Executable counter = callback_bench().counter(8);
  std::atomic<int> calls{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        Run run = callback_bench().runtime.submit(counter);
        if (i % 3 == 0) run.wait();
        run.on_done([&](Run&) { ++calls; });
        if (i % 3 == 1) run.cancel();
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(eventually([&] { return calls == kThreads * kEach; }));
}

TEST_CASE("the end of a single task is called, however it ends, with its future") {
  Bench bench(on_cpu(1));
  std::atomic<std::uint64_t> sum{0};
  std::atomic<int> ended{0}, failed{0};
  const auto note = [&](Future<std::uint64_t>& future) {
    sum += future.get();
    ++ended;
  };
  const auto note_status = [&](auto& future) {
    failed += future.status() != Status::ok;
    ++ended;
  };
  for (std::uint32_t x = 0; x < 100; ++x) bench.runtime.submit(Square{x}).on_done(note);
  bench.runtime.submit(Square{1000}, Priority::high, after(bench.runtime.submit(Square{1}))).on_done(note);
  REQUIRE(eventually([&] { return ended == 101; }));
  CHECK(sum == 328350 + 1000000);

  Future<std::uint64_t> over = bench.runtime.submit(Square{2});
  over.wait();
  over.on_done(note);
  bench.runtime.submit(Fail{7, 0}).on_done(note_status);
  Future<void> gate = bench.runtime.submit(Gate{bench.at(0), bench.at(1)}), behind = bench.runtime.submit(Count{bench.at(2)});
  behind.on_done(note_status);
  gate.on_done(note_status);
  behind.cancel();
  bench.put(1, 1);
  REQUIRE(eventually([&] { return ended == 105; }));
  // The task that fails, and the one that was cancelled, unless that came too late.
  CHECK(failed == (bench.get(2) ? 1 : 2));
}

TEST_CASE("shutdown() calls the ends of single tasks; one that is asked for later is called at once") {
  Bench bench(on_cpu(1));
  std::atomic<int> ended{0};
  const auto note = [&](Future<void>&) { ++ended; };
  Future<void> count = bench.runtime.submit(Count{bench.at(2)});
  count.on_done(note);
  bench.runtime.shutdown();
  CHECK(ended == 1);
  count.on_done(note);
  CHECK(eventually([&] { return ended == 2; }));
  CHECK_THROWS_AS(Future<void>().on_done(note), UsageError);
}

TEST_CASE("a single task whose end is asked for while the runtime shuts down is called, and holds nothing up") {
  Options options = on_cpu(1);
  options.shutdown_timeout = 60s;
  Bench bench(options);
  Future<void> gate = bench.runtime.submit(Gate{bench.at(0), bench.at(1)});
  REQUIRE(eventually([&] { return bench.get(0) == 1; }));
  std::thread closing([&] { bench.runtime.shutdown(); });
  const auto is_refused = [&] {
    try {
      bench.runtime.submit(Count{bench.at(2)});
      return false;
    } catch (const UsageError&) {
      return true;
    }
  };
  REQUIRE(eventually(is_refused));
  std::atomic<int> ended{0};
  std::thread asking([&] { gate.on_done([&](Future<void>&) { ++ended; }); });
  std::this_thread::sleep_for(5ms);
  const auto begin = std::chrono::steady_clock::now();
  bench.put(1, 1);
  asking.join();
  closing.join();
  // shutdown() has waited for the task, and not for a callback that nothing will call.
  CHECK(std::chrono::steady_clock::now() - begin < 30s);
  CHECK(eventually([&] { return ended == 1; }));
}
