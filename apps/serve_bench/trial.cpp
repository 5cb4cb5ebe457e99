#include "apps/serve_bench/trial.hpp"

#include <unistd.h>

#include <atomic>
#include <cmath>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace serve {
namespace {

double resident_mib() {
  std::ifstream in("/proc/self/statm");
  double whole = 0, resident = 0;
  if (!(in >> whole >> resident))
    throw std::runtime_error("cannot read /proc/self/statm: mount /proc, this benchmark needs Linux");
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

/// Threads that compute until the end, one for each hardware thread.
class BusyCores {
 public:
  explicit BusyCores(bool wanted) {
    const unsigned count = wanted ? std::max(std::thread::hardware_concurrency(), 1u) : 0;
    for (unsigned i = 0; i < count; ++i) threads_.emplace_back([this, i] { compute(i); });
  }
  ~BusyCores() {
    stop_.store(true, std::memory_order_relaxed);
    for (std::thread& thread : threads_) thread.join();
  }
  BusyCores(const BusyCores&) = delete;
  BusyCores& operator=(const BusyCores&) = delete;

 private:
  void compute(std::uint64_t x) {
    // Relaxed: pairs with the store in the destructor; nothing else is read after it.
    while (!stop_.load(std::memory_order_relaxed))
      for (int i = 0; i < 1000; ++i) x = stir(x + 1);
    kept_.fetch_add(x, std::memory_order_relaxed);  // only so that the loop is not removed; pairs with nothing
  }

  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> kept_{0};
  std::vector<std::thread> threads_;
};

/// The threads of the clients.
class Crowd {
 public:
  Crowd(Service& service, const Workload& workload, const Load& load, std::uint32_t clients) : failures_(clients) {
    clients_.reserve(clients);
    for (std::uint32_t i = 0; i < clients; ++i) clients_.emplace_back(service.session(i), workload, load, i, clients);
  }
  void start() {
    const auto begin = Client::Clock::now() + std::chrono::milliseconds(5);
    running_.store(static_cast<std::uint32_t>(clients_.size()), std::memory_order_relaxed);  // the threads start after it
    for (std::size_t i = 0; i < clients_.size(); ++i) threads_.emplace_back([this, i, begin] { run(i, begin); });
  }
  /// Relaxed: pairs with the sub in run(); join() orders all else.
  bool running() const { return running_.load(std::memory_order_relaxed) != 0; }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    for (const std::exception_ptr& failure : failures_)
      if (failure) std::rethrow_exception(failure);
  }
  const std::vector<Client>& clients() const { return clients_; }

 private:
  void run(std::size_t i, Client::Clock::time_point begin) {
    try {
      clients_[i].run(begin);
    } catch (...) {
      failures_[i] = std::current_exception();
    }
    running_.fetch_sub(1, std::memory_order_relaxed);  // pairs with the load in running()
  }

  std::vector<Client> clients_;
  std::vector<std::exception_ptr> failures_;
  std::vector<std::thread> threads_;
  std::atomic<std::uint32_t> running_{0};
};

}  // namespace

double Trial::answered_per_second() const {
  const std::uint64_t by_half = high.answered_by_half + normal.answered_by_half;
  const std::uint64_t by_end = high.answered_by_end + normal.answered_by_end;
  return static_cast<double>(by_end - by_half) / (seconds / 2);
}

double Trial::backlog_at_half() const {
  return static_cast<double>(high.arrived_by_half + normal.arrived_by_half) -
         static_cast<double>(high.answered_by_half + normal.answered_by_half);
}

double Trial::backlog_at_end() const {
  return static_cast<double>(arrived()) - static_cast<double>(high.answered_by_end + normal.answered_by_end);
}

bool Trial::is_sustained() const {
  constexpr double kMostGrowth = 0.005;  // of the arrivals in the second half
  const double arrivals = static_cast<double>(arrived()) - static_cast<double>(high.arrived_by_half + normal.arrived_by_half);
  // The arrivals of a half have a standard deviation of the root of their number: so much comes and goes.
  return lost() == 0 && backlog_at_end() - backlog_at_half() <= kMostGrowth * arrivals + 3 * std::sqrt(arrivals);
}

Trial run_trial(Service& service, const Workload& workload, const Load& load, std::uint32_t clients, bool busy_cores) {
  Crowd crowd(service, workload, load, clients);
  const BusyCores busy(busy_cores);
  Trial trial{.high = {}, .normal = {}, .seconds = load.seconds, .memory = {}};
  trial.memory.before = trial.memory.most = resident_mib();
  crowd.start();
  for (; crowd.running(); std::this_thread::sleep_for(std::chrono::milliseconds(10)))
    trial.memory.most = std::max(trial.memory.most, resident_mib());
  crowd.join();
  trial.memory.after = resident_mib();
  for (const Client& client : crowd.clients()) {
    trial.high.merge(client.high());
    trial.normal.merge(client.normal());
  }
  return trial;
}

}  // namespace serve
