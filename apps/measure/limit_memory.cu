// limit.read_hbm: how fast this card reads its memory.
#include <cuda/ptx>
#include <nv/target>

#include <algorithm>
#include <cstdint>

#include "apps/measure/kernel_timer.cuh"
#include "apps/measure/limits.hpp"

namespace measure {
namespace {

namespace ptx = cuda::ptx;

constexpr std::size_t kMebibyte = std::size_t{1} << 20;
constexpr std::size_t kWeights = 2358 * kMebibyte;  // Llama-3.2-1B in bf16 has 2.472 GB
constexpr int kFill = 0x5a;
constexpr unsigned kWord = 0x5a5a5a5a;  // what every word of the buffer holds

constexpr int kLoadsInFlight = 8;  // 16-byte loads a thread has under way at once

// Bits in which any of the four words differs from what was written: reading must not be optimised away, and
// a check keeps it alive as well as any sink would.
__device__ unsigned differences(uint4 v) { return (v.x ^ kWord) | (v.y ^ kWord) | (v.z ^ kWord) | (v.w ^ kWord); }

// One block of 1024 threads an SM, so that each thread has registers for all its loads in flight.
__global__ void __launch_bounds__(1024, 1) read_by_loads(KernelReport* report, const uint4* data, std::size_t count) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  unsigned wrong = 0;
  if (threadIdx.x == 0) note_begin(report);
  for (; i + (kLoadsInFlight - 1) * stride < count; i += kLoadsInFlight * stride) {
    uint4 v[kLoadsInFlight];
#pragma unroll
    for (int k = 0; k < kLoadsInFlight; ++k) v[k] = __ldcs(data + i + k * stride);
#pragma unroll
    for (int k = 0; k < kLoadsInFlight; ++k) wrong |= differences(v[k]);
  }
  for (; i < count; i += stride) wrong |= differences(__ldcs(data + i));
  // The barrier needs every thread's last load, so the end is noted after it.
  const bool any_wrong = __syncthreads_or(wrong != 0) != 0;
  if (threadIdx.x == 0) note_end(report);
  if (threadIdx.x == 0 && any_wrong) note_wrong(report);
}

constexpr int kMaxPages = 16;

struct RingShape {
  unsigned page_bytes;
  unsigned pages;
};

// A place in the ring of pages: which page, and which way its barrier's phase bit will turn.
struct Cursor {
  unsigned page = 0;
  unsigned parity = 0;

  __device__ void advance(unsigned pages) {
    if (++page == pages) {
      page = 0;
      parity ^= 1;
    }
  }
};

// One thread's ring of pages in shared memory, filled by bulk copies.
struct Ring {
  unsigned char* pages;
  std::uint64_t* landed;  // one barrier a page: the page's bytes have arrived
  RingShape shape;

  __device__ void open() const {
    for (unsigned p = 0; p < shape.pages; ++p) ptx::mbarrier_init(&landed[p], 1);
    // The copies use the barriers through the async proxy: this fence shows them the generic writes just
    // made, and pairs with every cp_async_bulk in ask().
    ptx::fence_proxy_async(ptx::space_shared);
  }

  __device__ void ask(unsigned page, const unsigned char* source) const {
    // Before the copy, by the one thread that arrives: the phase cannot end until these bytes are counted.
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &landed[page], shape.page_bytes);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, pages + std::size_t{page} * shape.page_bytes, source,
                       shape.page_bytes, &landed[page]);
  }

  __device__ bool wait(KernelReport* report, Cursor at) const {
    return spin_until(report, [&] {
      // Acquire: pairs with the copy's complete_tx on the same barrier, and shows the page to generic reads.
      return ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cta, &landed[at.page], at.parity);
    });
  }

  __device__ bool holds_what_was_written(unsigned filled) const {
    bool right = true;
    for (unsigned p = 0; p < filled; ++p) {
      right &= *reinterpret_cast<const unsigned*>(pages + std::size_t{p} * shape.page_bytes) == kWord;
    }
    return right;
  }
};

