// The ring of stages on an emulated block: every step comes through, whatever the pace of its users and copies.
#include "device/ring.cuh"

#include "support/expect.hpp"
#include "support/seed.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

constexpr int kStages = 3;
constexpr std::uint32_t kSteps = 40;
constexpr std::uint32_t kWords = 96;  // of a stage
constexpr std::uint32_t kBytes = kWords * 4;

alignas(128) std::uint32_t source[kSteps][kWords];

struct RingMemory {
  alignas(128) std::uint32_t stages[kStages][kWords];
  RingBarriers<kStages> barriers;
};
RingMemory& shared() { return *reinterpret_cast<RingMemory*>(memory); }

struct Found {
  std::uint32_t wrong = 0;
  std::uint64_t sum = 0;
};
Found found[kEmulatedWarps];

std::string run_block(std::uint64_t seed, std::function<void()> kernel) {
  EmulatedGrid grid;
  grid.seed = seed;
  EmulatedStacks stacks;
  std::mt19937_64 random(seed);
  for (auto& step : source)
    for (std::uint32_t& word : step) word = static_cast<std::uint32_t>(random());
  for (Found& one : found) one = {};
  const auto block = std::make_unique<EmulatedBlock>(0, seed, grid, stacks);
  block->copies().dynamic = {memory, sizeof(RingMemory)};
  block->run(std::move(kernel));
  return grid.why();
}

/// A warp reads all steps.
void consume(std::uint32_t warp, std::uint32_t lane) {
  RingPlace<kStages> ring(shared().barriers);
  for (std::uint32_t step = 0; step < kSteps; ++step, ring.next()) {
    ring.consumer_wait();
    const std::uint32_t* const stage = shared().stages[ring.stage()];
    std::uint32_t wrong = 0;
    for (std::uint32_t i = lane; i < kWords; i += 32) wrong += stage[i] != source[step][i];
    if (wrong) found[warp].wrong += wrong;
    if (lane == 0) found[warp].sum += step;
    __syncwarp();
    if (lane == 0) ring.consumer_release();
  }
}

void begin(std::uint32_t filled_by, std::uint32_t read_by) {
  if (threadIdx.x == 0) begin_ring(shared().barriers, filled_by, read_by);
  __syncthreads();
}

/// `consumers` warps have read everything, in order.
void check_found(const std::string& why, std::uint32_t first, std::uint32_t consumers) {
  CHECK(why == "");
  for (std::uint32_t warp = first; warp < first + consumers; ++warp) {
    CHECK(found[warp].wrong == 0);
    CHECK(found[warp].sum == kSteps * (kSteps - 1) / 2);
  }
}

}  // namespace

TEST_CASE("a ring: one thread fills by bulk copies, warps empty") {
  for (int round = 0; round < 20; ++round) {
    const std::string why = run_block(fresh_seed(), [] {
      begin(1, 8);
      const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
      if (warp >= 4) return consume(warp, lane);
      if (threadIdx.x) return;
      RingPlace<kStages> ring(shared().barriers);
      for (std::uint32_t step = 0; step < kSteps; ++step, ring.next()) {
        ring.producer_acquire();
        ring.producer_expect(kBytes);
        ring.copy(shared().stages[ring.stage()], source[step], kBytes / 2);
        ring.copy(shared().stages[ring.stage()] + kWords / 2, source[step] + kWords / 2, kBytes / 2);
      }
    });
    check_found(why, 4, 8);
  }
}

TEST_CASE("a ring: a warp fills by copies of 16 bytes, and one by stores") {
  for (int round = 0; round < 20; ++round) {
    const std::string why = run_block(fresh_seed(), [] {
      begin(32 + 32, 6);
      const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
      if (warp >= 6) return consume(warp, lane);
      if (warp >= 2) return;
      RingPlace<kStages> ring(shared().barriers);
      for (std::uint32_t step = 0; step < kSteps; ++step, ring.next()) {
        ring.producer_acquire();
        std::uint32_t* const stage = shared().stages[ring.stage()];
        if (warp == 0) {
          if (lane < 16) ring.copy16(stage + 4 * lane, source[step] + 4 * lane);
          ring.producer_commit_copies();
        } else {
          stage[64 + lane] = source[step][64 + lane];
          ring.producer_commit();
        }
      }
    });
    check_found(why, 6, 6);
  }
}

TEST_CASE("a ring: a block's threads fill and empty it themselves") {
  for (int round = 0; round < 20; ++round) {
    const std::string why = run_block(fresh_seed(), [] {
      begin(kEmulatedThreads, kEmulatedWarps);
      const std::uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
      RingPlace<kStages> fill(shared().barriers), read(shared().barriers);
      const auto fill_step = [&](std::uint32_t step) {
        fill.producer_acquire();
        if (threadIdx.x < kWords / 4)
          fill.copy16(shared().stages[fill.stage()] + 4 * threadIdx.x, source[step] + 4 * threadIdx.x);
        fill.producer_commit_copies();
        fill.next();
      };
      for (std::uint32_t step = 0; step < kStages - 1; ++step) fill_step(step);
      for (std::uint32_t step = 0; step < kSteps; ++step, read.next()) {
        read.consumer_wait();
        std::uint32_t wrong = 0;
        for (std::uint32_t i = lane; i < kWords; i += 32) wrong += shared().stages[read.stage()][i] != source[step][i];
        if (wrong) found[warp].wrong += wrong;
        if (lane == 0) found[warp].sum += step;
        __syncwarp();
        if (lane == 0) read.consumer_release();
        if (step + kStages - 1 < kSteps) fill_step(step + kStages - 1);
      }
    });
    check_found(why, 0, kEmulatedWarps);
  }
}

TEST_CASE("a ring may end and another begin in the same words") {
  const std::string why = run_block(fresh_seed(), [] {
    for (int ring = 0; ring < 3; ++ring) {
      begin(1, 1);
      RingPlace<kStages> place(shared().barriers);
      if (threadIdx.x == 32) place.producer_commit();
      if (threadIdx.x == 64) place.consumer_wait();
      __syncthreads();
      if (threadIdx.x == 0) end_ring(shared().barriers);
      __syncthreads();
    }
  });
  CHECK(why == "");
}

TEST_CASE("a ring: a producer that does not wait for its stage is found") {
  const std::string why = run_block(fresh_seed(), [] {
    begin(1, 1);
    if (threadIdx.x) return;
    RingPlace<kStages> ring(shared().barriers);
    for (int step = 0; step < 2 * kStages; ++step, ring.next()) {
      ring.producer_expect(kBytes);
      ring.copy(shared().stages[ring.stage()], source[step], kBytes);
    }
  });
  CHECK(why != "");
}
