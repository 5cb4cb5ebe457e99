// The emulated block itself: what it does as the PTX ISA says, and that it finds the mistakes it is there to find.
#include <set>

#include <flywheel/detail/ptx.cuh>
#include "support/expect.hpp"
#include "support/seed.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

void fence() {
  ptx::fence_global_for_bulk_copies();
  ptx::fence_shared_for_bulk_copies();
}
/// As the load role does it.
void bulk_copy(void* to, const void* from, std::uint32_t bytes, std::uint64_t& barrier, std::uint64_t policy) {
  ptx::expect_bytes(barrier, bytes);
  ptx::bulk_copy(to, from, bytes, barrier, policy);
}

struct Words {
  std::uint64_t barrier[4];
  std::uint32_t seen[kEmulatedThreads];
};
Words& words() {
  __shared__ Words shared;
  return shared;
}

alignas(128) unsigned char source[4096];

constexpr std::size_t kDynamic = 8192;

/// What was wrong when all threads of a block ran `kernel`, or nothing.
std::string run_block(std::uint64_t seed, std::function<void()> kernel) {
  for (std::size_t i = 0; i < sizeof(source); ++i) source[i] = static_cast<unsigned char>(i * 7 % 127);
  words() = {};
  EmulatedGrid grid;
  grid.seed = seed;
  EmulatedStacks stacks;
  const auto block = std::make_unique<EmulatedBlock>(0, seed, grid, stacks);
  block->copies().dynamic = {memory, kDynamic};
  block->run(std::move(kernel));
  return grid.why();
}
std::string run_block(std::function<void()> kernel) { return run_block(fresh_seed(), std::move(kernel)); }

/// Thread 0 makes barrier 0 ready, and all wait for that.
void prepare(std::uint32_t arrivals) {
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(words().barrier[0], arrivals);
    ptx::publish_mbarriers();
  }
  __syncthreads();
}
void wait(std::uint64_t& barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_test(barrier, parity)) {}
}
void wait(std::uint32_t parity) { wait(words().barrier[0], parity); }

/// One thread's mistake, in the middle of others that do nothing.
void check_mistake(const std::vector<std::string>& parts, std::function<void()> mistake) {
  check_says(run_block([&] {
               prepare(1);
               if (threadIdx.x == 70) mistake();
             }),
             parts);
}

bool is_copied(const void* to, std::size_t bytes) { return !std::memcmp(to, source, bytes); }

}  // namespace

TEST_CASE("emulated block: phases of an mbarrier end when all have arrived, and parities tell them apart") {
  CHECK(run_block([] {
          prepare(kEmulatedThreads);
          if (!ptx::mbarrier_test(words().barrier[0], 1)) words().seen[threadIdx.x] = 99;  // the one before the first
          for (std::uint32_t phase = 0; phase < 20; ++phase) {
            for (const std::uint32_t count : words().seen)
              if (count < phase || count > phase + 1) words().seen[threadIdx.x] = 99;
            ++words().seen[threadIdx.x];
            ptx::mbarrier_arrive(words().barrier[0]);
            wait(phase & 1);
          }
        }) == "");
  for (const std::uint32_t count : words().seen) REQUIRE(count == 20);
}

/// Of the threads 128 to 383, those whose last decimal digit is below `most`.
std::uint32_t votes_below(std::uint32_t most) {
  std::uint32_t votes = 0;
  for (std::uint32_t thread = 128; thread < 384; ++thread) votes += thread % 10 < most;
  return votes;
}

