#include "host/futures/completion_queue.hpp"

#include <atomic>
#include <set>
#include <thread>

#include "host/futures/core.hpp"
#include "support/internals.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;
using namespace std::chrono_literals;

namespace {
Bench& queue_bench() {
  static Bench shared(on_cpu());
  return shared;
}

struct Squares {
  Squares() {
    Graph graph;
    in = graph.param<std::uint64_t>();
    out = graph.add(Read{in});
    executable = queue_bench().runtime.load(graph);
  }
  Run submit(CompletionQueue& queue, std::uint64_t tag) const {
    return queue_bench().runtime.submit(executable, set(in, 3 * tag), notify(queue, tag));
  }
  Param<std::uint64_t> in{};
  TaskRef<std::uint64_t> out{};
  Executable executable;
};
}  // namespace

TEST_CASE("each run comes out once, with its tag and its result") {
  const Squares squares;
  CompletionQueue queue;
  constexpr std::uint64_t kRuns = 1000;
  for (std::uint64_t i = 0; i < kRuns; ++i) squares.submit(queue, i);
  std::set<std::uint64_t> tags;
  while (auto finished = queue.next_finished()) {
    CHECK(finished->run.done());
    CHECK(finished->run.get(squares.out) == 3 * finished->tag);
    CHECK(tags.insert(finished->tag).second);
  }
  CHECK(tags.size() == kRuns);
  CHECK(queue.size() == 0);
  CHECK_FALSE(queue.try_next_finished());
}

TEST_CASE("the run that ends first comes out first") {
  Executable held;
  Graph graph;
  graph.add(Gate{queue_bench().at(0), queue_bench().at(1)});
  held = queue_bench().runtime.load(graph);
  CompletionQueue queue;
  queue_bench().runtime.submit(held, notify(queue, 1));
  queue_bench().runtime.submit(queue_bench().counter(2), notify(queue, 2));
  const auto first = queue.next_finished();
  REQUIRE(first);
  CHECK(first->tag == 2);
  CHECK_FALSE(queue.try_next_finished());
  CHECK_FALSE(queue.next_finished_for(2ms));
  CHECK(queue.size() == 1);
  queue_bench().put(1, 1);
  CHECK(queue.next_finished_for(20s)->tag == 1);
}

TEST_CASE("runs that fail, are cancelled in the backlog or in flight, or are shut down come out, too") {
  Options options = on_cpu();
  options.overlap = 1;
  Bench own(options);
  CompletionQueue queue;
  Graph graph, failing;
  graph.add(Gate{own.at(0), own.at(1)});
  failing.add(Fail{7, 0});
  const Executable gate = own.runtime.load(graph), fails = own.runtime.load(failing);
  Run live = own.runtime.submit(gate, notify(queue, 0));
  Run waiting = own.runtime.submit(gate, notify(queue, 1));
  own.runtime.submit(gate, notify(queue, 2));
  waiting.cancel();
  auto next = queue.next_finished();
  CHECK(next->tag == 1);
  CHECK(next->run.status() == Status::cancelled);
  live.cancel();
  next = queue.next_finished();
  CHECK(next->tag == 0);
  CHECK(next->run.status() == Status::cancelled);
  own.runtime.submit(fails, notify(queue, 3));
  next = queue.next_finished();
  CHECK(next->tag == 3);
  CHECK_THROWS_AS(next->run.wait(), RunError);
  REQUIRE(eventually([&] { return own.get(0) > 0; }));
  std::thread stops([&] { own.runtime.shutdown(); });
  own.put(1, 1);
  next = queue.next_finished();
  CHECK(next->tag == 2);
  stops.join();
  CHECK_FALSE(queue.next_finished());
}

TEST_CASE("a run may be in several queues, and one queue may have runs of several runtimes") {
  Bench other(on_cpu(1));
  CompletionQueue one, two;
  queue_bench().runtime.submit(queue_bench().counter(4), notify(one, 1), notify(two, 2));
  other.runtime.submit(other.counter(4), notify(one, 3));
  std::set<std::uint64_t> tags;
  while (auto finished = one.next_finished()) tags.insert(finished->tag);
  CHECK(tags == std::set<std::uint64_t>{1, 3});
  CHECK(two.next_finished()->tag == 2);
  CHECK_FALSE(two.next_finished());
}

TEST_CASE("a submission that is refused leaves nothing in the queue") {
  Bench own(on_cpu(1));
  const Executable counter = own.counter(0);
  CompletionQueue queue;
  CHECK_THROWS_AS(own.runtime.submit(counter, notify(queue), repeat(0)), UsageError);
  own.runtime.shutdown();
  CHECK_THROWS_AS(own.runtime.submit(counter, notify(queue)), UsageError);
  CHECK(queue.size() == 0);
  CHECK_FALSE(queue.next_finished());
}

TEST_CASE("a queue that goes first forgets its runs, and they go on") {
  const std::uint32_t before = queue_bench().get(6);
  Run run;
  {
    CompletionQueue queue;
    run = queue_bench().runtime.submit(queue_bench().counter(6), notify(queue));
  }
  CHECK(run.status() == Status::ok);
  CHECK(queue_bench().get(6) == before + 1);
}

TEST_CASE("a queue that nobody looks at keeps no runtime alive once its runs were taken") {
  CompletionQueue queue;
  std::weak_ptr<Core> core;
  {
    Bench own(on_cpu(1));
    const Executable counter = own.counter(0);
    core = counter.loaded()->core;
    Run run = own.runtime.submit(counter, notify(queue));
    run.wait();  // collected here, and not by the queue
    CHECK(queue.try_next_finished()->tag == 0);
  }
  CHECK(queue.size() == 0);
  CHECK(core.expired());
}

TEST_CASE("many threads submit, and many take") {
  constexpr int kThreads = 3;
  constexpr std::uint64_t kEach = 400;
  const Squares squares;
  CompletionQueue queue;
  std::atomic<std::uint64_t> taken{0}, sum{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < kEach; ++i) squares.submit(queue, t * kEach + i);
    });
    threads.emplace_back([&] {
      while (taken < kThreads * kEach) {
        auto finished = queue.next_finished_for(1ms);
        if (!finished) continue;
        ++taken;
        sum += finished->tag;
        wrong += finished->run.get(squares.out) != 3 * finished->tag;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::uint64_t all = kThreads * kEach;
  CHECK(taken == all);
  CHECK(sum == all * (all - 1) / 2);
  CHECK(wrong == 0);
}

TEST_CASE("single tasks come out of the queue, too, with their tags") {
  Bench bench(on_cpu());
  CompletionQueue queue;
  std::vector<Future<std::uint64_t>> futures;
  for (std::uint32_t x = 0; x < 50; ++x) futures.push_back(bench.runtime.submit(Square{x}, notify(queue, x)));
  std::vector<int> seen(50);
  while (const auto one = queue.next_finished()) {
    ++seen[one->tag];
    CHECK(futures[one->tag].done());
    CHECK(futures[one->tag].get() == one->tag * one->tag);
  }
  CHECK(seen == std::vector<int>(50, 1));
}
