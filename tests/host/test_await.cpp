#include "host/futures/await.hpp"

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;
using namespace std::chrono_literals;

namespace {
Bench& bench() {
  static Bench shared(on_cpu());
  return shared;
}

/// A coroutine that begins at once and belongs to nobody.
struct Detached {
  struct promise_type {
    Detached get_return_object() const { return {}; }
    std::suspend_never initial_suspend() const { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const {}
    void unhandled_exception() const { std::terminate(); }
  };
};

Detached square_of(std::uint32_t x, std::atomic<std::uint64_t>& sum, std::atomic<int>& ended) {
  Graph graph;
  const auto square = graph.add(Square{x});
  Run run = co_await bench().runtime.submit(bench().runtime.load(graph));
  sum += run.get(square);
  ++ended;
}

Detached chain(Executable counter, int steps, std::atomic<int>& left) {
  for (int i = 0; i < steps; ++i) {
    co_await bench().runtime.submit(counter);
    --left;
  }
}

Detached fails(std::string& text, std::atomic<bool>& ended) {
  Graph graph;
  graph.add(Fail{5, 0});
  try {
    co_await bench().runtime.submit(bench().runtime.load(graph));
  } catch (const RunError& error) {
    text = error.what();
  }
  ended = true;
}

/// One thread that runs what is posted.
class Loop {
 public:
  void post(std::function<void()> work) {
    std::scoped_lock lock(mutex_);
    work_.push_back(std::move(work));
  }
  bool run_one() {
    std::function<void()> work;
    {
      std::scoped_lock lock(mutex_);
      if (work_.empty()) return false;
      work = std::move(work_.back());
      work_.pop_back();
    }
    work();
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<std::function<void()>> work_;
};

Detached hops(Loop& loop, Run run, std::thread::id& resumed, std::atomic<int>& ended) {
  co_await resume_on([&loop](std::coroutine_handle<> coroutine) { loop.post(coroutine); }, run);
  resumed = std::this_thread::get_id();
  ++ended;
}
}  // namespace

TEST_CASE("co_await gives the run, and its results") {
  std::atomic<std::uint64_t> sum{0};
  std::atomic<int> ended{0};
  for (std::uint32_t x = 0; x < 100; ++x) square_of(x, sum, ended);
  REQUIRE(eventually([&] { return ended == 100; }));
  CHECK(sum == 328350);
}

TEST_CASE("a coroutine awaits run after run, and many coroutines do at once") {
  const Executable counter = bench().counter(0);
  std::atomic<int> left{20 * 50};
  for (int i = 0; i < 20; ++i) chain(counter, 50, left);
  CHECK(eventually([&] { return left == 0; }));
  CHECK(bench().get(0) == 20 * 50);
}

TEST_CASE("co_await throws what wait() throws") {
  std::string text;
  std::atomic<bool> ended{false};
  fails(text, ended);
  REQUIRE(eventually([&] { return ended.load(); }));
  check_says(text, {"its own code, 5", "task 0", "Remedy: "});
}

TEST_CASE("a run that has ended does not suspend the coroutine") {
  Run run = bench().runtime.submit(bench().counter(2));
  run.wait();
  bool went_on = false;
  [](Run awaited, bool& reached) -> Detached {
    co_await awaited;
    reached = true;
  }(run, went_on);
  CHECK(went_on);
}

TEST_CASE("an executor of the program resumes the coroutine, also after the end") {
  Loop loop;
  std::thread::id resumed{};
  std::atomic<int> ended{0};
  Executable held;
  Run run = bench().hold(4, held);
  hops(loop, run, resumed, ended);
  CHECK_FALSE(loop.run_one());
  bench().put(5, 1);
  REQUIRE(eventually([&] { return loop.run_one(); }));
  CHECK(ended == 1);
  CHECK(resumed == std::this_thread::get_id());
  hops(loop, run, resumed, ended);
  REQUIRE(eventually([&] { return loop.run_one(); }));
  CHECK(ended == 2);
}

TEST_CASE("co_await of an empty run says so") {
  std::string text;
  [](std::string& said) -> Detached {
    try {
      co_await Run();
    } catch (const UsageError& error) {
      said = error.what();
    }
  }(text);
  check_says(text, {"Run is empty"});
}

TEST_CASE("co_await of a single task gives its result, here or on an executor, or throws") {
  std::atomic<std::uint64_t> sum{0};
  std::atomic<int> ended{0};
  Loop loop;
  const auto add = [](std::uint32_t x, Loop& elsewhere, std::atomic<std::uint64_t>& to, std::atomic<int>& over) -> Detached {
    to += co_await bench().runtime.submit(Square{x});
    to += co_await resume_on([&](std::coroutine_handle<> coroutine) { elsewhere.post(coroutine); },
                             bench().runtime.submit(Square{x}));
    try {
      co_await bench().runtime.submit(Fail{9, 0});
    } catch (const RunError&) {
      ++over;
    }
  };
  for (std::uint32_t x = 0; x < 100; ++x) add(x, loop, sum, ended);
  REQUIRE(eventually([&] {
    loop.run_one();
    return ended == 100;
  }));
  CHECK(sum == 2 * 328350);
}
