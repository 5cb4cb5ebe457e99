// Eight threads submit to one live kernel. Seven keep it busy with work of low priority; the eighth submits with a high
// one, which lets its tasks overtake all that wait.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <thread>
#include <vector>

namespace many_threads {

constexpr int kThreads = 8, kRuns = 20, kTasks = 40, kRounds = 5'000;

FLYWHEEL_TASK inline std::uint32_t grind(std::uint32_t x) {  // Marsaglia's xorshift, 2003
  for (int round = 0; round < kRounds; ++round) x ^= x << 13, x ^= x >> 17, x ^= x << 5;
  return x;
}

struct Grind {
  std::uint32_t seed;
  std::uint64_t* sum;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader())
      flywheel::AtomicRef<std::uint64_t, flywheel::Scope::device>(*sum).fetch_add(grind(seed), flywheel::Order::relaxed);
  }
};

struct Client {  // one thread's part
  double mean_us = 0;
  std::uint64_t expected = 0;

  void work(flywheel::Runtime& rt, std::uint64_t* sum, std::uint32_t seed, flywheel::Priority priority) {
    flywheel::Graph g;
    std::uint64_t each = 0;
    for (int i = 0; i < kTasks; ++i) {
      g.add(Grind{seed + i, sum});
      each += grind(seed + i);
    }
    const flywheel::Executable exec = rt.load(g);
    const auto begin = std::chrono::steady_clock::now();
    for (int r = 0; r < kRuns; ++r) {
      // submit() would wait for a place in line; this thread would rather do something else meanwhile.
      std::optional<flywheel::Run> run;
      while (!(run = rt.try_submit(exec, priority))) std::this_thread::yield();
      run->wait();
    }
    mean_us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / kRuns;
    expected = kRuns * each;
  }
};

}  // namespace many_threads

int main() {
  using namespace many_threads;
  flywheel::Runtime rt = flywheel::start<Grind>();
  const auto sums = rt.allocate<std::uint64_t>(kThreads);
  std::vector<Client> clients(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const auto priority = t == 0 ? flywheel::Priority::high : flywheel::Priority::low;
      clients[t].work(rt, sums.data() + t, 1 + t * kTasks, priority);
    });
  for (std::thread& thread : threads) thread.join();

  bool right = true;
  double patient_us = 0;
  const std::vector<std::uint64_t> found = sums.read();
  for (int t = 0; t < kThreads; ++t) {
    right &= found[t] == clients[t].expected;
    if (t) patient_us += clients[t].mean_us / (kThreads - 1);
  }
  const flywheel::Stats stats = rt.stats();
  std::printf("%d runs of %d tasks from %d threads on %s; kernel launches: %llu\n", kThreads * kRuns, kTasks, kThreads,
              stats.device.c_str(), static_cast<unsigned long long>(stats.launches));
  std::printf("from submit to done: %.0f us at high priority, %.0f us at low\n", clients[0].mean_us, patient_us);
  return right ? 0 : 1;
}
