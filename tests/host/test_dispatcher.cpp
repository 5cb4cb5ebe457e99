// The dispatcher when its engine fails: every run ends with the cause, and no thread waits for what cannot come.
#include <thread>
#include <utility>

#include "host/futures/core.hpp"
#include "support/frail_engine.hpp"
#include "support/internals.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

struct Frail {
  explicit Frail(Options options = on_cpu(), std::shared_ptr<Frailty> with = std::make_shared<Frailty>())
      : frailty(std::move(with)),
        runtime(kernel_entry<Count, Gate>(), options,
                std::make_unique<FrailEngine>(kernel_entry<Count, Gate>(), options, frailty)),
        words(runtime.allocate<std::uint32_t>(16)) {
    Graph counting, standing;
    counting.add(Count{words.data()});
    standing.add(Gate{words.data() + 1, words.data() + 2});
    counter = runtime.load(counting);
    gate = runtime.load(standing);
  }

  /// A run that has begun and does not end by itself.
  Run hold() {
    const std::uint32_t before = peek_at(words.data()[1]);
    Run run = runtime.submit(gate);
    REQUIRE(eventually([&] { return peek_at(words.data()[1]) > before; }));
    return run;
  }
  void open() { put_in(words.data()[2], 1u); }

  std::shared_ptr<Frailty> frailty;
  Runtime runtime;
  Buffer<std::uint32_t> words;
  Executable counter, gate;
};

std::string error_of_run(Run& run) {
  return error_of<RunError>([&] { run.wait(); });
}

}  // namespace

TEST_CASE("a launch that is refused fails the run that needed it, and all that come after are told") {
  for (const Mode mode : {Mode::resident, Mode::drain}) {
    Options options = on_cpu();
    options.mode = mode;
    Frail frail(options);
    frail.frailty->refuses_launches = true;
    Run run = frail.runtime.submit(frail.counter);
    check_says(error_of_run(run), {"could not be launched", "the test does not want it", "Remedy"});
    CHECK(error_of_run(run).find("dead") == std::string::npos);
    CHECK(run.status() == Status::launch_refused);
    check_says(error_of<DeviceError>([&] { frail.runtime.submit(frail.counter); }),
               {"cannot submit", "the test does not want it", "Remedy"});
    CHECK(frail.words.data()[0] == 0);
  }
}

TEST_CASE("so does one after a park") {
  Options options = on_cpu();
  options.park_after = std::chrono::milliseconds(0);
  Frail frail(options);
  frail.runtime.submit(frail.counter).wait();
  REQUIRE(eventually([&] { return frail.runtime.stats().parks == 1; }));
  frail.frailty->refuses_launches = true;
  Run run = frail.runtime.submit(frail.counter);
  CHECK(run.status() == Status::launch_refused);
  CHECK(frail.words.data()[0] == 1);
}

TEST_CASE("a device that is lost fails what is live, what waits in the backlog and what a stream was to submit") {
  Options options = on_cpu();
  options.overlap = 1;
  Frail frail(options);
  Run live = frail.hold(), in_backlog = frail.runtime.submit(frail.gate);
  Run from_stream = frail.runtime.submit_after(nullptr, frail.counter);
  CHECK_FALSE(from_stream.done());
  frail.frailty->lost = true;
  for (Run* run : {&live, &in_backlog, &from_stream}) {
    REQUIRE(run->wait_for(std::chrono::seconds(30)));
    CHECK(run->status() == Status::device_lost);
    check_says(error_of_run(*run), {"the test has taken the device away", "Remedy"});
  }
  std::exchange(frail.frailty->called_back, nullptr)();  // late
  CHECK(from_stream.status() == Status::device_lost);
}

TEST_CASE("what a stream was to submit fails also while the kernel is parked") {
  Frail frail;
  Run run = frail.runtime.submit_after(nullptr, frail.counter);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK_FALSE(run.done());
  frail.frailty->lost = true;
  REQUIRE(run.wait_for(std::chrono::seconds(30)));
  frail.frailty->called_back = nullptr;
  CHECK(run.status() == Status::device_lost);
}

TEST_CASE("followers fail with the device, wherever they wait") {
  Options options = on_cpu();
  options.max_runs = 4;
  options.overlap = 64;
  Frail frail(options);
  std::vector<Run> all{frail.hold(), frail.runtime.submit_after(nullptr, frail.counter)};
  all.push_back(frail.runtime.submit(frail.counter, after(all[1])));
  all.push_back(frail.runtime.submit(frail.counter, after(all[0])));
  for (int i = 0; i < 20; ++i) all.push_back(frail.runtime.submit(frail.counter, after(all.back(), all[2])));
  for (int i = 0; i < 20; ++i) all.push_back(frail.runtime.submit(frail.counter, after(all[all.size() - 20])));
  for (Run& run : all) CHECK_FALSE(run.done());
  frail.frailty->lost = true;
  for (Run& run : all) REQUIRE(run.wait_for(std::chrono::seconds(30)));
  frail.frailty->called_back = nullptr;
  for (Run& run : all) CHECK(run.status() == Status::device_lost);
  CHECK(frail.words.data()[0] == 0);
}

