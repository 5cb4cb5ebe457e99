// How a thread waits for the device: it is never late by more than a small part of what it has waited.
#include "host/base/back_off.hpp"

#include "catch.hpp"

using namespace flywheel::detail;
using namespace std::chrono_literals;

TEST_CASE("back off: a thread that has waited for some milliseconds sleeps, and little of what it has waited") {
  CHECK(BackOff::sleep_after(0ns) == 0ns);
  CHECK(BackOff::sleep_after(3'999us) == 0ns);  // most runs of a model's step, or of a large matrix product
  std::chrono::nanoseconds before{};
  for (std::chrono::nanoseconds waited = 4ms; waited < 10s; waited = waited * 5 / 4) {
    const std::chrono::nanoseconds sleep = BackOff::sleep_after(waited);
    CHECK(sleep > 0ns);
    CHECK(sleep * 200 <= waited);
    CHECK(sleep >= before);
    before = sleep;
  }
  CHECK(before == 100us);
}

TEST_CASE("back off: there is time for other things now and then, while a thread spins and behind that") {
  BackOff back_off;
  std::uint32_t times = 0;
  for (int turn = 0; turn < 2'600; ++turn, back_off.pause()) times += back_off.now_and_then();
  CHECK(times == 3 + 75);  // of 2,000 turns that spin one in 512, of the others one in 8
}
