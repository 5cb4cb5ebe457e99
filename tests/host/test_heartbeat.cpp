// The watchdog: a task that does not get on fails its run, by name, and other runs go on.
#include "host/kernel/heartbeat.hpp"
#include "support/internals.hpp"

#include "support/child.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

Options impatient_options() {
  Options options = on_cpu();
  options.stall_limit = std::chrono::milliseconds(100);
  options.log_level = "off";
  return options;
}

struct HeartbeatRest {
  std::uint32_t* done;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    add_to(*done, 1u);
  }
};

}  // namespace

TEST_CASE("a task that never ends is named, and its run fails") {
  Bench bench(impatient_options());
  Graph graph;
  graph.add(Square{1});
  const auto gate = graph.add(Gate{bench.at(0), bench.at(1)});
  graph.add(Count{bench.at(2)}, after(gate));
  const Executable before = bench.counter(8);  // its records come first
  Run run = bench.runtime.submit(bench.runtime.load(graph));
  const Executable counter = bench.counter(3);
  std::uint32_t others = 0;
  for (; !run.done(); ++others) bench.runtime.submit(counter).wait();
  CHECK(run.status() == Status::worker_stalled);
  check_says(error_of<RunError>([&] { run.wait(); }),
             {"Options::stall_limit", "task 1 (flywheel::testing::Gate)", "worker", "ms", "block.cancelled()"});
  CHECK(bench.get(3) == others);
  CHECK(others > 1);
  for (int i = 0; i < 20; ++i) bench.runtime.submit(counter).wait();  // the worker has come back
  CHECK(run.status() == Status::worker_stalled);
  CHECK(bench.get(2) == 0);
}

TEST_CASE("a deaf task keeps its worker and its slot, and the rest goes on without them") {
  Bench bench(impatient_options());
  Graph graph;
  graph.add(Deaf{bench.at(0), bench.at(1)});
  Run run = bench.runtime.submit(bench.runtime.load(graph));
  CHECK(run.status() == Status::worker_stalled);
  const Executable counter = bench.counter(3);
  for (int i = 0; i < 50; ++i) bench.runtime.submit(counter).wait();
  CHECK(bench.get(3) == 50);
  bench.put(1, 1);  // let it go
  CHECK(eventually([&] { return bench.runtime.stats().completed == 51; }));
  CHECK(run.status() == Status::worker_stalled);
}

TEST_CASE("a limit of 0 is exceeded by every task that is seen to run") {
  Options options = impatient_options();
  options.stall_limit = std::chrono::milliseconds(0);
  Bench bench(options);
  Executable held;
  Run run = bench.hold(0, held);
  REQUIRE(run.wait_for(std::chrono::seconds(20)));
  CHECK(run.status() == Status::worker_stalled);
}

TEST_CASE("tasks shorter than the limit are left alone, however long the run") {
  Bench bench(impatient_options());
  Run run = bench.runtime.submit(bench.counter(0), repeat_until_stop());
  CHECK_FALSE(run.wait_for(std::chrono::milliseconds(400)));
  run.cancel();
  CHECK(run.status() == Status::cancelled);
}

TEST_CASE("a stalled phased run fails too") {
  Bench bench(impatient_options());
  Graph phased;
  phased.phase();
  phased.add(Gate{bench.at(4), bench.at(5)});
  for (std::size_t i = 6; i < 10; ++i) {
    phased.phase();
    phased.add(Count{bench.at(i)});
  }
  Run stalled = bench.runtime.submit(bench.runtime.load(phased));
  CHECK(stalled.wait_for(std::chrono::seconds(20)));
  CHECK(stalled.status() == Status::worker_stalled);
  check_says(error_of<RunError>([&] { stalled.wait(); }), {"task 0 (flywheel::testing::Gate)"});
  bench.runtime.submit(bench.counter(10)).wait();
  CHECK(bench.get(9) == 0);  // it ends at one of the next boundaries
}

TEST_CASE("a phased run may be long, and so may the wait for its other workers, as long as its tasks are short") {
  Options options = impatient_options();
  options.stall_limit = std::chrono::milliseconds(300);
  Runtime runtime = start<HeartbeatRest>(options);
  const auto words = runtime.allocate<std::uint32_t>(1);
  Graph phased;
  for (int i = 0; i < 6; ++i) {
    phased.phase();
    phased.add(HeartbeatRest{words.data()});
  }
  runtime.submit(runtime.load(phased), repeat(2)).wait();
  CHECK(words.read()[0] == 12);
}

