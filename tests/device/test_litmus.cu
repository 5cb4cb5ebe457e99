// The ways in which compiled runs bring data from one SM to another, by themselves, with random delays at every step:
// ordinary stores and a counter; ordinary stores that another SM takes by a bulk copy; a bulk copy out of shared memory
// that another SM reads; stamped words. The right order of fences must never let a stale word through.
#include <cstdio>

#include <flywheel/detail/platform.cuh>
#include <flywheel/detail/ptx.cuh>
#include "support/atomics.hpp"
#include "support/cuda_ok.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

constexpr std::uint32_t kRounds = 100'000;
constexpr std::uint32_t kWords = 64;  // of 8 bytes, a cargo: four lines
constexpr std::uint32_t kBytes = kWords * 8;

enum class How { stores, taken_by_bulk_copy, sent_by_bulk_copy, stamped };

/// Block b sends to the block `distance` after it; the distance changes from round to round, so that all
/// pairs of SMs meet. A sender's cargo may be written again once its receiver of the round before has said
/// so.
struct Litmus {
  std::uint64_t* cargo;     // a block: kWords
  std::uint64_t* counters;  // a block: rounds sent, one a line
  std::uint64_t* read;      // a block: rounds of its cargo that were read, one a line
  std::uint64_t* stale;     // words that were not of the round
  std::uint64_t* rounds;    // that block 0 has made
  std::uint32_t blocks;
  std::uint32_t delay;  // most turns at each step
};

constexpr std::uint32_t kLine = 16;

__device__ void wander(const Litmus& l, std::uint32_t round, std::uint32_t step) {
  const std::uint64_t dice = mix(mix(blockIdx.x, round), step);
  for (std::uint64_t turns = dice % 8 == 0 ? dice / 8 % l.delay : 0, x = dice; turns; --turns)
    if (mix(x, turns) == 0) __nanosleep(1);
}

using P = ThreadPlatform;

/// Thread 0. Bounded: a lost arrival ends the kernel with a count that shows it.
__device__ bool wait_for_count(std::uint64_t& counter, std::uint64_t goal) {
  for (std::uint32_t spins = 0; spins < (1u << 26); ++spins)
    if (P::device(counter).load(Order::acquire) >= goal) return true;
  return false;
}

#if __CUDA_ARCH__ >= 900
__device__ void fence_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ void fence_async_all() { asm volatile("fence.proxy.async;" ::: "memory"); }
#else
__device__ void fence_async_shared() {}
__device__ void fence_async_all() {}
#endif
__device__ void bulk_store(void* to, const void* from_shared, std::uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(ptx::shared_address(from_shared)),
               "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");  // not .read: until the writes are made
#endif
}

template <How kHow>
class Party {
 public:
  __device__ Party(const Litmus& litmus, std::uint64_t* staging, std::uint64_t& landed)
      : l_(litmus),
        staging_(staging),
        landed_(landed) {}

  __device__ void send(std::uint32_t round) {
    if constexpr (kHow == How::stamped) return send_stamped(round);
    std::uint64_t* cargo = l_.cargo + std::size_t{blockIdx.x} * kWords;
    std::uint64_t* to = kHow == How::sent_by_bulk_copy ? staging_ : cargo;
    for (std::uint32_t w = threadIdx.x; w < kWords; w += blockDim.x) to[w] = word(blockIdx.x, round, w);
    if (kHow == How::sent_by_bulk_copy) fence_async_shared();  // each writer, for the copy that reads what it wrote
    __syncthreads();
    if (threadIdx.x) return;
    wander(l_, round, 1);
    if (kHow == How::sent_by_bulk_copy) {
      bulk_store(cargo, staging_, kBytes);
      wander(l_, round, 2);
      fence_async_all();
    }
    P::device(l_.counters[std::size_t{blockIdx.x} * kLine]).fetch_add(1, Order::release);
  }

  __device__ void receive(std::uint32_t round, std::uint32_t from) {
    if (kHow != How::stamped && threadIdx.x == 0) take(round, from);
    __syncthreads();
    std::uint32_t stale = kHow == How::stamped ? take_stamped(round, from) : 0;
    const std::uint64_t* cargo = l_.cargo + std::size_t{from} * kWords;
    const std::uint64_t* at = kHow == How::taken_by_bulk_copy ? staging_ : cargo;
    for (std::uint32_t w = threadIdx.x; kHow != How::stamped && w < kWords; w += blockDim.x)
      stale += at[w] != word(from, round, w);
    if (stale) add_to(*l_.stale, std::uint64_t{stale});
    __syncthreads();
    if (threadIdx.x == 0) P::device(l_.read[std::size_t{from} * kLine]).fetch_add(1, Order::release);
  }

  /// Until the cargo of the last round was read: then it may be written again.
  __device__ bool wait_until_read(std::uint32_t round) {
    __shared__ bool go_on;
    if (threadIdx.x == 0) {
      go_on = wait_for_count(l_.read[std::size_t{blockIdx.x} * kLine], round + 1);
      if (kHow != How::stores) fence_async_all();  // what is written next by either proxy comes after those reads
      wander(l_, round, 5);
    }
    __syncthreads();
    return go_on;
  }

