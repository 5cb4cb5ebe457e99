// Parking: an idle runtime lets go of its workers, and the next submission brings them back.
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

TEST_CASE("an idle runtime parks once, and the next submission relaunches it") {
  Options options = on_cpu();
  options.park_after = std::chrono::milliseconds(5);
  Bench bench(options);
  const Executable counter = bench.counter(0);
  CHECK(bench.runtime.stats().launches == 0);
  for (std::uint64_t round = 1; round <= 10; ++round) {
    bench.runtime.submit(counter).wait();
    REQUIRE(eventually([&] { return bench.runtime.stats().parks == round; }));
    CHECK(bench.runtime.stats().launches == round);
  }
  CHECK(bench.get(0) == 10);
}

TEST_CASE("it does not park before Options::park_after") {
  Options options = on_cpu();
  options.park_after = std::chrono::seconds(30);
  Bench bench(options);
  const Executable counter = bench.counter(0);
  for (int round = 0; round < 3; ++round) {
    bench.runtime.submit(counter).wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(bench.runtime.stats().parks == 0);
  CHECK(bench.runtime.stats().launches == 1);
}

TEST_CASE("it does not park while a run lives, however quiet") {
  Options options = on_cpu();
  options.park_after = std::chrono::milliseconds(1);
  Bench bench(options);
  Executable held;
  Run run = bench.hold(0, held);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  CHECK(bench.runtime.stats().parks == 0);
  bench.put(1, 1);
  run.wait();
  CHECK(eventually([&] { return bench.runtime.stats().parks == 1; }));
}

TEST_CASE("submissions that cross the parking are not lost") {
  for (const auto park_after : {0, 1}) {
    Options options = on_cpu();
    options.park_after = std::chrono::milliseconds(park_after);
    Bench bench(options);
    const Executable counter = bench.counter(0);
    for (std::uint32_t i = 0; i < 400; ++i) {
      Run run = bench.runtime.submit(counter);
      REQUIRE(run.wait_for(std::chrono::seconds(20)));
      if (i % 7 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i * 5 % 2500));
    }
    CHECK(bench.get(0) == 400);
    REQUIRE(eventually([&] { return bench.runtime.stats().parks > 0; }));
    bench.runtime.submit(counter).wait();
    const Stats stats = bench.runtime.stats();
    CHECK(stats.completed == 401);
    CHECK(stats.launches > 1);
  }
}

TEST_CASE("streams, spawn pool and phases go on after a park") {
  Options options = on_cpu(3);
  options.park_after = std::chrono::milliseconds(0);
  Bench bench(options);
  Buffer<std::uint64_t> sum = bench.runtime.allocate<std::uint64_t>(1);
  Graph dynamic, phased;
  dynamic.add(EmitRange{0, 10}, after(dynamic.add(Fibonacci{6, sum.data(), bench.at(0)})));
  phased.add_grid(Rounds{bench.at(8), bench.at(2), 3});
  const Executable first = bench.runtime.load(dynamic), second = bench.runtime.load(phased);
  for (std::uint64_t i = 1; i <= 30; ++i) {
    Run run = bench.runtime.submit(first);
    for (std::uint32_t k = 0; k < 10; ++k) REQUIRE(run.next<std::uint32_t>() == k);
    CHECK(run.status() == Status::ok);
    CHECK(sum.read()[0] == i * 8);
    CHECK(bench.runtime.submit(second).status() == Status::ok);
    if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
  CHECK(bench.get(2) == 0);
  CHECK(bench.get(3) == 90);
}