TEST_CASE("emulated block: votes, shuffles and named barriers of some warps") {
  CHECK(run_block([] {
          const std::uint32_t lane = threadIdx.x % 32, first = threadIdx.x - lane;
          bool good =
              __any_sync(~0u, lane == 7) && !__any_sync(~0u, false) && !__all_sync(~0u, lane != 3) && __all_sync(~0u, true);
          good &= __shfl_xor_sync(~0u, threadIdx.x, 5) == first + (lane ^ 5);
          good &= __shfl_down_sync(~0u, threadIdx.x, 8) == first + (lane < 24 ? lane + 8 : lane);
          good &= __shfl_up_sync(~0u, threadIdx.x, 3) == first + (lane < 3 ? lane : lane - 3);
          good &= __shfl_sync(~0u, threadIdx.x, 9) == first + 9;
          good &= __ballot_sync(~0u, lane == 3 || lane == 31) == (1u << 3 | 1u << 31);
          for (std::uint32_t i = 0; first >= 128 && i < 10; ++i) {
            ptx::named_barrier(1, 256);
            good &= ptx::named_barrier_count(1, 256, threadIdx.x % 10 < i) == votes_below(i);
          }
          words().seen[threadIdx.x] = good;
        }) == "");
  for (const std::uint32_t good : words().seen) REQUIRE(good == 1);
}

TEST_CASE("emulated block: lanes that have ended are no matter to __syncwarp(), but to what needs them") {
  CHECK(run_block([] {
          if (threadIdx.x % 32 == 5) return;
          __syncwarp();
          __syncwarp();
        }) == "");
  check_says(run_block([] {
               if (threadIdx.x == 37) return;
               __shfl_sync(~0u, 1, 0);
             }),
             {"warp 1", "__shfl_sync()"});
  check_says(run_block([] {
               if (threadIdx.x == 37) __any_sync(~0u, true);
               else __syncwarp();
             }),
             {"lanes of a warp meet at different places", "__any_sync()", "__syncwarp()"});
}

TEST_CASE("emulated block: bulk copies land late and in pieces, and their barrier says when") {
  std::uint32_t early = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CHECK(run_block(seed, [&] {
            prepare(1);
            if (threadIdx.x == 64) {
              fence();
              bulk_copy(memory, source, 4096, words().barrier[0], 0);
              early += is_copied(memory, 4096);
            }
            wait(0);
            words().seen[threadIdx.x] = is_copied(memory, 4096);
          }) == "");
    for (const std::uint32_t good : words().seen) REQUIRE(good == 1);
  }
  CHECK(early == 0);
}

TEST_CASE("emulated block: copies of 16 bytes land by groups, and arrive when they have") {
  std::set<bool> second;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CHECK(run_block(seed, [&] {
            prepare(32);
            if (threadIdx.x / 32 == 2) {
              const std::uint32_t at = threadIdx.x % 32 * 128;
              ptx::copy16(memory + at, source);
              ptx::commit_copies();
              ptx::copy16(memory + at + 16, source);
              ptx::commit_copies();
              if (is_copied(memory + at, 16) && seed == 0) words().seen[0] = 99;
              ptx::wait_copies<1>();
              if (!is_copied(memory + at, 16)) words().seen[0] = 99;
              second.insert(is_copied(memory + at + 16, 16));
              ptx::arrive_when_copied(words().barrier[0]);
            }
            wait(0);
            words().seen[threadIdx.x] += 1;
            for (int i = 0; i < 64; ++i) words().seen[threadIdx.x] += !is_copied(memory + i / 2 * 128 + i % 2 * 16, 16);
          }) == "");
    for (const std::uint32_t good : words().seen) REQUIRE(good == 1);
  }
  CHECK(second.size() == 2);  // there or not, both come up
}

