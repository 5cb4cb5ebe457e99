// Four ways to collect what many runs bring: a completion queue, the first of several runs, a callback, and co_await.
// The queue hands out finished runs in the order in which they end, with the tag of each. The program collects the same
// runs a second time by asking all that are outstanding, in turns with the queue, and prints what the queue buys.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <thread>
#include <vector>

namespace collect {

constexpr std::uint32_t kRequests = 3000;
constexpr int kRounds = 3;

struct Collatz {  // how many steps lead from n to 1: requests of very uneven length
  flywheel::Param<std::uint64_t> n;
  template <class Block>
  FLYWHEEL_TASK std::uint32_t operator()(Block& block) const {
    return steps(block.param(n));
  }
  FLYWHEEL_TASK static std::uint32_t steps(std::uint64_t n) {
    std::uint32_t count = 0;
    for (; n != 1; ++count) n = n % 2 ? 3 * n + 1 : n / 2;
    return count;
  }
};

struct Service {
  explicit Service(flywheel::Runtime& runtime) : rt(runtime) {
    flywheel::Graph g;
    n = g.param<std::uint64_t>(1);
    answer = g.add(Collatz{n});
    executable = rt.load(g);
  }
  template <class... Options>
  flywheel::Run ask(std::uint64_t number, const Options&... options) {
    return rt.submit(executable, set(n, number), options...);
  }

  flywheel::Runtime& rt;
  flywheel::Param<std::uint64_t> n{};
  flywheel::TaskRef<std::uint32_t> answer{};
  flywheel::Executable executable;
};

bool is_right(Service& service, std::uint64_t number, flywheel::Run& run) {
  return run.get(service.answer) == Collatz::steps(number);
}

// ---- a completion queue ----

std::uint32_t by_queue(Service& service) {
  flywheel::CompletionQueue queue;
  std::uint32_t right = 0;
  for (std::uint64_t i = 1; i <= kRequests; ++i) service.ask(i, notify(queue, i));
  while (auto finished = queue.next_finished()) right += is_right(service, finished->tag, finished->run);
  return right;
}

std::uint32_t by_asking_all(Service& service) {
  struct Outstanding {
    std::uint64_t number;
    flywheel::Run run;
  };
  std::vector<Outstanding> all;
  std::uint32_t right = 0;
  for (std::uint64_t i = 1; i <= kRequests; ++i) all.push_back({i, service.ask(i)});
  while (!all.empty())
    std::erase_if(all, [&](Outstanding& one) {
      if (!one.run.done()) return false;
      right += is_right(service, one.number, one.run);
      return true;
    });
  return right;
}

/// The time of a request, in us; 0 if an answer was wrong.
template <class Way>
double us_of_request(Service& service, Way way) {
  const auto begin = std::chrono::steady_clock::now();
  if (way(service) != kRequests) return 0;
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / kRequests;
}

// ---- a callback ----

bool by_callbacks(Service& service) {
  std::atomic<std::uint32_t> right{0}, called{0};
  for (std::uint64_t i = 1; i <= 100; ++i)
    service.ask(i).on_done([&, i](flywheel::Run& run) {
      right += is_right(service, i, run);
      ++called;
      called.notify_one();
    });
  for (std::uint32_t now = 0; (now = called) < 100;) called.wait(now);
  return right == 100;
}

// ---- a coroutine ----

struct Conversation {  // a coroutine that begins at once and that nobody waits for
  struct promise_type {
    Conversation get_return_object() const { return {}; }
    std::suspend_never initial_suspend() const { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const {}
    void unhandled_exception() const { std::terminate(); }
  };
};

/// Each question is the answer to the one before, until that is small.
Conversation converse(Service& service, std::uint64_t number, std::atomic<std::uint32_t>& last) {
  while (number > 10) {
    flywheel::Run run = co_await service.ask(number);
    number = run.get(service.answer);
  }
  last = static_cast<std::uint32_t>(number);
  last.notify_one();
}

bool by_coroutine(Service& service) {
  std::uint64_t wanted = 837'799;
  std::atomic<std::uint32_t> last{0};
  converse(service, wanted, last);
  last.wait(0);
  while (wanted > 10) wanted = Collatz::steps(wanted);
  return last == wanted;
}

// ---- the first of several, and all of them ----

bool by_waiting(Service& service) {
  std::vector<flywheel::Run> runs{service.ask(837'799), service.ask(2), service.ask(27)};
  const std::size_t first = flywheel::when_any(runs);
  flywheel::when_all(runs);
  return first < runs.size() && runs[first].done() && runs[2].get(service.answer) == 111;
}

}  // namespace collect

int main() {
  using namespace collect;
  flywheel::Runtime rt = flywheel::start<Collatz>();
  Service service(rt);
  double queue_us = 1e9, asking_us = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    queue_us = std::min(queue_us, us_of_request(service, by_queue));
    asking_us = std::min(asking_us, us_of_request(service, by_asking_all));
  }
  const bool right = queue_us > 0 && asking_us > 0 && by_callbacks(service) && by_coroutine(service) && by_waiting(service);
  std::printf("%s: %u requests at once: %.2f us each through a completion queue, %.2f by asking all outstanding: %.1fx\n",
              rt.device().c_str(), kRequests, queue_us, asking_us, asking_us / queue_us);
  return right ? 0 : 1;
}
