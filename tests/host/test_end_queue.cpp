#include "host/collect/end_queue.hpp"

#include <array>
#include <thread>

#include "host/submit/run_record.hpp"
#include "support/expect.hpp"
#include "support/internals.hpp"

using namespace flywheel;
using namespace flywheel::testing;
using namespace std::chrono_literals;

namespace {
constexpr auto kNoLimit = EndQueue::Clock::time_point::max();

/// As the dispatcher does: the run ends, unless it has.
bool end_it(const EndQueue::RunPtr& run) {
  run->end_early(Status::aborted, "of a test");
  return true;
}

struct Runs {
  Runs() {
    for (auto& run : all) {
      run = std::make_shared<RunRecord>(std::make_shared<LoadedGraph>(nullptr));
      run->generation = 5;
    }
  }
  void listen(std::size_t i, std::uint64_t tag) {
    all[i]->add_listener(Listener(queue, tag, nullptr));
    RunRecord::let_listen(all[i]);
  }
  void end_on_device(std::size_t i, std::uint32_t generation) {
    // Release: as the device's store in end_run().
    CpuPlatform::system(words[i]).store(std::uint64_t{generation} << 32, Order::release);
  }
  std::uint64_t next_tag() {
    const auto ended = queue->next(kNoLimit, EndQueue::WhenEmpty::give_up);
    return ended ? ended->tag : 0;
  }

  std::shared_ptr<EndQueue> queue = std::make_shared<EndQueue>(end_it);
  std::array<EndQueue::RunPtr, 3> all;
  std::array<std::uint64_t, 3> words{};
};
}  // namespace

TEST_CASE("an end shows in the slot's word, and comes out in the order in which it is found") {
  Runs runs;
  for (std::size_t i = 0; i < 3; ++i) {
    runs.listen(i, i + 1);
    runs.all[i]->announce_flight(runs.words[i]);
  }
  CHECK_FALSE(runs.queue->try_next());
  runs.end_on_device(1, 4);  // of the slot's run before
  CHECK_FALSE(runs.queue->try_next());
  runs.end_on_device(2, 5);
  CHECK(runs.next_tag() == 3);
  runs.end_on_device(0, 5);
  CHECK(runs.next_tag() == 1);
  runs.end_on_device(1, 5);
  CHECK(runs.next_tag() == 2);
  CHECK(runs.next_tag() == 0);
}

TEST_CASE("a run that ends without the device comes out once, whatever its word says later") {
  Runs runs;
  runs.listen(0, 7);
  runs.listen(1, 8);
  runs.all[0]->announce_flight(runs.words[0]);
  end_it(runs.all[0]);
  end_it(runs.all[1]);  // it was not in flight
  CHECK(runs.next_tag() == 7);
  runs.end_on_device(0, 9);  // the slot has had other runs since
  CHECK(runs.next_tag() == 8);
  CHECK(runs.queue->size() == 0);
}

TEST_CASE("once all ends are taken the queue keeps no run") {
  Runs runs;
  runs.listen(0, 7);
  runs.all[0]->announce_flight(runs.words[0]);
  end_it(runs.all[0]);  // collected by another thread: the queue still watches the word
  const std::weak_ptr<RunRecord> run = runs.all[0];
  runs.all[0].reset();
  CHECK(runs.next_tag() == 7);
  CHECK(run.expired());
}

TEST_CASE("a run that is never submitted is not waited for") {
  Runs runs;
  runs.listen(0, 7);
  CHECK(runs.queue->size() == 1);
  runs.all[0].reset();
  CHECK(runs.queue->size() == 0);
  CHECK(runs.next_tag() == 0);
}

TEST_CASE("an empty queue sleeps until a run is expected, the time is over, or it is closed") {
  Runs runs;
  const auto begin = EndQueue::Clock::now();
  CHECK_FALSE(runs.queue->next(begin + 5ms, EndQueue::WhenEmpty::wait));
  CHECK(EndQueue::Clock::now() >= begin + 5ms);
  std::thread ends([&] {
    std::this_thread::sleep_for(5ms);
    runs.listen(0, 7);
    end_it(runs.all[0]);
  });
  CHECK(runs.queue->next(kNoLimit, EndQueue::WhenEmpty::wait)->tag == 7);
  ends.join();
  std::thread closes([&] {
    std::this_thread::sleep_for(5ms);
    runs.queue->close();
  });
  CHECK_FALSE(runs.queue->next(kNoLimit, EndQueue::WhenEmpty::wait));
  closes.join();
  runs.listen(1, 8);
  end_it(runs.all[1]);
  CHECK_FALSE(runs.queue->try_next());
}
