// What tasks see of idle workers, on CPU workers and on GPUs.
#pragma once

#include "catch.hpp"
#include "support/small_runtime.hpp"

namespace flywheel::testing {

/// A small runtime without work, of at least two workers.
inline void check_idle_workers(Runtime& runtime) {
  const LookForIdle::Seen alone = runtime.submit(LookForIdle{0}).get();
  CHECK(alone.idle == alone.wanted);
  CHECK(alone.wanted + 2 >= runtime.workers());
  Buffer<std::uint32_t> words = runtime.allocate<std::uint32_t>(2);
  const std::uint32_t busy = runtime.workers() - 1;
  std::vector<Future<void>> gates;
  for (std::uint32_t i = 0; i < busy; ++i) gates.push_back(runtime.submit(Gate{words.data(), words.data() + 1}));
  const LookForIdle::Seen none = runtime.submit(LookForIdle{busy}).get();
  CHECK(none.idle == 0);
  CHECK(none.wanted == 0);
  words.write(std::vector<std::uint32_t>{busy, 1});
  for (Future<void>& gate : gates) gate.wait();
}

}  // namespace flywheel::testing
