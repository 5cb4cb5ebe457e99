// The platform policy: atomics of a CPU thread, and the warp of threads that stands in for a GPU's in other
// tests.
#include "runtime/base/platform.hpp"
#include "support/internals.hpp"

#include <atomic>

#include "catch.hpp"
#include "support/thread_warp.hpp"

using namespace flywheel;
using namespace flywheel::testing;

TEST_CASE("an atomic view does to the word what it says") {
  std::uint32_t word = 5;
  const auto view = CpuPlatform::device(word);
  CHECK(view.fetch_add(3, Order::acq_rel) == 5);
  CHECK(view.fetch_or(1, Order::release) == 8);
  CHECK(view.fetch_and(~8u, Order::acquire) == 9);
  CHECK(view.exchange(7, Order::relaxed) == 1);
  CHECK_FALSE(view.compare_exchange(1, 2, Order::relaxed));
  CHECK(view.compare_exchange(7, 2, Order::relaxed));
  view.store(4, Order::release);
  CHECK(view.load(Order::acquire) == 4);
  CHECK(word == 4);
}

TEST_CASE("words released after one fence bring along what was written before") {
  std::uint64_t words[2] = {}, payload = 0, got = 0;
  run_together(2, [&](std::uint32_t i) {
    if (i == 0) {
      payload = 42;
      CpuPlatform::release_fence();
      for (std::uint64_t& word : words) CpuPlatform::device(word).store(1, CpuPlatform::kAfterRelease);
    } else if (wait_for([&] { return CpuPlatform::device(words[1]).load(CpuPlatform::kBeforeAcquire) == 1; })) {
      CpuPlatform::acquire_fence();
      got = payload;
    }
  });
  CHECK(got == 42);
}

TEST_CASE("the clock of a CPU thread goes on") {
  const std::uint64_t before = CpuPlatform::now_ns();
  for (std::uint32_t spins = 0; spins < 600; ++spins) CpuPlatform::pause(spins);
  CHECK(CpuPlatform::now_ns() > before);
}

TEST_CASE("the lanes of a thread warp vote and meet") {
  using W = ThreadWarp<4>;
  std::atomic<std::uint32_t> wrong{0};
  std::uint32_t cells[2][4] = {};
  run_warps<4>(2, [&](std::uint32_t w) {
    for (std::uint32_t i = 0; i < 500; ++i) {
      const std::uint32_t source = (i + w) % 4;
      if (W::any(false) || !W::any(W::lane() == source)) ++wrong;
      cells[w][W::lane()] = i;
      W::converge();
      if (cells[w][source] != i) ++wrong;
      W::converge();
    }
  });
  CHECK(wrong == 0);
}
