// Ready tasks: to idle workers first, then to the queue of their priority.
#include "runtime/ready/ready.hpp"
#include "support/internals.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "support/device_state_fixture.hpp"
#include "support/seed.hpp"
#include "support/thread_warp.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using P = CpuPlatform;

std::vector<std::uint64_t> drain(const DeviceState& dev, std::uint32_t priority) {
  std::vector<std::uint64_t> items;
  std::uint64_t item = 0;
  Limit limit;
  const Queue<P> queue = Views<P>{dev}.ready(priority);
  while (queue.size_hint() && queue.pop(1, &item, limit.wait())) items.push_back(item);
  return items;
}

/// Four workers become idle and take items; two publishers send batches of them to mailboxes and queue, or to a
/// worker claimed in advance.
struct Handout {
  static constexpr std::uint32_t kWorkers = 4, kPublishers = 2;
  TestDeviceState device;
  std::uint32_t total;
  std::vector<std::uint32_t> inputs, taken;
  std::atomic<std::uint32_t> next{0}, done{0}, wrong{0}, mailed{0};
  Deadline deadline;

  static DeviceStateShape shape() {
    DeviceStateShape four;
    four.workers = kWorkers;
    return four;
  }
  explicit Handout(std::uint32_t items) : device(shape()), total(items), inputs(items), taken(items) {}
  bool over() {
    return done.load(std::memory_order_relaxed) >= total || wrong.load(std::memory_order_relaxed) || deadline.passed();
  }

  void publish_all(std::uint32_t id, std::uint64_t seed) {
    Random random(seed);
    const Ready<P> ready(device.dev, id);
    for (std::uint32_t first = 0; first < total && !over();) {
      const ClaimedWorker claimed = pick(random, 0, 1) ? ready.claim_planned(ready.plan_claim()) : ClaimedWorker{};
      const std::uint32_t n = pick(random, 0, 4);
      first = next.fetch_add(n, std::memory_order_relaxed);
      const std::uint32_t end = std::min(first + n, total);
      for (std::uint32_t i = first; i < end; ++i) inputs[i] = i + 1;
      if (first < end) publish(ready, claimed, first, end - first, pick(random, 0, 1));
      else if (claimed.taken()) ready.release_claimed(claimed);
      if (pick(random, 0, 3) == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));  // let workers idle
    }
  }
  void publish(const Ready<P>& ready, ClaimedWorker claimed, std::uint32_t first, std::uint32_t n, std::uint32_t level) {
    if (claimed.taken()) {
      ready.deliver_to_claimed(claimed, first);
      ++first, --n;
    }
    if (!ready.publish(n, level, [&](std::uint32_t i) { return first + i; })) ++wrong;
  }

  void work(std::uint32_t worker) {
    const Views<P> views{device.dev};
    const IdleSlot<P> idle_slot{views.idle(), worker, nullptr};
    while (!over()) {
      idle_slot.enroll();
      for (std::uint32_t spins = 0; idle_slot.peek(1) == kEmptyMailbox; ++spins) {
        if ((over() || spins > 50) && idle_slot.withdraw()) break;
        P::pause(spins + 64);  // give way: there are more threads than processors
      }
      if (idle_slot.peek(1) != kEmptyMailbox) take_mail(idle_slot);
      for (const std::uint32_t level : {0u, 1u}) take_queued(views, level, worker);
    }
  }
  void take_mail(const IdleSlot<P>& idle_slot) {
    const std::uint64_t item = idle_slot.peek(1);
    idle_slot.empty();
    ++mailed;
    take(item);
  }
  void take_queued(const Views<P>& views, std::uint32_t level, std::uint32_t worker) {
    std::uint64_t items[3];
    if (!views.ready(level).size_hint()) return;
    const std::uint32_t got = views.ready(level).pop(3, items, views.wait(worker));
    for (std::uint32_t i = 0; i < got; ++i) take(items[i]);
  }
  void take(std::uint64_t item) {
    if (item >= total || inputs[item] != item + 1) return void(++wrong);
    ++taken[item];
    done.fetch_add(1, std::memory_order_relaxed);
  }

  void run(std::uint64_t seed) {
    run_together(kWorkers + kPublishers, [&](std::uint32_t i) {
      if (i < kWorkers) work(i);
      else publish_all(i, seed + i);
    });
    CHECK(wrong == 0);
    CHECK(std::count(taken.begin(), taken.end(), 1u) == std::ptrdiff_t{total});
    CHECK(mailed > 0);
  }
};
}  // namespace

TEST_CASE("with no worker idle, tasks go to the queue of their priority in order") {
  TestDeviceState device;
  const Ready<P> ready(device.dev, 0);
  for (std::uint32_t level = 0; level < kPriorities; ++level)
    CHECK(ready.publish(3, level, [&](std::uint32_t i) { return 10 * level + i; }));
  for (std::uint64_t level = 0; level < kPriorities; ++level)
    CHECK(drain(device.dev, static_cast<std::uint32_t>(level)) ==
          std::vector<std::uint64_t>{10 * level, 10 * level + 1, 10 * level + 2});
}

TEST_CASE("idle workers are served first, the rest is queued") {
  TestDeviceState device;
  const IdleSet<P> idle = Views<P>{device.dev}.idle();
  idle.enroll(0);
  idle.enroll(2);
  CHECK(Ready<P>(device.dev, 0).publish(5, 2, [](std::uint32_t i) { return 20 + i; }));
  CHECK(device.dev.mailboxes[0].value == 20);
  CHECK(device.dev.mailboxes[1].value == kEmptyMailbox);
  CHECK(device.dev.mailboxes[2].value == 21);
  CHECK(drain(device.dev, 2) == std::vector<std::uint64_t>{22, 23, 24});
}

