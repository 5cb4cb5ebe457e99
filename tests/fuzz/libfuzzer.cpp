// The entries that libFuzzer calls, and a limit to what one execution may compute. libFuzzer's own limit is
// of the clock, of which a busy machine gives a process only a part.
#include <sys/time.h>
#include <unistd.h>
#include <csignal>
#include <cstdint>

#include <atomic>

#include "tests/fuzz/fuzz.hpp"

namespace {

constexpr suseconds_t kTick = 250'000;  // us of this process's computing
constexpr int kMostTicks = 5;           // so that an execution of a second passes

// Only the signal's handler, which runs in the same thread, reads what the execution writes: nothing to
// order.
std::atomic<bool> running{false};
std::atomic<int> ticks{0};

void tick(int) {
  if (!running.load(std::memory_order_relaxed)) return;
  if (ticks.fetch_add(1, std::memory_order_relaxed) + 1 < kMostTicks) return;
  constexpr std::string_view kMessage = "fuzz: does not hold: an execution computes for a second at most\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kMessage.data(), kMessage.size());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  struct sigaction action {};
  action.sa_handler = tick;
  action.sa_flags = SA_RESTART;
  flywheel::fuzz::expect(sigaction(SIGPROF, &action, nullptr) == 0, "the limit's signal can be handled");
  const itimerval every{{0, kTick}, {0, kTick}};
  flywheel::fuzz::expect(setitimer(ITIMER_PROF, &every, nullptr) == 0, "the limit's timer can be set");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ticks.store(0, std::memory_order_relaxed);
  running.store(true, std::memory_order_relaxed);
  flywheel::fuzz::run({reinterpret_cast<const char*>(data), size});
  running.store(false, std::memory_order_relaxed);
  return 0;
}