TEST_CASE("a run follows what a stream is to submit") {
  Frail frail;
  Run first = frail.runtime.submit_after(nullptr, frail.counter);
  Run second = frail.runtime.submit(frail.counter, after(first));
  CHECK_FALSE(second.wait_for(std::chrono::milliseconds(5)));
  std::exchange(frail.frailty->called_back, nullptr)();
  second.wait();
  CHECK(first.done());
  CHECK(frail.words.data()[0] == 2);
}

TEST_CASE("what a stream is to submit once the device is lost, or after shutdown(), fails at once") {
  Frail lost, over;
  Run live = lost.hold();
  lost.frailty->lost = true;
  REQUIRE(live.wait_for(std::chrono::seconds(30)));
  over.runtime.shutdown();
  for (Frail* frail : {&lost, &over}) {
    Run late = frail->runtime.submit_after(nullptr, frail->counter);
    REQUIRE(late.wait_for(std::chrono::seconds(30)));
    CHECK(late.status() == (frail == &lost ? Status::device_lost : Status::aborted));
    std::exchange(frail->frailty->called_back, nullptr)();
    CHECK(frail->words.data()[0] == 0);
  }
}

TEST_CASE("a stream that comes when all else is gone takes the rest with it") {
  for (int round = 0; round < 20; ++round) {
    const auto frailty = std::make_shared<Frailty>();
    {
      Frail frail(on_cpu(), frailty);
      frail.runtime.submit_after(nullptr, frail.counter);
    }
    CHECK(frailty->pieces > 0);  // the stream keeps it
    std::exchange(frailty->called_back, nullptr)();
    REQUIRE(eventually([&] { return frailty.use_count() == 1; }, std::chrono::seconds(10)));  // the engine is gone, too
    CHECK(frailty->pieces == 0);
  }
}

TEST_CASE("so it does while the kernel is resident, and idle for long") {
  Options options = on_cpu();
  options.park_after = std::chrono::hours(1);
  Frail frail(options);
  frail.runtime.submit(frail.counter).wait();
  Run run = frail.runtime.submit_after(nullptr, frail.counter);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  frail.frailty->lost = true;
  REQUIRE(run.wait_for(std::chrono::seconds(10)));
  frail.frailty->called_back = nullptr;
  CHECK(run.status() == Status::device_lost);
}

TEST_CASE("what a stream was to submit is cancelled at once, and may come all the same") {
  Frail frail;
  Run run = frail.runtime.submit_after(nullptr, frail.counter);
  run.cancel();
  REQUIRE(run.wait_for(std::chrono::seconds(10)));
  CHECK(run.status() == Status::cancelled);
  std::exchange(frail.frailty->called_back, nullptr)();
  frail.runtime.submit(frail.counter).wait();
  CHECK(frail.words.data()[0] == 1);
}

TEST_CASE("what a stream has submitted is forgotten when it has ended") {
  Options options = on_cpu();
  options.park_after = std::chrono::hours(1);
  options.max_executables = 3;
  Frail frail(options);
  for (int round = 0; round < 3; ++round) {
    Graph graph;
    graph.add(Count{frail.words.data()});
    Run run = frail.runtime.submit_after(nullptr, frail.runtime.load(graph));
    std::exchange(frail.frailty->called_back, nullptr)();
    run.wait();
  }
  CHECK(frail.words.data()[0] == 3);
}

TEST_CASE("a stream that comes in time submits its run") {
  Frail frail;
  Run run = frail.runtime.submit_after(nullptr, frail.counter);
  std::exchange(frail.frailty->called_back, nullptr)();
  run.wait();
  CHECK(frail.words.data()[0] == 1);
}

TEST_CASE("a stream that waits for a run goes on when that is given up") {
  Frail frail;
  Run run = frail.hold();
  run.let_stream_wait(nullptr);
  CHECK(peek_at(*frail.frailty->awaited) < frail.frailty->awaited_value);
  frail.frailty->lost = true;
  REQUIRE(run.wait_for(std::chrono::seconds(30)));
  CHECK(eventually([&] { return peek_at(*frail.frailty->awaited) >= frail.frailty->awaited_value; }));
}