TEST_CASE("idle workers are found wherever their bits are, and wherever the claimer begins to look") {
  DeviceStateShape shape;
  shape.workers = 150;  // three words of bits
  for (const std::uint32_t publisher : {0u, 70u, 140u}) {
    TestDeviceState device(shape);
    const std::uint32_t all[] = {3, 80, 149};
    for (const std::uint32_t worker : all) Views<P>{device.dev}.idle().enroll(worker);
    CHECK(Ready<P>(device.dev, publisher).publish(3, 1, [](std::uint32_t i) { return i; }));
    for (const std::uint32_t worker : all) CHECK(device.dev.mailboxes[worker].value < 3);
    CHECK(drain(device.dev, 1).empty());
  }
}

TEST_CASE("a worker claimed in advance gets the item, or its place back") {
  TestDeviceState device;
  const Ready<P> ready(device.dev, 1);
  CHECK(ready.plan_claim().wanted == 0);
  CHECK_FALSE(ready.claim_planned(ClaimedWorker{0, 0b100, 2}).taken());  // it is not there any more
  Views<P>{device.dev}.idle().enroll(2);
  CHECK(ready.plan_claim().wanted == 0b100);
  const ClaimedWorker claim = ready.claim_planned(ready.plan_claim());
  CHECK(claim.taken());
  CHECK(claim.worker == 2);
  CHECK(ready.plan_claim_after(claim).wanted == 0);  // it is the only one
  CHECK(ready.plan_claim().wanted == 0);
  ready.release_claimed(claim);
  REQUIRE(ready.claim_planned(ClaimedWorker{0, 0b100, 2}).taken());
  ready.deliver_to_claimed(claim, 77);
  CHECK(device.dev.mailboxes[2].value == 77);
  CHECK(device.dev.control->idle_bits[0] == 0);
}

TEST_CASE("a task's own priority wins over its run's unless it inherits") {
  CHECK(level_of(static_cast<std::uint32_t>(Priority::inherit), 2) == 2);
  for (std::uint32_t own = 0; own < kPriorities; ++own) CHECK(level_of(own, 1) == own);
}

TEST_CASE("a batch larger than one lot of tickets arrives whole") {
  DeviceStateShape shape;
  shape.queue_capacity = 4096;
  TestDeviceState device(shape);
  const std::uint32_t n = 2 * kPublishBatch + 10;
  CHECK(Ready<P>(device.dev, 0).publish(n, 1, [](std::uint32_t i) { return i; }));
  std::vector<std::uint64_t> expected(n);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(drain(device.dev, 1) == expected);
}

TEMPLATE_TEST_CASE_SIG("the lanes of a warp deliver together: to each idle worker one item at most, the rest is queued", "",
                       ((std::uint32_t kLanes), kLanes), 1, 8, 32) {
  using W = ThreadWarp<kLanes>;
  FLYWHEEL_TEST_SEED(seed);
  Random random(seed);
  for (int round = 0; round < 40; ++round) {
    DeviceStateShape shape;
    shape.workers = pick(random, 1, 150);
    TestDeviceState device(shape);
    const IdleSet<P> idle = Views<P>{device.dev}.idle();
    const std::uint32_t one_in = pick(random, 1, 20), n = pick(random, 1, 32), late_one_in = pick(random, 1, 4);
    std::vector<std::uint32_t> late;
    for (std::uint32_t worker = 0; worker < shape.workers; ++worker)
      if (pick(random, 1, one_in) == 1) idle.enroll(worker);
    std::vector<std::uint64_t> items(n);
    std::iota(items.begin(), items.end(), 100);
    const std::uint32_t high = pick(random, 0, n), normal = pick(random, 0, n - high),
                        counts[] = {high, normal, n - high - normal};
    WarpOfThreads<kLanes> warp;
    run_together(kLanes, [&](std::uint32_t lane) {
      W::join(warp, lane);
      LaneDelivery<W> delivery(device.dev);
      W::converge();
      // Some of those that were seen are gone when the lanes claim.
      for (std::uint32_t worker = 0; lane == 0 && worker < shape.workers; worker += late_one_in)
        if (idle.withdraw(worker)) late.push_back(worker);
      W::converge();
      delivery.claim(n);
      delivery.publish([&](std::uint32_t level) { return counts[level]; }, items.data());
    });
    std::vector<std::uint64_t> got;
    for (std::uint32_t level = 0, first = 100; level < kPriorities; first += counts[level++])
      for (const std::uint64_t item : drain(device.dev, level)) {
        CHECK((item >= first && item < first + counts[level]));
        got.push_back(item);
      }
    std::uint32_t delivered = 0;
    for (std::uint32_t worker = 0; worker < shape.workers; ++worker) {
      if (device.dev.mailboxes[worker].value == kEmptyMailbox) continue;
      got.push_back(device.dev.mailboxes[worker].value);
      ++delivered;
      CHECK(std::count(late.begin(), late.end(), worker) == 0);
      CHECK((idle.seen(worker / 64) >> worker % 64 & 1) == 0);
    }
    std::uint32_t left = 0;
    for (std::uint32_t word = 0; word < idle.words(); ++word) left += count_bits(idle.seen(word));
    CHECK((delivered == n || left == 0));  // an idle worker stays so only if there is nothing for it
    std::sort(got.begin(), got.end());
    CHECK(got == items);
  }
}

TEST_CASE("tasks go to idle workers, claimed ones and the queue: each reaches one worker, with its input") {
  FLYWHEEL_TEST_SEED(seed);
  Handout(10000).run(seed);
}
