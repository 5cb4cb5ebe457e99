#include "host/futures/when.hpp"

#include <array>
#include <deque>
#include <thread>

#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;
using namespace std::chrono_literals;

namespace {
Bench& when_bench() {
  static Bench shared(on_cpu());
  return shared;
}
}  // namespace

TEST_CASE("when_any() names the run that has ended, one by one and in a range") {
  Executable held;
  Run slow = when_bench().hold(0, held), quick = when_bench().runtime.submit(when_bench().counter(2));
  CHECK(when_any(slow, quick) == 1);
  CHECK(when_any(quick, slow) == 0);
  CHECK(when_any(std::array{slow, slow, quick}) == 2);
  const std::deque<Run> range{slow, quick};
  CHECK(when_any(range) == 1);
  CHECK(when_any_for(1ms, slow, slow) == std::nullopt);
  CHECK(when_any_for(0ns, quick) == std::size_t{0});
  CHECK_FALSE(when_all_for(2ms, quick, slow));
  when_bench().put(1, 1);
  CHECK(when_all_for(20s, slow, quick));
  CHECK(when_all_for(std::chrono::nanoseconds::max(), slow));
  when_all(range);
}

TEST_CASE("when_any() waits for a run that ends later") {
  Executable first, second;
  Run a = when_bench().hold(4, first), b = when_bench().hold(6, second);
  std::thread opens([] {
    std::this_thread::sleep_for(20ms);
    when_bench().put(7, 1);
  });
  CHECK(when_any(a, b) == 1);
  opens.join();
  when_bench().put(5, 1);
  when_all(a, b);
  CHECK(a.done());
}

TEST_CASE("a failed run counts as ended; when_all() throws its error when all have ended") {
  Executable held;
  Graph graph;
  graph.add(Fail{3, 0});
  Run slow = when_bench().hold(8, held), fails = when_bench().runtime.submit(when_bench().runtime.load(graph));
  CHECK(when_any(slow, fails) == 1);
  std::thread opens([] {
    std::this_thread::sleep_for(10ms);
    when_bench().put(9, 1);
  });
  check_says(error_of<RunError>([&] { when_all(fails, slow); }), {"its own code, 3", "task 0"});
  CHECK(slow.done());
  opens.join();
  CHECK(when_all_for(1s, fails, slow));
}

TEST_CASE("no runs, and empty ones") {
  const std::vector<Run> none;
  check_says(error_of<UsageError>([&] { when_any(none); }), {"no runs", "at least one"});
  check_says(error_of<UsageError>([&] { when_any_for(1ms, none); }), {"no runs"});
  when_all(none);
  CHECK(when_all_for(0ns, none));
  Run empty;
  check_says(error_of<UsageError>([&] { when_any(empty); }), {"Run is empty"});
  check_says(error_of<UsageError>([&] { when_all(empty); }), {"Run is empty"});
}

TEST_CASE("a run whose tasks wait for a reader of their stream ends while it is waited for") {
  Options options = on_cpu();
  options.stream_capacity = 4;
  Bench own(options);
  Graph graph;
  graph.add(EmitRange{0, 500});
  Run a = own.runtime.submit(own.runtime.load(graph)), b = own.runtime.submit(own.runtime.load(graph));
  CHECK(when_any_for(20s, a, b).has_value());
  when_all(a, b);
  std::uint32_t next = 0;
  while (const auto value = b.next<std::uint32_t>()) REQUIRE(*value == next++);
  CHECK(next == 500);
}
