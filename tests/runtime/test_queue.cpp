// The ready queue: nothing lost, nothing twice, in order for one producer, and what a producer wrote comes
// along.
#include "runtime/base/queue.hpp"
#include "support/internals.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <atomic>
#include <deque>

#include "support/queue_memory.hpp"
#include "support/seed.hpp"
#include "support/threads.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

using P = CpuPlatform;

bool push_one(Queue<P> queue, std::uint64_t item, const WaitContext& wait) {
  return queue.push(
      1, [&](std::uint32_t) { return item; }, wait);
}

/// Items 0..total-1 go through the queue once; each carries a plain payload that only the queue's orders
/// protect.
struct Crowd {
  QueueMemory<P> memory;
  std::uint32_t total;
  std::uint32_t most_at_once;
  std::vector<std::uint32_t> payload, taken;
  std::atomic<std::uint32_t> next{0}, done{0}, wrong{0};
  Limit limit;
  Deadline deadline;

  Crowd(std::uint32_t capacity, std::uint64_t first_ticket, std::uint32_t items)
      : memory(capacity, first_ticket),
        total(items),
        most_at_once(capacity),
        payload(items),
        taken(items) {}

  void produce(std::uint64_t seed) {
    Random random(seed);
    for (;;) {
      const std::uint32_t n = pick(random, 1, most_at_once < 5 ? most_at_once : 5);
      const std::uint32_t first = next.fetch_add(n, std::memory_order_relaxed);
      if (first >= total) return;
      const std::uint32_t here = first + n > total ? total - first : n;
      for (std::uint32_t i = first; i < first + here; ++i) payload[i] = i * 7 + 1;
      if (!memory.queue().push(
              here, [&](std::uint32_t i) { return first + i; }, limit.wait()))
        ++wrong;
    }
  }

  void consume(std::uint64_t seed) {
    Random random(seed);
    for (std::uint32_t spins = 0; done.load(std::memory_order_relaxed) < total && !deadline.passed(); ++spins) {
      std::uint64_t items[4];
      const std::uint32_t got = memory.queue().size_hint() ? memory.queue().pop(pick(random, 1, 4), items, limit.wait()) : 0;
      for (std::uint32_t i = 0; i < got; ++i) use(items[i]);
      if (!got) P::pause(spins % 512);
    }
  }

  void use(std::uint64_t item) {
    if (payload[item] != item * 7 + 1) ++wrong;
    ++taken[item];
    done.fetch_add(1, std::memory_order_relaxed);
  }

  void run(std::uint32_t producers, std::uint32_t consumers, std::uint64_t seed) {
    run_together(producers + consumers, [&](std::uint32_t i) { i < producers ? produce(seed + i) : consume(seed + i); });
  }

  void check() {
    CHECK(wrong == 0);
    CHECK(done == total);
    CHECK(std::count(taken.begin(), taken.end(), 1u) == std::ptrdiff_t{total});
    CHECK(memory.count == 0);
    CHECK(memory.words.head.value == memory.words.tail.value);
  }
};

/// Random pushes and pops of one thread, against the standard's own queue.
void behaves_like_a_deque() {
  const auto capacity = 1u << *rc::gen::inRange(0, 5);
  const auto first_ticket =
      *rc::gen::element<std::uint64_t>(0, 65535ull * capacity - 1, 65536ull * capacity - 2, (1ull << 40) + 3);
  QueueMemory<P> memory(capacity, first_ticket);
  std::deque<std::uint64_t> model;
  Limit limit;
  for (const int step : *rc::gen::container<std::vector<int>>(rc::gen::inRange(-3, 5))) {
    const auto room = capacity - static_cast<std::uint32_t>(model.size());
    if (step > 0 && room) {
      const auto items = *rc::gen::container<std::vector<std::uint64_t>>(std::min<std::uint32_t>(room, step),
                                                                         rc::gen::inRange<std::uint64_t>(0, kNoItem));
      const auto n = static_cast<std::uint32_t>(items.size());
      RC_ASSERT(memory.queue().push(
          n, [&](std::uint32_t i) { return items[i]; }, limit.wait()));
      model.insert(model.end(), items.begin(), items.end());
    } else if (step <= 0) {
      std::uint64_t items[4];
      const auto want = static_cast<std::uint32_t>(1 - step);
      const std::uint32_t got = memory.queue().pop(want, items, limit.wait());
      RC_ASSERT(got == std::min<std::size_t>(want, model.size()));
      RC_ASSERT(std::equal(items, items + got, model.begin()));
      model.erase(model.begin(), model.begin() + got);
    }
    RC_ASSERT(memory.queue().size_hint() == model.size());
  }
}

}  // namespace

