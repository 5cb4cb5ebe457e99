// Ranges for a profiler, without one: they have no number, and nothing happens.
#include "host/trace/profiler.hpp"

#include "support/internals.hpp"

#include "catch.hpp"

using namespace flywheel;

TEST_CASE("without a profiler there are no ranges") {
  if constexpr (kHasProfiler) open_profiler_domain();
  if (profiler_domain.load(std::memory_order_relaxed)) return;  // the test itself is being profiled
  CHECK(start_range("a range") == 0);
  stop_range(0);
  const ProfiledScope here("a scope");
}
