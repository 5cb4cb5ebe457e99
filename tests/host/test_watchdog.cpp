// The watchdog by itself: heartbeats and clock are the test's.
#include "host/kernel/heartbeat.hpp"
#include "support/internals.hpp"

#include <map>

#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using P = CpuPlatform;
constexpr std::uint64_t kMs = 1'000'000, kWatchStart = 5'000 * kMs;

/// Three workers, a limit of 100 ms, and a clock that starts at kWatchStart.
struct Watch {
  std::vector<Heartbeat> hearts = std::vector<Heartbeat>(3);
  DeviceState dev{};
  std::map<std::uint16_t, WatchedRun> runs;
  std::unique_ptr<Watchdog> dog;
  std::uint64_t now = kWatchStart;

  Watch() {
    dev.workers = 3;
    dev.heartbeats = hearts.data();
    Options options;
    options.stall_limit = std::chrono::milliseconds(100);
    dog = std::make_unique<Watchdog>(dev, options);
    dog->new_stalls([&](auto slot) { return runs[slot]; }, now);
  }
  /// A body of a CPU worker.
  void begin(std::uint32_t worker, std::uint32_t task, std::uint16_t slot) {
    hearts[worker].item = Item{task, slot, false}.pack();
    hearts[worker].started_ns = now;
    if (hearts[worker].joined == joined_run(slot, runs[slot].generation)) hearts[worker].part_ns = now;
  }
  void beat_slow(std::uint32_t worker, std::uint32_t task, std::uint16_t slot, std::uint64_t elapsed_ms) {
    beat<P>(hearts[worker], WorkerState::slow, Item{task, slot, false}.pack(), elapsed_ms * kMs);
  }
  std::vector<Stall> look() {
    return dog->new_stalls([&](auto slot) { return runs[slot]; }, now);
  }
  /// Time passes, with a look each ms. Workers that were named, in order.
  std::vector<std::uint32_t> pass(std::uint64_t ms) {
    std::vector<std::uint32_t> named;
    for (; ms; --ms) {
      now += kMs;
      for (const Stall& stall : look()) named.push_back(stall.worker);
    }
    return named;
  }
};
using Named = std::vector<std::uint32_t>;
}  // namespace

TEST_CASE("a body that runs for longer than the limit is told once") {
  Watch watch;
  watch.runs[4] = {1};
  watch.begin(1, 7, 4);
  CHECK(watch.pass(98).empty());
  CHECK(watch.pass(5) == Named{1});
  CHECK(watch.pass(300).empty());
  watch.begin(1, 7, 4);
  CHECK(watch.pass(105) == Named{1});
}

TEST_CASE("time in which the process was stopped counts for next to nothing") {
  Watch watch;
  watch.runs[4] = {1};
  watch.begin(0, 7, 4);
  CHECK(watch.pass(50).empty());
  watch.now += 60'000 * kMs;
  CHECK(watch.pass(30).empty());
  CHECK(watch.pass(60) == Named{0});
  watch.now += 1 * kMs;
  watch.begin(2, 8, 4);  // between two looks, and the process is stopped at once
  watch.now += 60'000 * kMs;
  CHECK(watch.pass(80).empty());
  CHECK(watch.pass(30) == Named{2});
}

TEST_CASE("looks that always come late find a task that never ends all the same") {
  Watch watch;
  watch.runs[4] = {1};
  watch.begin(0, 7, 4);
  bool told = false;
  for (int look = 0; look < 20 && !told; ++look) {
    watch.now += 500 * kMs;
    told = !watch.look().empty();
  }
  CHECK(told);
}