TEST_CASE("a queue of one thread behaves like a deque, across laps and their wrap") {
  CHECK(rc::check("queue and deque agree", behaves_like_a_deque));
}

TEST_CASE("many producers and consumers lose nothing and take nothing twice") {
  FLYWHEEL_TEST_SEED(seed);
  for (const std::uint32_t capacity : {1u, 2u, 8u, 64u}) {
    INFO("capacity " << capacity);
    Crowd crowd(capacity, 0, capacity < 8 ? 2000 * capacity : 20000);  // each lap of a short queue is a switch of threads
    crowd.run(3, 3, seed);
    crowd.check();
  }
}

TEST_CASE("one producer feeds many, many feed one") {
  FLYWHEEL_TEST_SEED(seed);
  for (const std::uint32_t producers : {1u, 4u}) {
    Crowd crowd(4, 0, 8000);
    crowd.run(producers, 5 - producers, seed);
    crowd.check();
  }
}

TEST_CASE("the 16-bit lap wraps while threads push and pop") {
  FLYWHEEL_TEST_SEED(seed);
  Crowd crowd(2, 65530ull * 2, 4000);
  crowd.run(2, 2, seed);
  crowd.check();
}

TEST_CASE("a full queue holds the producer back until a slot is free") {
  QueueMemory<P> memory(4);
  Limit limit;
  for (std::uint64_t i = 0; i < 4; ++i) REQUIRE(push_one(memory.queue(), i, limit.wait()));
  std::atomic<bool> pushed{false};
  std::jthread producer([&] { pushed = push_one(memory.queue(), 4, limit.wait()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(pushed);
  std::uint64_t item = 99;
  for (std::uint64_t i = 0; i < 5; ++i) {
    REQUIRE(wait_for([&] { return memory.queue().pop(1, &item, limit.wait()) == 1; }));
    CHECK(item == i);
  }
  producer.join();
  CHECK(pushed);
}

TEST_CASE("an abort ends a producer that waits for room") {
  QueueMemory<P> memory(1);
  Limit limit;
  REQUIRE(push_one(memory.queue(), 1, limit.wait()));
  bool pushed = true;
  std::jthread producer([&] { pushed = push_one(memory.queue(), 2, limit.wait()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  limit.give_up();
  producer.join();
  CHECK_FALSE(pushed);
  CHECK(limit.report.reason == static_cast<std::uint32_t>(WaitReason::none));
}

TEST_CASE("a consumer whose producer never publishes reports it and gives up") {
  QueueMemory<P> memory(2);
  memory.count = 1;  // a token, as if a producer had died between its ticket and its item
  Limit limit;
  limit.budget_ns = 1'000'000;
  std::uint64_t item = 0;
  CHECK(memory.queue().pop(1, &item, limit.wait()) == 0);
  CHECK(limit.gave_up());
  CHECK(limit.report.reason == static_cast<std::uint32_t>(WaitReason::queue_slot_full));
  CHECK(limit.report.address == reinterpret_cast<std::uint64_t>(memory.slots.data()));
}

TEST_CASE("a queue can start filled, and remembers its peak") {
  QueueMemory<P> memory(8);
  reset_queue(memory.count, memory.words, memory.slots.data(), 8, 5);
  Limit limit;
  std::uint64_t item = 99;
  for (std::uint64_t i = 0; i < 5; ++i) {
    REQUIRE(memory.queue().pop(1, &item, limit.wait()) == 1);
    CHECK(item == i);
  }
  CHECK(memory.queue().pop(1, &item, limit.wait()) == 0);
  for (std::uint64_t i = 0; i < 6; ++i) REQUIRE(push_one(memory.queue(), i, limit.wait()));
  CHECK(memory.words.peak.value == 6);
  CHECK(memory.queue().size_hint() == 6);
}
