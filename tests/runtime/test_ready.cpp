// Ready tasks: to idle workers first, then to the queue of their priority.
#include "runtime/ready.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "support/seed.hpp"
#include "support/thread_warp.hpp"
#include "support/world_fixture.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
using P = CpuPlatform;

std::vector<std::uint64_t> drain(const World& world, std::uint32_t priority) {
  std::vector<std::uint64_t> items;
  std::uint64_t item = 0;
  Patience patience;
  const Queue<P> queue = Wires<P>{world}.ready(priority);
  while (queue.size_hint() && queue.pop(1, item, patience.wait())) items.push_back(item);
  return items;
}

/// A warp of threads with a desk beside each mailbox, in plain memory: whoever delivers leaves a mark there. The worker
/// cleared it before it enrolled; nothing but the claim's acquire, passed on to the delivering lane, orders the two.
struct DeskWarp : ThreadWarp<4> {
  static inline Mailbox* mailboxes = nullptr;
  static inline std::vector<std::uint64_t> desks;

  template <class T>
  static void publish(T& word, T value) {
    const auto* mailbox = reinterpret_cast<Mailbox*>(&word);
    if (mailbox >= mailboxes && mailbox < mailboxes + desks.size())
      desks[static_cast<std::size_t>(mailbox - mailboxes)] = static_cast<std::uint64_t>(value) + 1;
    ThreadWarp<4>::publish(word, value);
  }
};

/// Four workers sit down and take items; one warp publishes batches of them to mailboxes and queue.
struct Handout {
  HandWorld hand;
  std::uint32_t total;
  std::vector<std::uint32_t> inputs, taken;
  std::atomic<std::uint32_t> done{0}, wrong{0}, mailed{0};

  static WorldShape shape() {
    WorldShape four;
    four.workers = 4;
    return four;
  }
  explicit Handout(std::uint32_t items) : hand(shape()), total(items), inputs(items), taken(items) {
    DeskWarp::mailboxes = hand.world.mailboxes;
    DeskWarp::desks.assign(4, 0);
  }
  bool over() { return done.load(std::memory_order_relaxed) >= total || wrong.load(std::memory_order_relaxed); }

  void publish_all(std::uint64_t seed, bool by_lanes) {
    Random random(seed);
    const Ready<DeskWarp> ready(hand.world, 0);
    for (std::uint32_t first = 0; first < total && !DeskWarp::ballot(over());) {
      const std::uint32_t n = std::min(pick(random, 1, 4), total - first);
      for (std::uint32_t i = 0; DeskWarp::lane() == 0 && i < n; ++i) inputs[first + i] = first + i + 1;
      DeskWarp::converge();
      if (by_lanes) ready.publish_lanes(DeskWarp::lane() < n, first + DeskWarp::lane(), DeskWarp::lane() % 2, 0);
      else ready.publish(n, 1, [&](std::uint32_t i) { return first + i; });
      first += n;
      if (pick(random, 0, 3) == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));  // let workers idle
    }
  }

  void work(std::uint32_t worker) {
    const Wires<P> wires{hand.world};
    const Seat<P> seat{wires.idle(), worker, nullptr};
    const auto peek = [&] { return P::device(seat.inbox()).load(Order::acquire); };
    while (!over()) {
      DeskWarp::desks[worker] = 0;
      seat.enroll();
      for (std::uint32_t spins = 0; peek() == kEmptyMailbox; ++spins) {
        if ((over() || spins > 50) && seat.withdraw()) break;
        P::pause(spins + 64);  // give way: there are more threads than processors
      }
      if (peek() != kEmptyMailbox) take_mail(seat, peek());
      for (const std::uint32_t level : {0u, 1u}) take_queued(wires, level, worker);
    }
  }
  void take_mail(const Seat<P>& seat, std::uint64_t item) {
    if (DeskWarp::desks[seat.worker] != item + 1) ++wrong;
    seat.empty();
    ++mailed;
    take(item);
  }
  void take_queued(const Wires<P>& wires, std::uint32_t level, std::uint32_t worker) {
    std::uint64_t item = 0;
    if (wires.ready(level).size_hint() && wires.ready(level).pop(1, item, wires.wait(worker))) take(item);
  }
  void take(std::uint64_t item) {
    if (item >= total || inputs[item] != item + 1) return void(++wrong);
    ++taken[item];
    done.fetch_add(1, std::memory_order_relaxed);
  }

  void run(std::uint64_t seed, bool by_lanes) {
    Warp<4> warp;
    run_together(8, [&](std::uint32_t i) {
      if (i < 4) return work(i);
      DeskWarp::join(warp, i - 4);
      publish_all(seed, by_lanes);
    });
    CHECK(wrong == 0);
    CHECK(std::count(taken.begin(), taken.end(), 1u) == std::ptrdiff_t{total});
    CHECK(mailed > 0);
  }
};
}  // namespace

TEST_CASE("with nobody idle, tasks go to the queue of their priority in order") {
  HandWorld hand;
  const Ready<P> ready(hand.world, 0);
  for (std::uint32_t level = 0; level < kPriorities; ++level)
    CHECK(ready.publish(3, level, [&](std::uint32_t i) { return 10 * level + i; }));
  for (std::uint64_t level = 0; level < kPriorities; ++level)
    CHECK(drain(hand.world, static_cast<std::uint32_t>(level)) == std::vector<std::uint64_t>{10 * level, 10 * level + 1, 10 * level + 2});
}

TEST_CASE("idle workers are served first, the rest is queued") {
  HandWorld hand;
  const IdleSet<P> idle = Wires<P>{hand.world}.idle();
  idle.enroll(0);
  idle.enroll(2);
  CHECK(Ready<P>(hand.world, 1).publish(5, 2, [](std::uint32_t i) { return 20 + i; }));
  CHECK(hand.world.mailboxes[0].value == 20);
  CHECK(hand.world.mailboxes[1].value == kEmptyMailbox);
  CHECK(hand.world.mailboxes[2].value == 21);
  CHECK(drain(hand.world, 2) == std::vector<std::uint64_t>{22, 23, 24});
}

TEST_CASE("a stale hint about idle workers costs nothing but a look") {
  HandWorld hand;
  CHECK(Ready<P>(hand.world, 1).publish_lanes(true, 7, 1, 0b101));
  CHECK(drain(hand.world, 1) == std::vector<std::uint64_t>{7});
  CHECK(hand.world.control->idle_bits[0] == 0);
}

TEST_CASE("a task's own priority wins over its run's unless it inherits") {
  CHECK(level_of(static_cast<std::uint32_t>(Priority::inherit), 2) == 2);
  for (std::uint32_t own = 0; own < kPriorities; ++own) CHECK(level_of(own, 1) == own);
}

TEST_CASE("a batch larger than one lot of tickets arrives whole") {
  WorldShape shape;
  shape.queue_capacity = 4096;
  HandWorld hand(shape);
  const std::uint32_t n = 2 * kPublishBatch + 10;
  CHECK(Ready<P>(hand.world, 0).publish(n, 1, [](std::uint32_t i) { return i; }));
  std::vector<std::uint64_t> expected(n);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(drain(hand.world, 1) == expected);
}

TEST_CASE("a warp hands tasks to idle workers and queue: each reaches one worker, with its input") {
  FLYWHEEL_TEST_SEED(seed);
  Handout(300).run(seed, false);
}

TEST_CASE("lanes that bring tasks of several priorities publish them all") {
  FLYWHEEL_TEST_SEED(seed);
  Handout(300).run(seed, true);
}
