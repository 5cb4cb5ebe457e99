// Two computations that take turns over one array, 1,000 times, and a softmax in two stages: as one grid task whose workers
// meet in between, and as kernels. Part of the runtime's rows, see runtime_rows.hpp.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <cmath>
#include <random>
#include <stdexcept>

#include "apps/bench/runtime_rows.hpp"
#include "apps/measure/cuda_objects.hpp"

namespace bench {

using namespace flywheel;
using measure::Samples;

namespace {

constexpr std::uint32_t kTurns = 1'000;
constexpr unsigned kTurnThreads = 256;

// Whole numbers: every result is exact.
__host__ __device__ std::uint32_t there(std::uint32_t x) { return x * 1'664'525u + 1'013'904'223u; }
__host__ __device__ std::uint32_t back(std::uint32_t y) { return (y ^ y >> 15) * 0x2c1b3c6du; }

/// The way back takes the share that another worker wrote: without a meeting in between it would read old values.
struct Turns {
  std::uint32_t *x, *y;
  std::uint64_t n;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const std::uint32_t workers = block.workers(), worker = block.worker();
    const Share mine{n, worker, workers}, other{n, (worker + 1) % workers, workers};
    for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
      block.stream(mine, reads(x), writes(y), there);
      if (!block.grid_sync()) return;
      block.stream(other, reads(y), writes(x), back);
      if (!block.grid_sync()) return;
    }
  }
};

template <std::uint32_t (*kStep)(std::uint32_t)>
__global__ void turn_kernel(const uint4* from, uint4* to, std::uint64_t vectors) {
  const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= vectors) return;
  const uint4 v = from[i];
  to[i] = {kStep(v.x), kStep(v.y), kStep(v.z), kStep(v.w)};
}

/// Random numbers, and what comes of them.
struct Words {
  std::vector<std::uint32_t> x;
  explicit Words(std::size_t n) : x(n) {
    std::mt19937 random(std::random_device{}());
    for (std::uint32_t& word : x) word = random();
  }
  /// Looks at the first 100 elements, the last 100, and 2,000 between them.
  void check(const std::vector<std::uint32_t>& found, std::uint32_t passes) const {
    std::mt19937_64 random(std::random_device{}());
    for (std::size_t k = 0; k < 2'200; ++k) {
      const std::size_t i = k < 100 ? k : k < 200 ? x.size() - k + 99 : random() % x.size();
      std::uint32_t want = x[i];
      for (std::uint32_t turn = 0; turn < passes * kTurns; ++turn) want = back(there(want));
      if (found[i] != want) throw std::runtime_error("after all turns element " + std::to_string(i) + " is wrong");
    }
  }
};

Samples in_ms(Samples us) {
  for (double& time : us) time /= 1'000;
  return us;
}

/// The kernels of all turns, in a stream or as a CUDA graph.
class TurnKernels {
 public:
  explicit TurnKernels(std::size_t n) : words_(n), x_(n), y_(n), vectors_(n / 4) { copy(x_.get(), words_.x.data()); }
  void launch() const {
    const auto blocks = static_cast<unsigned>((vectors_ + kTurnThreads - 1) / kTurnThreads);
    for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
      turn_kernel<there><<<blocks, kTurnThreads, 0, stream_.get()>>>(vectors(x_), vectors(y_), vectors_);
      turn_kernel<back><<<blocks, kTurnThreads, 0, stream_.get()>>>(vectors(y_), vectors(x_), vectors_);
    }
    measure::check_cuda(cudaGetLastError(), "a launch");
  }
  Samples by_launches(int samples) const {
    return times(samples, [&] { launch(); });
  }
  Samples by_graph(int samples) const {
    const measure::Graph graph;
    const auto blocks = static_cast<int>((vectors_ + kTurnThreads - 1) / kTurnThreads);
    uint4 *x = vectors(x_), *y = vectors(y_);
    std::uint64_t count = vectors_;
    void *to_y[] = {&x, &y, &count}, *to_x[] = {&y, &x, &count};
    cudaGraphNode_t last = nullptr;
    const auto add = [&](const void* kernel, void** arguments) {
      last = graph.add(kernel, blocks, kTurnThreads, {&last, last ? 1u : 0u}, arguments);
    };
    for (std::uint32_t turn = 0; turn < kTurns; ++turn) {
      add(reinterpret_cast<const void*>(turn_kernel<there>), to_y);
      add(reinterpret_cast<const void*>(turn_kernel<back>), to_x);
    }
    const measure::GraphExec exec(graph, stream_);
    return times(samples, [&] { exec.launch(stream_); });
  }

 private:
  static uint4* vectors(const measure::DeviceBuffer<std::uint32_t>& buffer) { return reinterpret_cast<uint4*>(buffer.get()); }
  void copy(void* to, const void* from) const {
    measure::check_cuda(cudaMemcpyAsync(to, from, x_.bytes(), cudaMemcpyDefault, stream_.get()), "cudaMemcpyAsync");
    stream_.synchronize();
  }
  template <class Launch>
  Samples times(int samples, Launch&& launch) const {
    launch();
    std::vector<std::uint32_t> found(words_.x.size());
    copy(found.data(), x_.get());
    words_.check(found, 1);
    return in_ms(measure::time_each(1, samples, [&] {
      launch();
      stream_.synchronize();
    }));
  }

  const Words words_;
  const measure::Stream stream_;
  const measure::DeviceBuffer<std::uint32_t> x_, y_;
  const std::uint64_t vectors_;
};

