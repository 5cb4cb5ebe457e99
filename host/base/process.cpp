#include "process.hpp"

#include <pthread.h>

#include <atomic>

namespace flywheel::detail {

namespace {
std::atomic<int> forks{0};

// Relaxed: a child of fork() calls it while it has one thread, so no other thread reads the count at that time.
void count_fork() { forks.fetch_add(1, std::memory_order_relaxed); }
}  // namespace

int this_process() {
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, count_fork);
  return forks.load(std::memory_order_relaxed);  // relaxed: pairs with count_fork(), which no thread runs beside
}

}  // namespace flywheel::detail