TEST_CASE("emulated block: mistakes with mbarriers have names") {
  std::uint64_t& barrier = words().barrier[0];
  std::uint64_t& other = words().barrier[1];
  check_mistake({"thread 70", "used before it was initialised"}, [&] { ptx::mbarrier_arrive(other); });
  check_mistake({"initialised again"}, [&] { ptx::mbarrier_init(barrier, 1); });
  check_mistake({"used after it was invalidated"}, [&] {
    ptx::mbarrier_invalidate(barrier);
    ptx::mbarrier_test(barrier, 0);
  });
  check_mistake({"two arrivals of thread 70 in one phase"}, [&] {
    ptx::mbarrier_init(other, 2);
    ptx::mbarrier_arrive(other);
    ptx::mbarrier_arrive(other);
  });
  check_mistake({"more arrivals than the 1 it expects"}, [&] {
    fence();
    bulk_copy(memory, source, 4096, barrier, 0);
    ptx::mbarrier_arrive(barrier);
  });
  check_mistake({"invalidated while", "bytes are on their way"}, [&] {
    fence();
    bulk_copy(memory, source, 4096, barrier, 0);
    ptx::mbarrier_invalidate(barrier);
  });
  check_says(run_block([&] {
               prepare(1);
               if (threadIdx.x == 1) wait(0);
               if (threadIdx.x != 0) return;
               for (int i = 0; i < 200; ++i) EmulatedBlock::current()->yield();
               ptx::mbarrier_invalidate(barrier);
             }),
             {"invalidated while thread 1 waits"});
}

TEST_CASE("emulated block: mistakes with copies have names") {
  std::uint64_t& barrier = words().barrier[0];
  const auto check_bulk = [&](const std::vector<std::string>& parts, void* to, const void* from, std::uint32_t bytes) {
    check_mistake(parts, [&] {
      fence();
      bulk_copy(to, from, bytes, barrier, 0);
    });
  };
  check_bulk({"24 bytes: not a multiple of 16"}, memory, source, 24);
  check_bulk({"not aligned to 16 bytes"}, memory + 8, source, 32);
  check_bulk({"not aligned to 16 bytes"}, memory, source + 4, 32);
  check_bulk({"outside the block's dynamic shared memory"}, memory + kDynamic - 16, source, 32);
  check_mistake({"copy16() to a place outside"}, [&] { ptx::copy16(source, source + 16); });
  check_mistake({"has not fenced global memory"}, [&] { bulk_copy(memory, source, 32, barrier, 0); });
  check_mistake({"has not fenced shared memory"}, [&] {
    ptx::fence_global_for_bulk_copies();
    bulk_copy(memory, source, 32, barrier, 0);
  });
  check_mistake({"before publish_mbarriers()"}, [&] {
    ptx::mbarrier_init(words().barrier[1], 1);
    fence();
    bulk_copy(memory, source, 32, words().barrier[1], 0);
  });
  check_mistake({"another is still to land"}, [&] {
    ptx::mbarrier_init(words().barrier[1], 1);
    ptx::publish_mbarriers();
    fence();
    ptx::expect_bytes(barrier, 4096);  // after which others may run, and copies land
    ptx::expect_bytes(words().barrier[1], 32);
    ptx::bulk_copy(memory, source, 4096, barrier, 0);
    ptx::bulk_copy(memory + 64, source, 32, words().barrier[1], 0);
  });
}

TEST_CASE("emulated block: two groups at one named barrier, and threads that wait for others that never come") {
  check_says(run_block([] {
               if (threadIdx.x < 64) ptx::named_barrier(1, 64);
               __syncthreads();
               if (threadIdx.x >= 64 && threadIdx.x < 128) ptx::named_barrier(1, 64);
             }),
             {"two groups at named barrier 1"});
  check_says(run_block([] { ptx::named_barrier(1, threadIdx.x < 64 ? 64 : 320); }), {"named barrier 1"});
  check_says(run_block([] {
               if (threadIdx.x < 64) ptx::named_barrier(1, 384);
               else ptx::named_barrier_count(1, 384, true);
             }),
             {"at named barrier 1 some vote and some do not"});
  check_says(run_block([] {
               prepare(1);
               if (threadIdx.x >= 320) wait(0);
               else if (threadIdx.x >= 288) ptx::named_barrier(2, 96);
             }),
             {"deadlock", "warp 9: lanes 0-31 at named barrier 2", "warp 10: lanes 0-31 at mbarrier", "the end of the kernel"});
}
