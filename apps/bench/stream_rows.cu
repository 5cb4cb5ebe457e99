// Passes over arrays, y = a x + y, by block.stream() and by block.for_each(), and by plain kernels. Part of the runtime's rows,
// see runtime_rows.hpp.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "apps/bench/runtime_rows.hpp"
#include "apps/measure/cuda_objects.hpp"

namespace bench {

using namespace flywheel;
using measure::Samples;

namespace {

constexpr float kA = 3;

struct Saxpy {
  const float* x;
  float* y;
  Chunk chunk;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    float* const to = y + chunk.first;
    block.stream(chunk.count, reads(x + chunk.first, to), writes(to), [](float a, float b) { return kA * a + b; });
  }
};

/// The same by all workers at once, which is how to pass over more than L2 holds.
struct SaxpyShared {
  const float* x;
  float* y;
  std::uint64_t n;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.stream(share_of(n, block), reads(x, y), writes(y), [](float a, float b) { return kA * a + b; });
  }
};

__host__ __device__ float4 saxpy_of(const float4& a, const float4& b) {
  return {kA * a.x + b.x, kA * a.y + b.y, kA * a.z + b.z, kA * a.w + b.w};
}

/// Chunks begin at a multiple of 32 elements, and all elements are a multiple of 4.
struct SaxpyForEach {
  const float* x;
  float* y;
  Chunk chunk;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const auto* from = reinterpret_cast<const float4*>(x + chunk.first);
    auto* to = reinterpret_cast<float4*>(y + chunk.first);
    block.for_each(static_cast<int>(chunk.count / 4), [=](int i) { to[i] = saxpy_of(from[i], to[i]); });
  }
};

__global__ void saxpy_kernel(const float4* x, float4* y, std::size_t count) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) y[i] = saxpy_of(x[i], y[i]);
}

/// Random whole numbers, small enough for exact sums.
struct Numbers {
  std::vector<float> x, y;

  explicit Numbers(std::size_t n) : x(n), y(n) {
    std::mt19937_64 random(std::random_device{}());
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t bits = random();
      x[i] = static_cast<float>(bits % 2001) - 1000;
      y[i] = static_cast<float>((bits >> 32) % 2001) - 1000;
    }
  }
  void check(const std::vector<float>& found) const {
    for (std::size_t i = 0; i < x.size(); ++i)
      if (found[i] != kA * x[i] + y[i]) throw std::runtime_error("y = a x + y is wrong in element " + std::to_string(i));
  }
  /// GB/s: two arrays are read and one is written.
  Samples rates(Samples us) const {
    for (double& time : us) time = 3.0 * sizeof(float) * static_cast<double>(x.size()) / time / 1000;
    return us;
  }
};

/// A chunk for each worker, or more of about 512 KiB in each array.
std::uint32_t chunks_for(std::size_t n, std::uint32_t workers) {
  constexpr std::size_t kElements = 128 << 10;
  return workers * static_cast<std::uint32_t>(std::max<std::size_t>(n / workers / kElements, 1));
}

/// Of a graph of such tasks over two arrays, from submission to result.
template <class... Tasks, class AddTasks>
Samples by_graph(std::size_t n, int samples, AddTasks&& add_tasks) {
  const Numbers numbers(n);
  Options options;
  options.target = Target::gpu;
  options.mode = Mode::resident;
  options.heap_bytes = 2 * n * sizeof(float) + (std::size_t{1} << 20);
  Runtime rt = start<Tasks...>(options);
  const auto x = rt.upload(numbers.x), y = rt.upload(numbers.y);
  Graph graph;
  add_tasks(graph, rt.workers(), x.data(), y.data());
  const Executable exec = rt.load(graph);
  rt.submit(exec).wait();
  numbers.check(y.read());
  return numbers.rates(measure::time_each(10, samples, [&] { rt.submit(exec).wait(); }));
}
template <class Task>
Samples by_tasks(std::size_t n, int samples) {
  return by_graph<Saxpy, SaxpyForEach>(n, samples, [=](Graph& graph, std::uint32_t workers, const float* x, float* y) {
    const std::uint32_t chunks = chunks_for(n, workers);
    for (std::uint32_t i = 0; i < chunks; ++i) graph.add(Task{x, y, chunk_of(n, i, chunks)});
  });
}
Samples by_all_workers(std::size_t n, int samples) {
  return by_graph<SaxpyShared>(n, samples, [=](Graph& graph, std::uint32_t, const float* x, float* y) {
    graph.add_grid(SaxpyShared{x, y, n});
  });
}