// Streams pages first, first + step, ... of `data` through the ring. Pages are not
// read before they are overwritten: what is measured is that their bytes cross from memory to the SM. The last pages
// are read.
[[maybe_unused]] __device__ inline void stream_pages(KernelReport* report, const Ring& ring, const unsigned char* data,
                                                     unsigned pages) {
  const std::size_t step = std::size_t{gridDim.x} * ring.shape.page_bytes;
  const unsigned mine = (pages - blockIdx.x + gridDim.x - 1) / gridDim.x;
  const unsigned char* source = data + std::size_t{blockIdx.x} * ring.shape.page_bytes;
  Cursor ask, wait;
  ring.open();
  unsigned asked = 0;
  for (unsigned landed = 0; landed < mine; ++landed) {
    for (; asked < mine && asked < landed + ring.shape.pages; ++asked, source += step) {
      ring.ask(ask.page, source);
      ask.advance(ring.shape.pages);
    }
    if (!ring.wait(report, wait)) return;
    wait.advance(ring.shape.pages);
  }
  note_end(report);
  if (!ring.holds_what_was_written(min(mine, ring.shape.pages))) note_wrong(report);
}

__global__ void __launch_bounds__(32)
    read_by_bulk_copies(KernelReport* report, const unsigned char* data, unsigned pages, RingShape shape) {
  extern __shared__ __align__(128) unsigned char shared_pages[];
  [[maybe_unused]] __shared__ std::uint64_t landed[kMaxPages];
  if (threadIdx.x != 0) return;
  note_begin(report);
  // Earlier GPUs have no bulk copies; the host does not launch this there.
  NV_IF_TARGET(NV_PROVIDES_SM_90, (stream_pages(report, Ring{shared_pages, landed, shape}, data, pages);))
}

// All of the weights, or half of what is free on a smaller card; whole mebibytes, which every page size
// divides.
std::size_t bytes_to_read() {
  std::size_t available = 0, total = 0;
  check_cuda(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
  return std::max(std::min(kWeights, available / 2 / kMebibyte * kMebibyte), kMebibyte);
}

// The first launch loads the kernel and warms caches of addresses; it is not counted.
template <class Launch>
Samples bandwidth(std::size_t bytes, int count, Launch launch) {
  launch();
  Samples samples;
  for (int i = 0; i < count; ++i) samples.push_back(static_cast<double>(bytes) / launch() / 1000);
  return samples;
}

using Weights = DeviceBuffer<unsigned char>;

void try_loads(const KernelTimer& timer, const Weights& data, int count, std::vector<Samples>& tried) {
  const auto* words = reinterpret_cast<const uint4*>(data.get());
  const int sms = sm_count();
  for (const Shape& shape : {Shape{.blocks = sms, .threads = 512}, Shape{.blocks = sms, .threads = 1024},
                             Shape{.blocks = 2 * sms, .threads = 512}}) {
    tried.push_back(
        bandwidth(data.bytes(), count, [&] { return timer.run(shape, read_by_loads, words, data.bytes() / sizeof(uint4)); }));
  }
}

// More in flight is not always better: with much of it requests wait for each other (48 KB an SM was best on
// an H200, 2026-11-20), so the window is what the shapes differ in.
void try_bulk_copies(const KernelTimer& timer, const Weights& data, int count, std::vector<Samples>& tried) {
  const Shape launch = one_block_each_sm(read_by_bulk_copies, 32);
  for (const RingShape ring : {RingShape{16384, 3}, RingShape{16384, 4}, RingShape{16384, 6}, RingShape{16384, 12},
                               RingShape{32768, 2}, RingShape{32768, 6}}) {
    if (ring.page_bytes * ring.pages > static_cast<unsigned>(launch.shared_bytes)) continue;
    const auto pages = static_cast<unsigned>(data.bytes() / ring.page_bytes);
    tried.push_back(
        bandwidth(data.bytes(), count, [&] { return timer.run(launch, read_by_bulk_copies, data.get(), pages, ring); }));
  }
}

}  // namespace

Samples read_hbm(int samples) {
  const KernelTimer timer("limit.read_hbm");
  const Weights data(bytes_to_read());
  data.fill(kFill, timer.stream());
  std::vector<Samples> tried;
  try_loads(timer, data, samples, tried);
  if (device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9) try_bulk_copies(timer, data, samples, tried);
  return best_of(tried, Better::higher);
}

}  // namespace measure