TEST_CASE("nothing waits for a kernel to yield whose device is lost meanwhile") {
  Options options = on_cpu();
  options.tuning.cpu_yields = true;
  options.tuning.yield_patience = std::chrono::seconds(60);  // for the task that holds a worker
  Frail frail(options);
  Run run = frail.hold();
  frail.runtime.yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // now it is told to
  frail.frailty->lost = true;
  CHECK(run.status() == Status::device_lost);
  const auto begin = std::chrono::steady_clock::now();
  error_of<Error>([&] { frail.runtime.allocate<char>(options.heap_bytes); });
  frail.runtime.shutdown();
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(4));
}

TEST_CASE("workers that do not come are counted") {
  Options options = on_cpu(3);
  options.start_timeout = std::chrono::milliseconds(50);
  options.shutdown_timeout = std::chrono::milliseconds(200);
  Frail frail(options);
  frail.frailty->never_starts = true;
  Run run = frail.runtime.submit(frail.counter);
  CHECK(run.status() == Status::workers_missing);
  check_says(error_of_run(run), {"0 of 3 workers", "Remedy"});
  frail.frailty->never_starts = false;
}

namespace {
Options impatient() {
  Options options = on_cpu();
  options.start_timeout = std::chrono::milliseconds(250);
  options.overlap = 2;
  options.log_level = "off";
  return options;
}
}  // namespace

TEST_CASE("a kernel that starts late fails the runs that waited for it, live and in the backlog, and none that come after") {
  Frail frail(impatient());
  frail.frailty->never_starts = true;
  std::vector<Run> early;
  for (int i = 0; i < 5; ++i) early.push_back(frail.runtime.submit(frail.counter));  // 2 are live
  for (Run& run : early) CHECK(run.status() == Status::workers_missing);
  frail.frailty->never_starts = false;
  for (int i = 0; i < 10; ++i) frail.runtime.submit(frail.counter).wait();
  const std::uint32_t done = peek_at(frail.words.data()[0]);
  CHECK(done >= 10);
  CHECK(done <= 12);  // those that were live may have run, though their program was told otherwise
  CHECK(eventually([&] { return frail.runtime.stats().completed == 12; }));
}

TEST_CASE("a run that is submitted while the kernel is late waits for it no less long, and may succeed") {
  Options options = impatient();
  options.start_timeout = std::chrono::milliseconds(500);
  Frail frail(options);
  frail.frailty->never_starts = true;
  Run first = frail.runtime.submit(frail.counter);
  CHECK(first.status() == Status::workers_missing);
  Run second = frail.runtime.submit(frail.gate);
  CHECK_FALSE(second.wait_for(std::chrono::milliseconds(20)));
  frail.frailty->never_starts = false;
  frail.open();
  CHECK(second.status() == Status::ok);
  second.wait();
}

TEST_CASE("collective runs follow a late kernel as well, and a stream's run is not given up") {
  Frail frail(impatient());
  Graph graph;
  graph.add(Count{frail.words.data() + 4});
  const Executable of_all = frail.runtime.load(graph, compiled);
  frail.frailty->never_starts = true;
  Run live = frail.runtime.submit(of_all), in_backlog = frail.runtime.submit(of_all);
  Run from_stream = frail.runtime.submit_after(nullptr, frail.counter);
  CHECK(live.status() == Status::workers_missing);
  CHECK(in_backlog.status() == Status::workers_missing);
  CHECK_FALSE(from_stream.done());
  frail.frailty->never_starts = false;
  frail.runtime.submit(of_all).wait();
  std::exchange(frail.frailty->called_back, nullptr)();
  from_stream.wait();
  CHECK(frail.words.data()[0] == 1);
}

TEST_CASE("shutdown() is through in time also when the kernel never starts") {
  Options options = impatient();
  options.shutdown_timeout = std::chrono::milliseconds(200);
  const auto frailty = std::make_shared<Frailty>();
  const auto begin = std::chrono::steady_clock::now();
  {
    Frail frail(options, frailty);
    frailty->never_starts = true;
    CHECK(frail.runtime.submit(frail.counter).status() == Status::workers_missing);
    frail.runtime.shutdown();
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  }
}

TEST_CASE("several threads may call shutdown() at once, also when the kernel never starts") {
  Options options = impatient();
  options.shutdown_timeout = std::chrono::milliseconds(50);
  options.start_timeout = std::chrono::seconds(20);
  const auto frailty = std::make_shared<Frailty>();
  Frail frail(options, frailty);
  frailty->never_starts = true;
  Run run = frail.runtime.submit(frail.counter);
  std::thread others[] = {std::thread([&] { frail.runtime.shutdown(); }), std::thread([&] { frail.runtime.shutdown(); })};
  frail.runtime.shutdown();
  CHECK(run.status() == Status::aborted);
  for (std::thread& other : others) other.join();
}

