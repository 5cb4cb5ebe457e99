// Measures the rungs: kernels by events, so that launching is no part of it.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "apps/ladder/problem.hpp"
#include "apps/ladder/rows.hpp"
#include "apps/ladder/rungs.hpp"
#include "apps/ladder/tasks.hpp"
#include "apps/measure/cublas.hpp"
#include "apps/measure/cuda_objects.hpp"

namespace ladder {
namespace {

using measure::check_cuda;

constexpr std::chrono::seconds kMostOfALaunch{20};

/// A moment on a stream.
class TimedEvent {
 public:
  TimedEvent() { check_cuda(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~TimedEvent() { measure::report_cuda(cudaEventDestroy(event_), "cudaEventDestroy"); }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;

  void record(const measure::Stream& stream) const { check_cuda(cudaEventRecord(event_, stream.get()), "cudaEventRecord"); }
  /// Waits for it. A kernel that does not end cannot be stopped: the program ends, and names it.
  void wait(const std::string& rung) const {
    const auto began = std::chrono::steady_clock::now();
    cudaError_t status = cudaErrorNotReady;
    while ((status = cudaEventQuery(event_)) == cudaErrorNotReady) {
      if (std::chrono::steady_clock::now() - began < kMostOfALaunch) continue;
      std::fprintf(stderr, "ladder: %s has not ended after 20 s; the program ends here\n", rung.c_str());
      std::_Exit(1);
    }
    check_cuda(status, "cudaEventQuery", "The rung that ran last has failed: run it alone under compute-sanitizer");
  }
  double ms_since(const TimedEvent& begin) const {
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, begin.event_, event_), "cudaEventElapsedTime");
    return double{ms};
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// The matrices, in device memory, and what C must be.
class Bench {
 public:
  explicit Bench(int n)
      : n_(n),
        values_{draw_values(n), draw_values(n)},
        expected_(values_[0], values_[1], n),
        a_(values_[0].size()),
        b_(a_.bytes() / sizeof(float)),
        c_(a_.bytes() / sizeof(float)) {
    copy(a_.get(), values_[0].data(), values_[0].size());
    copy(b_.get(), values_[1].data(), values_[1].size());
  }

  /// One product that is checked, and the rates of `samples` more: TFLOP/s.
  measure::Samples rates(const std::string& rung, const Launch& launch, int samples) const {
    c_.fill(0xff, stream_);
    time_ms(rung, launch);
    std::vector<float> found(values_[0].size());
    copy(found.data(), c_.get(), found.size());
    expected_.check(found, rung);
    measure::Samples rates;
    for (int i = 0; i < samples; ++i) rates.push_back(2e-9 * n_ * n_ * n_ / time_ms(rung, launch));
    return rates;
  }
  Problem problem() const { return {a_.get(), b_.get(), c_.get(), n_}; }

 private:
  double time_ms(const std::string& rung, const Launch& launch) const {
    const TimedEvent begin, end;
    begin.record(stream_);
    launch(stream_.get());
    end.record(stream_);
    end.wait(rung);
    return end.ms_since(begin);
  }
  void copy(void* to, const void* from, std::size_t count) const {
    check_cuda(cudaMemcpyAsync(to, from, count * sizeof(float), cudaMemcpyDefault, stream_.get()), "cudaMemcpyAsync");
    stream_.synchronize();
  }

  int n_;
  std::vector<float> values_[2];
  Expected expected_;
  measure::Stream stream_;
  measure::DeviceBuffer<float> a_, b_, c_;
};

/// The matrices are there for a round: the product as tasks wants the memory, too.
measure::Samples rates_of(const Rung& rung, int n, int samples) {
  const int major = measure::device_attribute(cudaDevAttrComputeCapabilityMajor);
  if (rung.needs_hopper && major != 9)
    throw std::runtime_error("needs compute capability 9.0, and this GPU has " + std::to_string(major) +
                             ".x: a rung up to 5 runs");
  const Bench bench(n);
  return bench.rates(rung.name, rung.prepare(bench.problem()), samples);
}

measure::Samples rates_of(const measure::Cublas& cublas, int n, int samples) {
  const Bench bench(n);
  const Problem p = bench.problem();
  return bench.rates(
      "cuBLAS", [&](Stream stream) { cublas.multiply_floats(stream, p.a, p.b, p.c, static_cast<std::uint32_t>(n)); }, samples);
}

}  // namespace

std::vector<Step> steps(const measure::Effort& effort, int n) {
  const std::shared_ptr<const measure::Cublas> cublas = measure::Cublas::find();
  const std::string peer = "peer.cublas_floats_" + std::to_string(n);
  const int samples = effort.samples(20);
  std::vector<Step> all;
  for (const Rung& rung : rungs())
    all.push_back({{.name = std::string("ladder.") + rung.name,
                    .unit = "TFLOP/s",
                    .peer = cublas ? peer : "",
                    .round = [&rung, n, samples] { return rates_of(rung, n, samples); }},
                   rung.idea});
  all.push_back({{.name = "ladder.tasks", .unit = "TFLOP/s", .round = [n, samples] { return product_rates(n, samples); }},
                 "bf16 on tensor cores, as tasks on the resident runtime"});
  if (cublas)
    all.push_back({{.name = peer, .unit = "TFLOP/s", .round = [cublas, n, samples] { return rates_of(*cublas, n, samples); }},
                   "cuBLAS, floats without tensor cores"});
  return all;
}

}  // namespace ladder
