// What SMs can tell each other, and how fast: a flag, a shared counter, a barrier.
#include <cooperative_groups.h>

#include "apps/measure/kernel_timer.cuh"
#include "apps/measure/limits.hpp"

namespace measure {
namespace {

// A flag with cache lines of its own, so that no other word's traffic slows it down.
struct alignas(256) Exchange {
  unsigned value;
};

// --- limit.hop

constexpr unsigned kExchanges = 2000;
constexpr unsigned kWarmUpExchanges = 100;

struct Pair {
  unsigned first, second;  // block indices, hence SMs
};

// The one who serves: raises `ping` to the number of the exchange and waits until `pong` has it too. The
// release on each side pairs with the acquire on the other.
__device__ bool exchange(KernelReport* report, DeviceWord ping, DeviceWord pong, unsigned number) {
  ping.store(number, cuda::memory_order_release);
  return spin_until(report, [&] { return pong.load(cuda::memory_order_acquire) == number; });
}

__device__ void serve(KernelReport* report, DeviceWord ping, DeviceWord pong) {
  // The other SM may not have started yet, so the first exchanges are not timed.
  for (unsigned i = 1; i <= kWarmUpExchanges; ++i) {
    if (!exchange(report, ping, pong, i)) return;
  }
  note_begin(report);
  for (unsigned i = kWarmUpExchanges + 1; i <= kWarmUpExchanges + kExchanges; ++i) {
    if (!exchange(report, ping, pong, i)) return;
  }
  note_end(report);
}

__device__ void send_back(KernelReport* report, DeviceWord ping, DeviceWord pong) {
  for (unsigned i = 1; i <= kWarmUpExchanges + kExchanges; ++i) {
    if (!spin_until(report, [&] { return ping.load(cuda::memory_order_acquire) == i; })) return;
    pong.store(i, cuda::memory_order_release);
  }
}

__global__ void __launch_bounds__(32) ping_pong(KernelReport* report, Exchange* flags, Pair pair) {
  if (threadIdx.x != 0) return;
  const DeviceWord ping(flags[0].value), pong(flags[1].value);
  if (blockIdx.x == pair.first) serve(report, ping, pong);
  if (blockIdx.x == pair.second) send_back(report, ping, pong);
}

constexpr unsigned kPairs = 8;

// Eight pairs that start all over the chip and lie closer and farther apart. Needs two SMs at least.
Pair pair_of(unsigned number, unsigned sms) {
  const unsigned first = number * sms / kPairs;
  const unsigned distance = 1 + number * (sms - 1) / kPairs;
  return {first, (first + distance) % sms};
}

// --- limit.atomic_rate

constexpr unsigned kAdditions = 2000;  // by each warp

// One lane of each warp adds: what several warps of an SM asking one ticket counter do. The tickets a thread
// draws must grow, which is why it has to look at them.
__global__ void __launch_bounds__(1024) draw_tickets(KernelReport* report, unsigned* counter) {
  if (threadIdx.x == 0) note_begin(report);
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    const DeviceWord tickets(*counter);
    bool grows = true;
    // Relaxed: a ticket is only a number, nothing is handed over with it.
    unsigned last = tickets.fetch_add(1, cuda::memory_order_relaxed);
    for (unsigned i = 1; i < kAdditions; ++i) {
      const unsigned ticket = tickets.fetch_add(1, cuda::memory_order_relaxed);
      grows &= ticket > last;
      last = ticket;
    }
    if (!grows) note_wrong(report);
  }
  __syncthreads();
  if (threadIdx.x == 0) note_end(report);
}

// --- peer.grid_sync and limit.one_counter_barrier

constexpr unsigned kMeetings = 1000;
constexpr int kBarrierThreads = 256;

// grid.sync has no time limit of its own. The cooperative launch makes sure that all blocks are there, and
// that is all it waits for.
__global__ void __launch_bounds__(kBarrierThreads) meet_by_grid_sync(KernelReport* report) {
  const auto grid = cooperative_groups::this_grid();
  grid.sync();
  if (grid.thread_rank() == 0) note_begin(report);
  for (unsigned i = 0; i < kMeetings; ++i) grid.sync();
  if (grid.thread_rank() == 0) note_end(report);
}

// One thread of a block arrives and waits for all. False if the wait was given up: then the caller waits no more, and
// the host reads it in the report.
__device__ bool meet(KernelReport* report, DeviceWord arrived, unsigned goal) {
  // Release: what the block wrote before its barrier is visible to each thread that sees the counter at the goal.
  arrived.fetch_add(1, cuda::memory_order_release);
  // Acquire: pairs with the fetch_add of every block; the __syncthreads after it passes that on to the block.
  return spin_until(report, [&] { return arrived.load(cuda::memory_order_acquire) >= goal; });
}

__global__ void __launch_bounds__(kBarrierThreads) meet_by_one_counter(KernelReport* report, unsigned* counter) {
  const DeviceWord arrived(*counter);
  bool alive = true;
  for (unsigned i = 0; i <= kMeetings; ++i) {
    __syncthreads();
    // The counter only grows, so it needs no reset between meetings.
    if (threadIdx.x == 0 && alive) alive = meet(report, arrived, (i + 1) * gridDim.x);
    __syncthreads();
    // The first meeting brings the blocks together and is not timed.
    if (i == 0 && blockIdx.x == 0 && threadIdx.x == 0) note_begin(report);
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) note_end(report);
}

}  // namespace