TEST_CASE("nor does a collective run hang that waits for one with many tasks of another run in hand") {
  Options options = impatient_options();
  options.workers = 2;
  options.stall_limit = std::chrono::milliseconds(400);
  options.spin_budget = std::chrono::milliseconds(100);
  Runtime runtime = start<HeartbeatRest, Gate, Count>(options);
  const auto words = runtime.allocate<std::uint32_t>(4);
  std::uint32_t* const done = words.data();
  Graph held, many, phased;
  held.add(Gate{done + 1, done + 2});
  for (int i = 0; i < 100; ++i) many.add(HeartbeatRest{done});  // the one worker that is free takes more than 20 at once
  phased.add_grid(Count{done + 3});
  Run holding = runtime.submit(runtime.load(held));
  REQUIRE(eventually([&] { return peek_at(done[1]) == 1; }));
  Run resting = runtime.submit(runtime.load(many));
  REQUIRE(eventually([&] { return peek_at(done[0]) > 1; }));
  Run waiting = runtime.submit(runtime.load(phased));
  put_in(done[2], 1u);
  CHECK(waiting.status() == Status::ok);
  CHECK(holding.status() == Status::ok);
  CHECK(resting.status() == Status::ok);
}

TEST_CASE("a wait beyond its budget ends with a report of who waited for what") {
  Options options = impatient_options();
  options.spin_budget = std::chrono::milliseconds(100);
  Bench bench(options);
  Graph deaf, phased;
  deaf.add(Deaf{bench.at(0), bench.at(1)});
  phased.add_grid(Rounds{bench.at(8), bench.at(2), 1});
  const Executable held = bench.runtime.load(deaf), phases = bench.runtime.load(phased);
  Run holding = bench.runtime.submit(held);
  REQUIRE(eventually([&] { return bench.get(0) == 1; }));
  Run waiting = bench.runtime.submit(phases);  // one worker joins, the other never comes
  CHECK(waiting.wait_for(std::chrono::seconds(20)));
  CHECK(holding.wait_for(std::chrono::seconds(20)));
  CHECK(waiting.status() != Status::ok);
  CHECK(holding.status() != Status::ok);
  std::string message;
  CHECK(eventually([&] {
    message = error_of<DeviceError>([&] { bench.runtime.submit(held); });
    return !message.empty();
  }));
  check_says(message, {"cannot submit", "Options::spin_budget", "worker", "grid barrier", "address 0x", "expected 0x"});
  bench.put(1, 1);
  bench.runtime.shutdown();
}

#ifndef __SANITIZE_THREAD__
// A process that is stopped for two seconds, far longer than limit and budget, in the middle of its tasks.
TEST_CASE("child: healthy tasks of a process that is stopped and goes on", "[.child]") {
  Options options = on_cpu();
  options.stall_limit = std::chrono::milliseconds(800);
  options.spin_budget = std::chrono::milliseconds(200);
  Runtime runtime = start<HeartbeatRest>(options);
  const auto words = runtime.allocate<std::uint32_t>(1);
  Graph phased;
  for (int i = 0; i < 10; ++i) {
    phased.phase();
    phased.add(HeartbeatRest{words.data()});
  }
  const Executable executable = runtime.load(phased);
  runtime.submit(executable).wait();
  const pid_t me = getpid();
  const pid_t other = fork();
  if (other == 0) {
    usleep(150'000);
    kill(me, SIGSTOP);
    usleep(2'000'000);
    kill(me, SIGCONT);
    _exit(0);
  }
  const auto begin = std::chrono::steady_clock::now();
  Run run = runtime.submit(executable, repeat(2));
  CHECK(run.status() == Status::ok);
  CHECK(std::chrono::steady_clock::now() - begin > std::chrono::seconds(2));
  waitpid(other, nullptr, 0);
}

TEST_CASE("time in which the whole process was stopped is no task's and no wait's") {
  check_child(run_child("child: healthy tasks of a process that is stopped and goes on", std::chrono::seconds(20)));
}
#endif
