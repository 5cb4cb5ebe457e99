// Passes over arrays. block.stream() calls a function for each element and stores what it returns; block.stream_reduce()
// combines what it returns. On a GPU both load many elements, 16 bytes at a time, before they use the first, so that a body
// runs at the speed of memory whatever the function is. Here: y = a x + y, and the dot product of x and y, in chunks of the
// arrays. The program does the same with for_each(), in turns, and prints what the passes buy.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "apps/measure/in_turns.hpp"

namespace stream {

constexpr float kA = 2;

using flywheel::reads;
using flywheel::writes;

/// The arrays and a task's chunk of them.
struct Arrays {
  const float* x;
  float* y;
  flywheel::Chunk chunk;

  FLYWHEEL_TASK const float* from() const { return x + chunk.first; }
  FLYWHEEL_TASK float* to() const { return y + chunk.first; }
};

struct Sum {
  FLYWHEEL_TASK double operator()(double a, double b) const { return a + b; }
};

struct Saxpy {
  Arrays arrays;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.stream(arrays.chunk.count, reads(arrays.from(), arrays.to()), writes(arrays.to()),
                 [](float x, float y) { return kA * x + y; });
  }
};
struct Dot {
  Arrays arrays;
  double* part;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const double sum = block.stream_reduce(arrays.chunk.count, reads(arrays.from(), arrays.to()), 0.0, Sum{},
                                           [](float x, float y) { return double{x} * double{y}; });
    if (block.leader()) *part = sum;
  }
};

/// The same element by element.
struct SaxpyForEach {
  Arrays arrays;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const float* x = arrays.from();
    float* y = arrays.to();
    block.for_each(static_cast<int>(arrays.chunk.count), [=](int i) { y[i] = kA * x[i] + y[i]; });
  }
};
struct DotForEach {
  Arrays arrays;
  double* part;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const float *x = arrays.from(), *y = arrays.to();
    double mine = 0;
    block.for_each(static_cast<int>(arrays.chunk.count), [&](int i) { mine += double{x[i]} * double{y[i]}; });
    const double sum = block.reduce(mine, Sum{});
    if (block.leader()) *part = sum;
  }
};

/// The sum of the parts of a dot product.
struct Total {
  const double* parts;
  std::uint32_t count;
  template <class Block>
  FLYWHEEL_TASK double operator()(Block& block) const {
    return block.stream_reduce(count, reads(parts), 0.0, Sum{}, [](double part) { return part; });
  }
};

struct Vectors {
  flywheel::Runtime& rt;
  std::vector<float> x, y;
  flywheel::Buffer<float> x_there, y_there;
  flywheel::Buffer<double> parts;

  Vectors(flywheel::Runtime& runtime, std::size_t n) : rt(runtime), x(n), y(n), parts(rt.allocate<double>(rt.workers())) {
    for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i * i % 13), y[i] = static_cast<float>(i % 11) - 4;
    x_there = rt.upload(x);
    y_there = rt.upload(y);
  }
  Arrays chunk(std::uint32_t index) const {
    return {x_there.data(), y_there.data(), flywheel::chunk_of(x.size(), index, rt.workers())};
  }
  template <class Task>
  flywheel::Executable saxpy() const {
    flywheel::Graph g;
    for (std::uint32_t i = 0; i < rt.workers(); ++i) g.add(Task{chunk(i)});
    return rt.load(g);
  }
  template <class Task>
  flywheel::Executable dot(flywheel::TaskRef<double>& result) const {
    flywheel::Graph g;
    std::vector<flywheel::TaskRef<>> parts_done;
    for (std::uint32_t i = 0; i < rt.workers(); ++i) parts_done.push_back(g.add(Task{chunk(i), parts.data() + i}));
    result = g.add(Total{parts.data(), rt.workers()}, after(parts_done));
    return rt.load(g);
  }
};

}  // namespace stream

int main() {
  using namespace stream;
  flywheel::Runtime rt = flywheel::start<Saxpy, Dot, SaxpyForEach, DotForEach, Total>();
  Vectors vectors(rt, rt.on_gpu() ? std::size_t{10} << 20 : std::size_t{64} << 10);
  double product = 0;  // of small whole numbers: exact
  for (std::size_t i = 0; i < vectors.x.size(); ++i) {
    vectors.y[i] = kA * vectors.x[i] + vectors.y[i];
    product += double{vectors.x[i]} * double{vectors.y[i]};
  }
  const flywheel::Executable saxpy = vectors.saxpy<Saxpy>(), plain_saxpy = vectors.saxpy<SaxpyForEach>();
  flywheel::TaskRef<double> result, plain_result;
  const flywheel::Executable dot = vectors.dot<Dot>(result), plain_dot = vectors.dot<DotForEach>(plain_result);

  rt.submit(saxpy).wait();
  if (vectors.y_there.read() != vectors.y || rt.submit(dot).get(result) != product) return 1;
  if (rt.submit(plain_dot).get(plain_result) != product) return 1;
  measure::print_gain(rt, "stream()", measure::time_in_turns(rt, plain_saxpy, saxpy));
  measure::print_gain(rt, "stream_reduce()", measure::time_in_turns(rt, plain_dot, dot));
  return 0;
}