TEST_CASE("a gang's time begins when all workers have joined its run, and anew when one begins a task of it") {
  const std::vector<bool> gang{true, true, false};
  Watch watch;
  watch.runs[4] = {9, &gang};
  watch.runs[5] = {3};
  for (const std::uint32_t w : {0u, 2u}) show_joined<P>(watch.hearts[w], 4, 9);
  show_joined<P>(watch.hearts[1], 4, 8);  // an earlier run in that slot
  watch.begin(0, 0, 4);
  for (std::uint32_t task = 100; task < 110; ++task) {  // 800 ms of another run
    watch.begin(1, task, 5);
    CHECK(watch.pass(80).empty());
  }
  watch.hearts[1].started_ns = 0;
  show_joined<P>(watch.hearts[1], 4, 9);
  CHECK(watch.pass(80).empty());
  watch.begin(1, 2, 4);  // a task before the partner
  CHECK(watch.pass(80).empty());
  watch.begin(1, 1, 4);
  CHECK(watch.pass(80).empty());
  const Named both = watch.pass(25);
  CHECK(both == Named{0, 1});
}

TEST_CASE("so it does when that task was over before the next look") {
  const std::vector<bool> gang{true, true, false};
  Watch watch;
  watch.runs[4] = {9, &gang};
  for (const std::uint32_t w : {0u, 1u, 2u}) show_joined<P>(watch.hearts[w], 4, 9);
  watch.begin(0, 0, 4);
  watch.begin(1, 2, 4);  // a task before the partner
  CHECK(watch.pass(80).empty());
  watch.begin(1, 1, 4);
  end_body<P>(watch.hearts[1]);
  CHECK(watch.pass(80).empty());  // worker 0 is slow to see it
  CHECK(watch.pass(25) == Named{0});
}

TEST_CASE("and when its worker was busy elsewhere by then") {
  const std::vector<bool> gang{true, true};
  Watch watch;
  watch.runs[4] = {9, &gang};
  watch.runs[5] = {3};
  for (const std::uint32_t w : {0u, 1u, 2u}) show_joined<P>(watch.hearts[w], 4, 9);
  watch.begin(0, 0, 4);
  CHECK(watch.pass(80).empty());
  watch.begin(1, 1, 4);
  end_body<P>(watch.hearts[1]);
  watch.begin(1, 100, 5);
  CHECK(watch.pass(1).empty());
  end_body<P>(watch.hearts[1]);
  CHECK(watch.pass(80).empty());  // worker 0 is slow to see it
  CHECK(watch.pass(25) == Named{0});
}

TEST_CASE("what keeps a gang waiting is named before it, and does not excuse it for ever") {
  const std::vector<bool> gang{true, true, false};
  for (const bool joined : {true, false}) {
    Watch watch;
    watch.runs[4] = {9, &gang};
    watch.runs[5] = {3};
    for (const std::uint32_t w : {0u, 1u, 2u}) show_joined<P>(watch.hearts[w], 4, w == 1 && !joined ? 8 : 9);
    watch.begin(0, 0, 4);
    watch.pass(1);
    watch.begin(1, 2, joined ? 4 : 5);
    Named named = watch.pass(300);
    INFO("joined: " << joined);
    CHECK(named == Named{1, 0});
  }
}

TEST_CASE("a worker that has left the run excuses no gang, whatever it does then") {
  const std::vector<bool> gang{true, true};
  Watch watch;
  watch.runs[4] = {9, &gang};
  watch.runs[5] = {3};
  for (const std::uint32_t w : {0u, 1u, 2u}) show_joined<P>(watch.hearts[w], 4, 9);
  watch.begin(0, 0, 4);
  Named named;
  for (int task = 0; task < 20 && named.empty(); ++task) {
    watch.begin(2, 100, 5);
    named = watch.pass(10);
  }
  CHECK(named == Named{0});
}

TEST_CASE("a GPU's slow task is told while it beats, not when it was over at the first look") {
  Watch watch;
  watch.runs[4] = {1};
  watch.beat_slow(1, 7, 4, 40);
  CHECK(watch.pass(1).empty());
  watch.beat_slow(1, 7, 4, 4000);  // seen when the process goes on; then it has ended, and no other task is slow
  CHECK(watch.pass(500).empty());
  watch.beat_slow(1, 8, 4, 4000);
  CHECK(watch.pass(20).empty());
  watch.beat_slow(1, 8, 4, 4020);
  CHECK(watch.pass(20) == Named{1});
  watch.beat_slow(1, 8, 4, 4040);
  CHECK(watch.pass(20).empty());
}