 private:
  // Each word tells by itself that it is there: no counter, no fence, and each thread at a time of its own.
  __device__ void send_stamped(std::uint32_t round) {
    auto* cargo = reinterpret_cast<Stamped*>(l_.cargo + std::size_t{blockIdx.x} * kWords);
    for (std::uint32_t w = threadIdx.x; w < kWords; w += blockDim.x) {
      wander(l_, round, 16 + w);
      put_stamped(cargo[w], static_cast<std::uint32_t>(word(blockIdx.x, round, w)), round + 1);
    }
  }
  /// How many words are not as sent: by single loads and, every other thread, by loads of two.
  __device__ std::uint32_t take_stamped(std::uint32_t round, std::uint32_t from) {
    const auto* cargo = reinterpret_cast<const Stamped*>(l_.cargo + std::size_t{from} * kWords);
    std::uint32_t stale = 0;
    for (std::uint32_t w = threadIdx.x; w < kWords; w += blockDim.x) {
      wander(l_, round, 128 + w);
      Stamped seen{};
      for (std::uint32_t spins = 0; seen.stamp() != round + 1 && spins < (1u << 26); ++spins) {
        const StampedPair pair =
            w & 2 ? ptx::load_two(cargo + (w & ~1u)) : StampedPair{look_at(cargo[w & ~1u]), look_at(cargo[w | 1])};
        seen = w & 1 ? pair.second : pair.first;
      }
      stale += seen.stamp() != round + 1 || seen.bits() != static_cast<std::uint32_t>(word(from, round, w));
    }
    return stale;
  }
  __device__ static std::uint64_t word(std::uint32_t block, std::uint32_t round, std::uint32_t w) {
    return mix(mix(block, round), w);
  }
  __device__ void take(std::uint32_t round, std::uint32_t from) {
    wander(l_, round, 3);
    wait_for_count(l_.counters[std::size_t{from} * kLine], round + 1);
    wander(l_, round, 4);
    if (kHow != How::taken_by_bulk_copy) return;
    ptx::fence_global_for_bulk_copies();
    ptx::expect_bytes(landed_, kBytes);
    ptx::bulk_copy(staging_, l_.cargo + std::size_t{from} * kWords, kBytes, landed_, ptx::read_once_policy());
    while (!ptx::mbarrier_test(landed_, round & 1)) {}
  }

  const Litmus& l_;
  std::uint64_t* staging_;
  std::uint64_t& landed_;
};

template <How kHow>
__global__ void litmus(Litmus l) {
  __shared__ __align__(128) std::uint64_t staging[kWords];
  __shared__ std::uint64_t landed;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(landed, 1);
    ptx::publish_mbarriers();
  }
  __syncthreads();
  Party<kHow> party(l, staging, landed);
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const std::uint32_t distance = 1 + round % (l.blocks - 1);
    party.send(round);
    party.receive(round, (blockIdx.x + l.blocks - distance) % l.blocks);
    if (!party.wait_until_read(round)) return;
    if (blockIdx.x == 0 && threadIdx.x == 0) *l.rounds = round + 1;
  }
}

struct Outcome {
  std::uint64_t stale, rounds;
};

template <How kHow>
Outcome run(std::uint32_t delay) {
  cudaDeviceProp properties{};
  cuda_ok(cudaGetDeviceProperties(&properties, 0));
  const auto blocks = static_cast<std::uint32_t>(properties.multiProcessorCount);
  const std::size_t words = blocks * (kWords + 2 * kLine) + 2;
  std::uint64_t* memory = nullptr;
  cuda_ok(cudaMalloc(&memory, words * 8));
  cuda_ok(cudaMemset(memory, 0, words * 8));
  std::uint64_t* const counters = memory + blocks * kWords;
  Litmus l{memory, counters, counters + blocks * kLine, counters + 2 * blocks * kLine, nullptr, blocks, delay};
  l.rounds = l.stale + 1;
  void* arguments[] = {&l};
  cuda_ok(
      cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&litmus<kHow>), dim3(blocks), dim3(64), arguments, 0, nullptr));
  cuda_ok(cudaDeviceSynchronize());
  Outcome outcome{};
  cuda_ok(cudaMemcpy(&outcome, l.stale, sizeof(outcome), cudaMemcpyDeviceToHost));
  cuda_ok(cudaFree(memory));
  return outcome;
}

template <How kHow>
void check(const char* what) {
  for (const std::uint32_t delay : {1u, 40u, 400u}) {
    const auto begin = std::chrono::steady_clock::now();
    const Outcome outcome = run<kHow>(delay);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("%-34s delays up to %3u: %llu rounds, %llu stale words, %.1f s\n", what, delay,
                static_cast<unsigned long long>(outcome.rounds), static_cast<unsigned long long>(outcome.stale), seconds);
    CHECK(outcome.stale == 0);
    CHECK(outcome.rounds == kRounds);
  }
}

bool has_bulk_copies() {
  int major = 0;
  cuda_ok(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  return major >= 9;
}

}  // namespace

TEST_CASE("litmus: ordinary stores, a counter, ordinary loads") { check<How::stores>("stores, counter, loads"); }

TEST_CASE("litmus: stamped words") { check<How::stamped>("stamped words"); }

TEST_CASE("litmus: ordinary stores that another SM takes by a bulk copy") {
  if (has_bulk_copies()) check<How::taken_by_bulk_copy>("stores, counter, bulk copy in");
}

TEST_CASE("litmus: a bulk copy out of shared memory that another SM loads") {
  if (has_bulk_copies()) check<How::sent_by_bulk_copy>("bulk copy out, counter, loads");
}
