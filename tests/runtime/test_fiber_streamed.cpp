// Passes over arrays on the emulated GPU block: by its compute warps and by its store warp, each doing what plain loops do.
#include "support/fiber_tasks.hpp"
#include "support/stream_tasks.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// Memory for one call, with its sum in front.
struct CallMemory {
  CallMemory(const DrawnCall& drawn, Random& random) : lines(drawn.bytes / 16 + 1), call(drawn.call) {
    for (AlignedLine& line : lines)
      for (unsigned char& byte : line.bytes) byte = static_cast<unsigned char>(random());
  }
  StreamCall placed() {
    call.sum = reinterpret_cast<std::uint64_t*>(lines.front().bytes);
    call.memory = lines.front().bytes + 16;
    return call;
  }
  bool operator==(const CallMemory& other) const {
    return std::memcmp(lines.data(), other.lines.data(), lines.size() * sizeof(AlignedLine)) == 0;
  }

  std::vector<AlignedLine> lines;
  StreamCall call;
};

}  // namespace

TEST_CASE("fibers, streamed: both parts of a task do what plain loops do") {
  FLYWHEEL_TEST_SEED(seed);
  Random random(seed);
  for (int round = 0; round < 60; ++round) {
    const DrawnCall one(random, 9000), other(random, 3000);
    INFO("kinds " << one.call.kind << ", " << other.call.kind << ", " << one.call.n << " and " << other.call.n << " elements");
    CallMemory computed(one, random), stored(other, random), want_computed = computed, want_stored = stored;
    const StreamCall on_compute = computed.placed(), on_store = stored.placed();
    run_fibers(Both{[&](auto& block, auto&) { run_call(block, on_compute); }, [&](auto& block) { run_call(block, on_store); }},
               {}, seeded(seed + static_cast<std::uint64_t>(round)));
    PlainLoops loops;
    run_call(loops, want_computed.placed());
    run_call(loops, want_stored.placed());
    REQUIRE(computed == want_computed);
    REQUIRE(stored == want_stored);
  }
}
