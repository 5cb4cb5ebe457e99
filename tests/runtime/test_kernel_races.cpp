// The emulated block under ThreadSanitizer: it finds what nothing orders, also where the emulator itself never does it in
// the wrong order, and lets pass what is right. Elsewhere the mistakes are not made: they would go unseen.
#include <flywheel/detail/ptx.cuh>
#include "support/child.hpp"
#include "support/expect.hpp"

#include <cstdlib>

using namespace flywheel;
using namespace flywheel::testing;

namespace {

#ifdef __SANITIZE_THREAD__
constexpr bool kWatched = true;
#else
constexpr bool kWatched = false;
#endif

constexpr std::size_t kBytes = 4096;
// As reports are best, and as all other tests are. Clang's run-time has places for 256 threads that run at once.
#ifdef __clang__
constexpr const char* kLanesApartEach[] = {"4"};
#else
constexpr const char* kLanesApartEach[] = {"32", "4"};
#endif
constexpr int kFoundRace = 66;  // what ThreadSanitizer ends a process with

alignas(128) unsigned char source[kBytes];

struct Words {
  std::uint64_t barrier, landed;
  std::uint32_t word, sum;
};
Words& words() {
  __shared__ Words shared;
  return shared;
}

/// What was wrong when all threads of a block ran `work`, with both barriers ready for one arrival.
template <class Work>
std::string run_block(Work&& work) {
  words() = {};
  EmulatedGrid grid;
  EmulatedStacks stacks;
  const auto block = std::make_unique<EmulatedBlock>(0, fresh_seed(), grid, stacks);
  block->copies().dynamic = {memory, kBytes};
  block->run([&] {
    if (threadIdx.x == 0) {
      ptx::mbarrier_init(words().barrier, 1);
      ptx::mbarrier_init(words().landed, 1);
      ptx::publish_mbarriers();
    }
    __syncthreads();
    work();
  });
  return grid.why();
}

void wait(std::uint64_t& barrier) {
  while (!ptx::mbarrier_test(barrier, 0)) {}
}
void wait() { wait(words().barrier); }

enum class Mistake { none, made };

/// One warp writes for another.
void pass_word(Mistake mistake) {
  if (threadIdx.x == 64) {
    if (mistake == Mistake::none) words().word = 5;
    ptx::mbarrier_arrive(words().barrier);
    if (mistake == Mistake::made) words().word = 5;
  }
  if (threadIdx.x / 32 == 4) {
    wait();
    if (words().word == 5 && threadIdx.x == 128) words().sum = 5;
  }
}
/// All lanes write, and one says so.
void gather_word(Mistake mistake) {
  if (threadIdx.x / 32 == 2) {
    memory[threadIdx.x] = 1;
    if (mistake == Mistake::none) __syncwarp();
    else __any_sync(~0u, true);  // brings lanes together and orders nothing
    if (threadIdx.x == 64) ptx::mbarrier_arrive(words().barrier);
  }
  if (threadIdx.x == 128) {
    wait();
    for (std::uint32_t i = 64; i < 96; ++i) words().sum += memory[i];
  }
}
void copy_page() {
  ptx::expect_bytes(words().landed, kBytes);
  ptx::bulk_copy(memory, source, kBytes, words().landed, 0);
}
/// A copy lands, and is read.
void read_page(Mistake mistake) {
  if (threadIdx.x == 64) {
    ptx::fence_global_for_bulk_copies();
    ptx::fence_shared_for_bulk_copies();
    copy_page();
  }
  if (threadIdx.x == 128) {
    if (mistake == Mistake::none) wait(words().landed);
    words().sum = memory[100];
    if (mistake == Mistake::made) wait(words().landed);
  }
}
/// A copy overwrites what a thread has read. The mbarrier orders no copies.
void reuse_page(Mistake mistake) {
  if (threadIdx.x == 128) {
    words().sum = memory[100];
    ptx::mbarrier_arrive(words().barrier);
  }
  if (threadIdx.x == 64) {
    ptx::fence_global_for_bulk_copies();
    if (mistake == Mistake::made) ptx::fence_shared_for_bulk_copies();
    wait();
    if (mistake == Mistake::none) ptx::fence_shared_for_bulk_copies();
    copy_page();
    wait(words().landed);
  }
}
/// Memory is used again while a thread may still read it.
void use_again(Mistake mistake) {
  if (threadIdx.x == 64) words().sum = words().word;
  if (mistake == Mistake::none) __syncthreads();
  if (threadIdx.x == 128) words().word = 7;
}

/// The votes of a block come with a barrier, those of a warp with none.
void vote_between(Mistake mistake) {
  if (threadIdx.x == 64) words().word = 7;
  const bool voted = mistake == Mistake::none ? ptx::named_barrier_count(1, kEmulatedThreads, true) : __any_sync(~0u, true);
  if (threadIdx.x == 128 && voted) words().sum = words().word;
}

/// On stacks, and as threads of ThreadSanitizer, that another block has used.
void run_mistaken(void (*work)(Mistake)) {
  run_block([=] { work(Mistake::none); });
  run_block([=] { work(Mistake::made); });
}

}  // namespace

TEST_CASE("emulated block, races: what barriers order is let pass") {
  for (const char* apart : kLanesApartEach) {
    setenv("FLYWHEEL_LANES_APART", apart, 1);
    for (const auto work : {&pass_word, &gather_word, &read_page, &reuse_page, &use_again, &vote_between})
      for (int round = 0; round < 10; ++round) CHECK(run_block([=] { work(Mistake::none); }) == "");
  }
  unsetenv("FLYWHEEL_LANES_APART");
}

TEST_CASE("child: a word is written after the arrival", "[.child]") { run_mistaken(&pass_word); }
TEST_CASE("child: a vote in place of a barrier", "[.child]") { run_mistaken(&gather_word); }
TEST_CASE("child: a page is read before it has landed", "[.child]") { run_mistaken(&read_page); }
TEST_CASE("child: a copy that no fence holds back", "[.child]") { run_mistaken(&reuse_page); }
TEST_CASE("child: memory is used again too early", "[.child]") { run_mistaken(&use_again); }
TEST_CASE("child: a warp's vote in place of the block's", "[.child]") { run_mistaken(&vote_between); }

namespace {

/// Each by a process of its own.
void find_each_race() {
  for (const char* name : {"child: a word is written after the arrival", "child: a vote in place of a barrier",
                           "child: a page is read before it has landed", "child: a copy that no fence holds back",
                           "child: memory is used again too early", "child: a warp's vote in place of the block's"}) {
    // ThreadSanitizer forgets what was long ago, as on a machine that others keep busy: it finds each in one of a few runs.
    ChildResult child;
    for (int tries = 5; tries > 0 && child.status != kFoundRace; --tries) child = run_child(name, std::chrono::seconds(60));
    check_child(child, kFoundRace);
    check_says(child.output, {"data race"});
  }
}

}  // namespace

TEST_CASE("emulated block, races: what nothing orders is found") {
  if (!kWatched) return;
  for (const char* apart : kLanesApartEach) {
    setenv("FLYWHEEL_LANES_APART", apart, 1);  // for the children
    find_each_race();
  }
  unsetenv("FLYWHEEL_LANES_APART");
}
