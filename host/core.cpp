#include "host/core.hpp"

#include <pthread.h>

#include <atomic>
#include <exception>

#include "host/deferred_release.hpp"
#include "host/error.hpp"
#include "host/log.hpp"

namespace flywheel {

namespace {
void take_apart(Core* core) noexcept {
  if (!core->is_ours()) return;
  if (!DeferredRelease::here()) {
    delete core;
    return;
  }
  try {
    std::thread([core] { delete core; }).detach();
  } catch (const std::exception& error) {
    log::error(std::string("a runtime's memory stays taken until the process ends: ") + error.what());
  }
}

std::atomic<int> forks{0};  // relaxed: it changes in a child only, while that has one thread

void count_fork() { forks.fetch_add(1, std::memory_order_relaxed); }
}  // namespace

int Core::this_process() {
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, count_fork);
  return forks.load(std::memory_order_relaxed);
}

void Core::require_ours() const {
  if (!is_ours())
    throw UsageError("a child of fork() has neither the threads nor the device of its parent's runtime: start a runtime in the "
                     "child");
}

std::shared_ptr<Core> make_core(const KernelEntry& entry, const Options& options, std::unique_ptr<Engine> engine) {
  return {new Core(entry, options, std::move(engine)), take_apart};
}

}  // namespace flywheel