TEST_CASE("shutdown() is through in time also when a launch does not return") {
  Options options = on_cpu();
  options.mode = Mode::drain;
  options.shutdown_timeout = std::chrono::milliseconds(100);
  options.log_level = "off";
  std::shared_ptr<Frailty> frailty;
  const auto begin = std::chrono::steady_clock::now();
  {
    Frail frail(options);
    frailty = frail.frailty;
    frailty->blocks_in_launch = true;
    Run run = frail.runtime.submit(frail.counter);
    frail.runtime.shutdown();
    CHECK(run.status() == Status::aborted);
  }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
  frailty->blocks_in_launch = false;  // lets the thread end
}

TEST_CASE("a launch that returns late starts the kernel, and collective runs go on as before") {
  Options options = on_cpu();
  options.mode = Mode::drain;
  Frail frail(options);
  Graph graph;
  const auto first = graph.add(Count{frail.words.data() + 3});
  const auto second = graph.add(Count{frail.words.data() + 3}, after(first));
  graph.place(first, 0);
  graph.place(second, 1);
  const Executable placed = frail.runtime.load(graph, compiled);
  const auto is_parked = [&] {
    const Stats stats = frail.runtime.stats();
    return stats.launches == stats.parks;
  };
  for (std::uint32_t i = 1; i <= 3; ++i) {
    REQUIRE(eventually(is_parked));
    frail.frailty->blocks_in_launch = true;
    Run run = frail.runtime.submit(placed);
    CHECK_FALSE(run.wait_for(std::chrono::milliseconds(5)));
    frail.frailty->blocks_in_launch = false;
    run.wait();
    CHECK(peek_at(frail.words.data()[3]) == 2 * i);
  }
}

TEST_CASE("a trace that cannot be fetched fails its run, not the process") {
  Options options = on_cpu();
  options.trace_events = 64;
  Frail frail(options);
  Graph graph;
  graph.add(Gate{frail.words.data() + 1, frail.words.data() + 2});
  Run run = frail.runtime.submit(frail.runtime.load(graph, compiled), traced);
  REQUIRE(eventually([&] { return peek_at(frail.words.data()[1]) == 1; }));
  frail.frailty->refuses_copies = true;
  frail.open();
  CHECK(run.status() == Status::device_lost);
  frail.frailty->refuses_copies = false;
}

TEST_CASE("nor does it stop those who shut down or wait for memory just then") {
  Options options = on_cpu();
  options.trace_events = 64;
  options.heap_bytes = 4096;
  options.log_level = "off";
  for (int round = 0; round < 20; ++round) {  // one of two threads is the first to find that the run has ended
    options.shutdown_timeout = std::chrono::milliseconds(round % 2 ? 400 : 20'000);
    Frail frail(options);
    Graph graph;
    graph.add(Gate{frail.words.data() + 1, frail.words.data() + 2});
    Run run = frail.runtime.submit(frail.runtime.load(graph, compiled), traced);
    REQUIRE(eventually([&] { return peek_at(frail.words.data()[1]) == 1; }));
    frail.frailty->refuses_one_copy = true;
    if (round % 2) {
      CHECK_NOTHROW(frail.runtime.shutdown());
    } else {
      frail.open();
      CHECK_NOTHROW(frail.runtime.allocate<std::uint32_t>(1 << 16));
    }
    CHECK(run.status() == Status::device_lost);
    CHECK_THROWS_AS(frail.runtime.submit(frail.counter), Error);
  }
}

TEST_CASE("an executable that has all its runs in flight holds up none of the others") {
  Options options = on_cpu();
  options.overlap = 1;
  Frail frail(options);
  std::vector<Run> held;
  held.push_back(frail.hold());
  for (int i = 0; i < 100; ++i) held.push_back(frail.runtime.submit(frail.gate));
  Run other = frail.runtime.submit(frail.counter);
  CHECK(other.wait_for(std::chrono::seconds(30)));
  Run last = frail.runtime.submit(frail.gate);
  last.cancel();
  CHECK(last.status() == Status::cancelled);
  CHECK_FALSE(held.back().done());
  frail.open();
  for (Run& run : held) run.wait();
}

TEST_CASE("runs of one executable go in the order of their submission, also when they are held back") {
  Options options = on_cpu(1);
  options.overlap = 1;
  Frail frail(options);
  Run first = frail.hold();
  std::vector<Run> runs;
  for (int i = 0; i < 40; ++i) runs.push_back(frail.runtime.submit(i % 2 ? frail.gate : frail.counter));
  frail.open();
  for (std::size_t i = 1; i < runs.size(); i += 2) {
    runs[i].wait();
    for (std::size_t before = 1; before < i; before += 2) REQUIRE(runs[before].done());
  }
  for (Run& run : runs) run.wait();
}
