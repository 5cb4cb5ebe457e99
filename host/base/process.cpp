#include "process.hpp"

#include <pthread.h>

#include <atomic>

namespace flywheel::detail {

namespace {
std::atomic<int> forks{0};  // relaxed everywhere: it is only written in a child of fork() while the child has one thread

void count_fork() { forks.fetch_add(1, std::memory_order_relaxed); }
}  // namespace

int this_process() {
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, count_fork);
  return forks.load(std::memory_order_relaxed);
}

}  // namespace flywheel::detail