/// The best of a thread for each vector, and of some blocks for each SM.
Samples by_kernel(std::size_t n, int samples) {
  constexpr unsigned kThreads = 256;
  const Numbers numbers(n);
  const measure::Stream stream;
  const measure::DeviceBuffer<float> x(n), y(n);
  const auto copy = [&](void* to, const void* from) {
    measure::check_cuda(cudaMemcpyAsync(to, from, n * sizeof(float), cudaMemcpyDefault, stream.get()), "cudaMemcpyAsync");
    stream.synchronize();
  };
  const auto sms = static_cast<unsigned>(measure::sm_count());
  std::vector<Samples> tried;
  for (const unsigned blocks : {static_cast<unsigned>(n / 4 / kThreads), 8 * sms, 4 * sms}) {
    const auto launch = [&] {
      saxpy_kernel<<<blocks, kThreads, 0, stream.get()>>>(reinterpret_cast<const float4*>(x.get()),
                                                          reinterpret_cast<float4*>(y.get()), n / 4);
      measure::check_cuda(cudaGetLastError(), "a launch");
      stream.synchronize();
    };
    copy(x.get(), numbers.x.data());
    copy(y.get(), numbers.y.data());
    launch();
    std::vector<float> found(n);
    copy(found.data(), y.get());
    numbers.check(found);
    tried.push_back(numbers.rates(measure::time_each(10, samples, launch)));
  }
  return measure::best_of(tried, measure::Better::higher);
}

}  // namespace

std::vector<measure::Measurement> stream_rows(const measure::Effort& effort) {
  constexpr std::size_t kMi = std::size_t{1} << 20;
  const auto take = [&](Samples (*measure)(std::size_t, int), std::size_t n, int full) {
    return [measure, n, samples = effort.samples(full)] { return measure(n, samples); };
  };
  // 1 Mi floats stay in L2: memory is no limit.
  return {
      {.name = "stream.saxpy_1Mi", .unit = "GB/s", .peer = "peer.saxpy_1Mi", .round = take(by_tasks<Saxpy>, kMi, 500)},
      {.name = "stream.saxpy_10Mi",
       .unit = "GB/s",
       .peer = "peer.saxpy_10Mi",
       .limit = "limit.copy_hbm",
       .round = take(by_tasks<Saxpy>, 10 * kMi, 200)},
      {.name = "stream.saxpy_64Mi",
       .unit = "GB/s",
       .peer = "peer.saxpy_64Mi",
       .limit = "limit.copy_hbm",
       .round = take(by_all_workers, 64 * kMi, 100)},
      {.name = "stream.saxpy_64Mi.tasks",
       .unit = "GB/s",
       .peer = "peer.saxpy_64Mi",
       .limit = "limit.copy_hbm",
       .round = take(by_tasks<Saxpy>, 64 * kMi, 100)},
      {.name = "stream.for_each_float4_64Mi",
       .unit = "GB/s",
       .peer = "peer.saxpy_64Mi",
       .limit = "limit.copy_hbm",
       .round = take(by_tasks<SaxpyForEach>, 64 * kMi, 100)},
      {.name = "peer.saxpy_1Mi", .unit = "GB/s", .round = take(by_kernel, kMi, 500)},
      {.name = "peer.saxpy_10Mi", .unit = "GB/s", .limit = "limit.copy_hbm", .round = take(by_kernel, 10 * kMi, 200)},
      {.name = "peer.saxpy_64Mi", .unit = "GB/s", .limit = "limit.copy_hbm", .round = take(by_kernel, 64 * kMi, 100)},
  };
}

}  // namespace bench