// ---- softmax in two stages ----

/// The greatest value so far, and the sum of exp(value - greatest): of two parts in any order (Milakov, Gimelshein, 2018).
struct Norm {
  float greatest, sum;
};
__host__ __device__ Norm merge(const Norm& a, const Norm& b) {
  const bool first = a.greatest > b.greatest;
  const float less = exp2f(-1.44269504f * fabsf(a.greatest - b.greatest));  // one of the two factors is 1
  return {first ? a.greatest : b.greatest, first ? a.sum + b.sum * less : b.sum + a.sum * less};
}
/// `scale`: 1 / the sum.
__host__ __device__ float softmax_of(float value, float greatest, float scale) {
  return exp2f(1.44269504f * (value - greatest)) * scale;
}
constexpr Norm kNoNorm{-3e38f, 0};

struct Softmax {
  const float* x;
  float* y;
  Norm* parts;  // one for each worker
  std::uint64_t n;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const auto join = [](const Norm& a, const Norm& b) { return merge(a, b); };
    const Norm part = block.stream_reduce(share_of(n, block), reads(x), kNoNorm, join, [](float value) {
      return Norm{value, 1};
    });
    if (block.leader()) parts[block.worker()] = part;
    if (!block.grid_sync()) return;
    Norm all = kNoNorm;
    block.for_each(static_cast<int>(block.workers()), [&](int worker) { all = merge(all, parts[worker]); });
    all = block.reduce(all, join);
    const float greatest = all.greatest, scale = 1 / all.sum;
    block.stream(share_of(n, block), reads(x), writes(y), [=](float value) { return softmax_of(value, greatest, scale); });
  }
};

// ---- on the runtime: one kernel for both ----

Runtime start_with_heap(std::size_t bytes) {
  flywheel::Options options;
  options.target = Target::gpu;
  options.mode = Mode::resident;
  options.heap_bytes = bytes + (std::size_t{1} << 20);
  return start<Turns, Softmax>(options);
}

Samples turns_by_task(std::size_t n, int samples) {
  const Words words(n);
  Runtime rt = start_with_heap(2 * n * sizeof(std::uint32_t));
  auto x = rt.upload(words.x);
  const auto y = rt.allocate<std::uint32_t>(n);
  flywheel::Graph graph;
  graph.add_grid(Turns{x.data(), y.data(), n});
  const Executable exec = rt.load(graph);
  rt.submit(exec).wait();
  words.check(x.read(), 1);
  return in_ms(measure::time_each(1, samples, [&] { rt.submit(exec).wait(); }));
}

void check_softmax(const std::vector<float>& x, const std::vector<float>& y) {
  double greatest = -1e300, sum = 0;
  for (const float value : x) greatest = std::fmax(greatest, value);
  for (const float value : x) sum += std::exp(value - greatest);
  for (std::size_t i = 0; i < x.size(); i += 997) {
    const double want = std::exp(x[i] - greatest) / sum;
    if (!(std::fabs(y[i] - want) <= 1e-4 * want))
      throw std::runtime_error("softmax: element " + std::to_string(i) + " is wrong");
  }
}

/// GB/s: the array is read twice and written once.
Samples softmax(std::size_t n, int samples) {
  std::vector<float> x(n);
  std::mt19937 random(std::random_device{}());
  for (float& value : x) value = static_cast<float>(random() % 20'001) / 1'000 - 10;
  Runtime rt = start_with_heap(2 * n * sizeof(float));
  const auto from = rt.upload(x);
  const auto to = rt.allocate<float>(n);
  const auto parts = rt.allocate<Norm>(rt.workers());
  flywheel::Graph graph;
  graph.add_grid(Softmax{from.data(), to.data(), parts.data(), n});
  const Executable exec = rt.load(graph);
  rt.submit(exec).wait();
  check_softmax(x, to.read());
  Samples rates = measure::time_each(5, samples, [&] { rt.submit(exec).wait(); });
  for (double& rate : rates) rate = 3.0 * sizeof(float) * static_cast<double>(n) / rate / 1'000;
  return rates;
}

}  // namespace

std::vector<measure::Measurement> phase_rows(const measure::Effort& effort) {
  std::vector<measure::Measurement> rows;
  for (const auto& [name, n, full] :
       {std::tuple{"turns_100k", std::size_t{100'000}, 50}, std::tuple{"turns_10M", std::size_t{10'000'000}, 10}}) {
    const int samples = effort.samples(full);
    const std::string graph = "peer." + std::string(name) + ".cuda_graph", launches = "peer." + std::string(name) + ".launches";
    rows.push_back({.name = "phases." + std::string(name), .unit = "ms", .peer = graph, .round = [=, n = n] {
                      return turns_by_task(n, samples);
                    }});
    rows.push_back({.name = graph, .unit = "ms", .round = [=, n = n] { return TurnKernels(n).by_graph(samples); }});
    rows.push_back({.name = launches, .unit = "ms", .round = [=, n = n] { return TurnKernels(n).by_launches(samples); }});
  }
  rows.push_back(
      {.name = "phases.softmax_64Mi", .unit = "GB/s", .limit = "limit.copy_hbm", .round = [samples = effort.samples(50)] {
         return softmax(std::size_t{64} << 20, samples);
       }});
  return rows;
}

}  // namespace bench