Samples hop(int samples) {
  const KernelTimer timer("limit.hop");
  const DeviceBuffer<Exchange> flags(2 * kPairs);
  const Shape shape = one_block_each_sm(ping_pong, 32);
  if (shape.blocks < 2) throw std::runtime_error("limit.hop needs two SMs and this GPU shows one: use a larger MIG slice");
  Samples times;
  for (unsigned number = 0; number < kPairs; ++number) {
    const Pair pair = pair_of(number, static_cast<unsigned>(shape.blocks));
    for (int i = 0; i < samples; ++i) {
      flags.fill(0, timer.stream());
      times.push_back(timer.run(shape, ping_pong, flags.get() + 2 * number, pair) / kExchanges / 2);
    }
  }
  return times;
}

Samples atomic_rate(int samples) {
  const KernelTimer timer("limit.atomic_rate");
  const DeviceBuffer<unsigned> counter(1);
  std::vector<Samples> tried;
  for (const int warps : {1, 4, 16}) {
    const Shape shape = one_block_each_sm(draw_tickets, 32 * warps);
    const double additions = 1.0 * shape.blocks * warps * kAdditions;
    Samples rates;
    for (int i = 0; i < samples; ++i) {
      counter.fill(0, timer.stream());
      rates.push_back(additions / timer.run(shape, draw_tickets, counter.get()));
    }
    tried.push_back(rates);
  }
  return best_of(tried, Better::higher);
}

Samples grid_sync(int samples) {
  const KernelTimer timer("peer.grid_sync");
  const Shape shape = one_block_each_sm(meet_by_grid_sync, kBarrierThreads);
  timer.run(shape, meet_by_grid_sync);
  Samples times;
  for (int i = 0; i < samples; ++i) times.push_back(timer.run(shape, meet_by_grid_sync) / kMeetings);
  return times;
}

Samples one_counter_barrier(int samples) {
  const KernelTimer timer("limit.one_counter_barrier");
  const DeviceBuffer<unsigned> counter(1);
  const Shape shape = one_block_each_sm(meet_by_one_counter, kBarrierThreads);
  Samples times;
  for (int i = 0; i < samples; ++i) {
    counter.fill(0, timer.stream());
    times.push_back(timer.run(shape, meet_by_one_counter, counter.get()) / kMeetings);
  }
  return times;
}

}  // namespace measure
