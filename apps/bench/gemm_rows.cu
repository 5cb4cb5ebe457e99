// Matrix products of bf16 as tasks, submission included, and by cuBLAS where it is found. Part of the runtime's rows, see
// runtime_rows.hpp.
#include <flywheel/gemm.cuh>
#include <flywheel/task.cuh>

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

#include "apps/bench/runtime_rows.hpp"
#include "apps/measure/cublas.hpp"
#include "apps/measure/cuda_objects.hpp"

namespace bench {

using namespace flywheel;
using measure::Samples;

namespace {

struct Shape {
  std::uint32_t m, n, k;

  double tera() const { return 2e-12 * m * n * k; }
};

/// Values of the card, for any sizes: parts of one list.
const std::vector<Bf16>& values(std::size_t least) {
  static std::vector<Bf16> all;
  static std::mt19937_64 random(std::random_device{}());
  std::normal_distribution<float> normal;
  while (all.size() < least) all.push_back(Bf16::nearest(normal(random)));
  return all;
}

/// So many operands in turn that none is in L2 when its turn comes.
constexpr std::size_t kApart = std::size_t{300} << 20;
std::size_t copies_of(const Shape& of) {
  const std::size_t bytes = (std::size_t{of.m} + of.n) * of.k * sizeof(Bf16);
  return std::max<std::size_t>((kApart + bytes - 1) / bytes, 1);
}

/// A few values of C, against sums in double.
void check(const Shape& of, const std::vector<Bf16>& c) {
  const std::vector<Bf16>& all = values(0);
  std::mt19937 random(std::random_device{}());
  for (int tries = 0; tries < 200; ++tries) {
    const std::size_t i = random() % of.m, j = random() % of.n;
    double sum = 0;
    for (std::size_t d = 0; d < of.k; ++d) sum += double{all[i * of.k + d].value()} * double{all[j * of.k + d + 8].value()};
    if (std::abs(c[i * of.n + j].value() - sum) > 0.01 * (std::sqrt(of.k) + std::abs(sum)))
      throw std::runtime_error("a product is wrong in row " + std::to_string(i) + ", column " + std::to_string(j));
  }
}

/// The rate of `run(i)`, where i counts the copies round and round: TFLOP/s.
template <class Run>
Samples rates(const Shape& of, int samples, Run&& run) {
  const std::size_t copies = copies_of(of);
  std::size_t next = 0;
  Samples us = measure::time_each(5, samples, [&] { run(next++ % copies); });
  for (double& time : us) time = of.tera() / time * 1e6;
  return us;
}

Samples by_tasks(const Shape& of, int samples) {
  const std::size_t a_values = std::size_t{of.m} * of.k, b_values = std::size_t{of.n} * of.k, copies = copies_of(of);
  const std::vector<Bf16>& all = values(std::max(a_values, b_values + 8));
  Options options;
  options.target = Target::gpu;
  options.mode = Mode::resident;
  options.scratch_bytes = kGemmScratchBytes;
  options.heap_bytes = copies * (a_values + b_values) * sizeof(Bf16) + (std::size_t{512} << 20);
  Runtime rt = start<Gemm<>>(options);
  std::vector<Buffer<Bf16>> operands;
  std::vector<Product> products;
  std::vector<Executable> executables;
  const auto c = rt.allocate<Bf16>(std::size_t{of.m} * of.n);
  for (std::size_t i = 0; i < copies; ++i) {
    operands.push_back(rt.allocate<Bf16>(a_values));
    operands.back().write(all.data(), a_values);
    operands.push_back(rt.allocate<Bf16>(b_values));
    operands.back().write(all.data() + 8, b_values);
    products.emplace_back(rt, Matrix{operands[2 * i].data(), of.m, of.k}, Matrix{operands[2 * i + 1].data(), of.n, of.k},
                          Matrix{c.data(), of.m, of.n});
    Graph graph;
    products.back().add_to(graph);
    executables.push_back(rt.load(graph));
  }
  rt.submit(executables[0]).wait();
  check(of, c.read());
  return rates(of, samples, [&](std::size_t i) { rt.submit(executables[i]).wait(); });
}

Samples by_cublas(const std::shared_ptr<const measure::Cublas>& cublas, const Shape& of, int samples) {
  const std::size_t a_values = std::size_t{of.m} * of.k, b_values = std::size_t{of.n} * of.k, copies = copies_of(of);
  const std::vector<Bf16>& all = values(std::max(a_values, b_values + 8));
  const measure::Stream stream;
  std::vector<std::unique_ptr<measure::DeviceBuffer<Bf16>>> operands;
  const measure::DeviceBuffer<Bf16> c(std::size_t{of.m} * of.n);
  const auto copy = [&](void* to, const void* from, std::size_t count) {
    measure::check_cuda(cudaMemcpyAsync(to, from, count * sizeof(Bf16), cudaMemcpyDefault, stream.get()), "cudaMemcpyAsync");
    stream.synchronize();
  };
  for (std::size_t i = 0; i < copies; ++i) {
    operands.push_back(std::make_unique<measure::DeviceBuffer<Bf16>>(a_values));
    copy(operands.back()->get(), all.data(), a_values);
    operands.push_back(std::make_unique<measure::DeviceBuffer<Bf16>>(b_values));
    copy(operands.back()->get(), all.data() + 8, b_values);
  }
  const auto run = [&](std::size_t i) {
    cublas->multiply(stream.get(), operands[2 * i]->get(), operands[2 * i + 1]->get(), c.get(), of.m, of.n, of.k);
    stream.synchronize();
  };
  run(0);
  std::vector<Bf16> found(std::size_t{of.m} * of.n);
  copy(found.data(), c.get(), found.size());
  check(of, found);
  return rates(of, samples, run);
}

/// Products of many sizes at once: row counts of 16 to 2,048, drawn with seed 1, through layers of kWide x kWide of their own.
constexpr std::uint32_t kGroup = 64, kWide = 2048;
std::vector<Shape> group() {
  std::mt19937 random(1);
  std::vector<Shape> shapes;
  for (std::uint32_t i = 0; i < kGroup; ++i)
    shapes.push_back({16 + static_cast<std::uint32_t>(random() % (2048 - 16 + 1)), kWide, kWide});
  return shapes;
}
Samples group_rates(Samples us) {
  double tera = 0;
  for (const Shape& one : group()) tera += one.tera();
  for (double& time : us) time = tera / time * 1e6;
  return us;
}

Samples group_by_tasks(int samples) {
  const std::vector<Bf16>& all = values(std::size_t{kWide} * kWide + 8);
  Options options;
  options.target = Target::gpu;
  options.mode = Mode::resident;
  options.scratch_bytes = kGemmScratchBytes;
  options.heap_bytes = std::size_t{2} << 30;
  Runtime rt = start<Gemm<>>(options);
  std::vector<Buffer<Bf16>> buffers;
  std::vector<Product> products;
  Graph graph;
  const auto buffer = [&](std::size_t count, std::size_t from) {
    buffers.push_back(rt.allocate<Bf16>(count));
    if (from != ~std::size_t{0}) buffers.back().write(all.data() + from, count);
    return buffers.back().data();
  };
  for (const Shape& one : group()) {
    Bf16* const a = buffer(std::size_t{one.m} * one.k, 0);
    Bf16* const b = buffer(std::size_t{one.n} * one.k, 8);
    Bf16* const c = buffer(std::size_t{one.m} * one.n, ~std::size_t{0});
    products.emplace_back(rt, Matrix{a, one.m, one.k}, Matrix{b, one.n, one.k}, Matrix{c, one.m, one.n},
                          ProductOptions{.alone = false});
    products.back().add_to(graph);
  }
  const Executable executable = rt.load(graph);
  rt.submit(executable).wait();
  for (std::uint32_t i = 0; i < kGroup; ++i) check(group()[i], buffers[3 * i + 2].read());
  return group_rates(measure::time_each(5, samples, [&] { rt.submit(executable).wait(); }));
}

/// A call a product, over several streams.
Samples group_by_cublas(const std::shared_ptr<const measure::Cublas>& cublas, int samples) {
  const std::vector<Bf16>& all = values(std::size_t{kWide} * kWide + 8);
  constexpr std::uint32_t kStreams = 8;
  std::vector<measure::Stream> streams(kStreams);
  std::vector<std::unique_ptr<measure::DeviceBuffer<Bf16>>> buffers;
  const auto buffer = [&](std::size_t count, std::size_t from) {
    buffers.push_back(std::make_unique<measure::DeviceBuffer<Bf16>>(count));
    measure::check_cuda(
        cudaMemcpyAsync(buffers.back()->get(), all.data() + from, count * sizeof(Bf16), cudaMemcpyDefault, streams[0].get()),
        "cudaMemcpyAsync");
  };
  for (const Shape& one : group()) {
    buffer(std::size_t{one.m} * one.k, 0);
    buffer(std::size_t{one.n} * one.k, 8);
    buffer(std::size_t{one.m} * one.n, 0);
  }
  const auto run = [&] {
    for (std::uint32_t i = 0; const Shape& one : group()) {
      cublas->multiply(streams[i % kStreams].get(), buffers[3 * i]->get(), buffers[3 * i + 1]->get(), buffers[3 * i + 2]->get(),
                       one.m, one.n, one.k);
      ++i;
    }
    for (const measure::Stream& stream : streams) stream.synchronize();
  };
  streams[0].synchronize();
  return group_rates(measure::time_each(5, samples, run));
}

}  // namespace

std::vector<measure::Measurement> gemm_rows(const measure::Effort& effort) {
  const std::shared_ptr<const measure::Cublas> cublas = measure::Cublas::find();
  std::vector<measure::Measurement> rows;
  const auto add = [&](const std::string& name, const Shape& of, int full) {
    const int samples = effort.samples(full);
    rows.push_back(
        {.name = "gemm." + name, .unit = "TFLOP/s", .peer = cublas ? "peer.cublas_" + name : "", .round = [of, samples] {
           return by_tasks(of, samples);
         }});
    if (cublas)
      rows.push_back({.name = "peer.cublas_" + name, .unit = "TFLOP/s", .round = [cublas, of, samples] {
                        return by_cublas(cublas, of, samples);
                      }});
  };
  add("8192", {8192, 8192, 8192}, 40);
  add("4096", {4096, 4096, 4096}, 100);
  add("1024x1024x8192", {1024, 1024, 8192}, 200);
  add("16x4096x14336", {16, 4096, 14336}, 200);
  add("64x4096x14336", {64, 4096, 14336}, 200);
  const int samples = effort.samples(50);
  rows.push_back(
      {.name = "gemm.grouped_64", .unit = "TFLOP/s", .peer = cublas ? "peer.cublas_grouped_64" : "", .round = [samples] {
         return group_by_tasks(samples);
       }});
  if (cublas)
    rows.push_back({.name = "peer.cublas_grouped_64", .unit = "TFLOP/s", .round = [cublas, samples] {
                      return group_by_cublas(cublas, samples);
                    }});
  return rows;
}

}  // namespace bench
