// limit.copy_hbm: how fast this card reads and writes its memory at the same time.
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "apps/measure/cuda_objects.hpp"
#include "apps/measure/limits.hpp"

namespace measure {
namespace {

constexpr std::size_t kBytes = std::size_t{256} << 20;
constexpr int kCopies = 8;  // of a sample, one right after the other: launching is little of it
constexpr unsigned char kByte = 0x5a;

template <int kLoads>
__global__ void copy_by_loads(uint4* to, const uint4* from, std::size_t count) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i + (kLoads - 1) * stride < count; i += kLoads * stride) {
    uint4 v[kLoads];
#pragma unroll
    for (int k = 0; k < kLoads; ++k) v[k] = __ldcs(from + i + k * stride);
#pragma unroll
    for (int k = 0; k < kLoads; ++k) __stcs(to + i + k * stride, v[k]);
  }
  for (; i < count; i += stride) to[i] = from[i];
}

/// A point in the work of a stream whose time can be asked.
class TimedEvent {
 public:
  TimedEvent() {
    cudaEvent_t event = nullptr;
    check_cuda(cudaEventCreate(&event), "cudaEventCreate");
    event_.reset(event);
  }
  void record(const Stream& stream) const { check_cuda(cudaEventRecord(event_.get(), stream.get()), "cudaEventRecord"); }
  double us_since(const TimedEvent& begin) const {
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, begin.event_.get(), event_.get()), "cudaEventElapsedTime");
    return 1000.0 * ms;
  }

 private:
  detail::Owner<cudaEvent_t> event_;
};

struct Buffers {
  Stream stream;
  DeviceBuffer<unsigned char> from{kBytes}, to{kBytes};
  TimedEvent begin, end;

  /// All bytes of the target are there.
  void check() const {
    std::vector<unsigned char> found(kBytes);
    check_cuda(cudaMemcpyAsync(found.data(), to.get(), kBytes, cudaMemcpyDeviceToHost, stream.get()), "cudaMemcpyAsync");
    stream.synchronize();
    if (!std::all_of(found.begin(), found.end(), [](unsigned char byte) { return byte == kByte; }))
      throw std::runtime_error("limit.copy_hbm: a copy is wrong. Do not trust this GPU: see nvidia-smi -q -d ECC");
  }
  /// GB/s of `samples` times kCopies copies.
  template <class Copy>
  Samples take(int samples, Copy&& copy) const {
    to.fill(0, stream);
    copy();
    check();
    Samples rates;
    for (int s = 0; s < samples; ++s) {
      begin.record(stream);
      for (int c = 0; c < kCopies; ++c) copy();
      end.record(stream);
      stream.synchronize();
      rates.push_back(2.0 * kBytes * kCopies / end.us_since(begin) / 1000);
    }
    return rates;
  }
};

template <int kLoads>
void try_loads(const Buffers& buffers, int samples, std::vector<Samples>& tried) {
  constexpr std::size_t kCount = kBytes / sizeof(uint4);
  constexpr unsigned kThreads = 512;
  const auto* from = reinterpret_cast<const uint4*>(buffers.from.get());
  auto* to = reinterpret_cast<uint4*>(buffers.to.get());
  const auto sms = static_cast<unsigned>(sm_count());
  const auto all = static_cast<unsigned>(kCount / kLoads / kThreads);
  for (const unsigned blocks : {2 * sms, 4 * sms, 8 * sms, all})
    tried.push_back(buffers.take(samples, [&] {
      copy_by_loads<kLoads><<<blocks, kThreads, 0, buffers.stream.get()>>>(to, from, kCount);
      check_cuda(cudaGetLastError(), "a launch");
    }));
}

}  // namespace

Samples copy_hbm(int samples) {
  const Buffers buffers;
  buffers.from.fill(kByte, buffers.stream);
  std::vector<Samples> tried;
  tried.push_back(buffers.take(samples, [&] {
    check_cuda(cudaMemcpyAsync(buffers.to.get(), buffers.from.get(), kBytes, cudaMemcpyDeviceToDevice, buffers.stream.get()),
               "cudaMemcpyAsync");
  }));
  try_loads<1>(buffers, samples, tried);
  try_loads<4>(buffers, samples, tried);
  try_loads<8>(buffers, samples, tried);
  return best_of(tried, Better::higher);
}

}  // namespace measure