TEST_CASE("a GPU's slow task may have waited for the host while that was stopped") {
  for (const bool known : {true, false}) {
    INFO("slow before the stop: " << known);
    Watch watch;
    watch.runs[4] = {1};
    if (known) watch.beat_slow(1, 7, 4, 40);
    CHECK(watch.pass(1).empty());
    watch.now += 60'000 * kMs;
    Named named;
    for (std::uint64_t ms = 60'040; ms <= 60'400 && named.empty(); ms += 20) {
      watch.beat_slow(1, 7, 4, ms);
      named = watch.pass(20);
      if (ms < 60'100) CHECK(named.empty());
    }
    CHECK(named == Named{1});
  }
}

TEST_CASE("the host's clock goes on while it looks, and stands while its process is stopped") {
  Watch watch;
  std::uint64_t awake = 1;
  watch.dev.host_awake_ns = &awake;
  watch.pass(50);
  CHECK(awake == 1 + 50 * kMs);
  watch.now += 60'000 * kMs;
  watch.pass(10);
  CHECK(awake > 60 * kMs);
  CHECK(awake < 200 * kMs);
}

TEST_CASE("a beat left over from a run is none of the next in its slot") {
  Watch watch;
  watch.runs[4] = {1};
  watch.beat_slow(1, 7, 4, 120);
  CHECK(watch.pass(1).empty());
  watch.beat_slow(1, 7, 4, 140);
  watch.runs[4] = {2};  // before the next look
  CHECK(watch.pass(10).empty());
  watch.runs[4] = {};
  watch.beat_slow(1, 7, 4, 160);
  CHECK(watch.pass(10).empty());
}

TEST_CASE("a GPU's gang is not told while a worker is in a task of another run since before") {
  const std::vector<bool> gang{true, true};
  Watch watch;
  watch.runs[4] = {1, &gang};
  watch.runs[5] = {1};
  Named named;
  for (std::uint64_t ms = 20; ms <= 400; ms += 20) {
    if (ms <= 80) watch.beat_slow(2, 3, 5, ms);
    if (ms == 100) beat<P>(watch.hearts[2], WorkerState::present, 0, 0);
    watch.beat_slow(1, 0, 4, ms);
    for (const std::uint32_t w : watch.pass(20)) {
      named.push_back(w);
      CHECK(ms >= 180);
    }
  }
  CHECK(named == Named{1});
}

TEST_CASE("a reader of a heartbeat never takes one body's item for another's") {
  Watch watch;
  for (std::uint16_t slot : {4, 5}) watch.runs[slot] = {1};
  std::atomic<bool> over{false};
  std::jthread worker([&] {
    // Bodies of run 4 seem to have begun long ago, those of run 5 begin now.
    Heartbeat& heart = watch.hearts[0];
    for (std::uint64_t turn = 0; turn < 200'000; ++turn) {
      P::system(heart.item).store(Item{1, 5, false}.pack(), Order::release);
      P::system(heart.started_ns).store(kWatchStart * 100 + turn, Order::release);
      end_body<P>(heart);
      P::system(heart.item).store(Item{0, 4, false}.pack(), Order::release);
      P::system(heart.started_ns).store(kWatchStart - turn, Order::release);
      end_body<P>(heart);
    }
    over = true;
  });
  std::uint32_t wrong = 0;
  watch.now = kWatchStart * 50;  // between the two, however many looks there are
  while (!over) {
    Options options;
    options.stall_limit = std::chrono::milliseconds(0);
    for (const Stall& stall : Watchdog(watch.dev, options).new_stalls([&](auto slot) { return watch.runs[slot]; }, watch.now))
      wrong += stall.item.run != 4;
  }
  CHECK(wrong == 0);
}
