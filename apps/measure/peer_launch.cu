// What people use instead of a resident kernel: launches, streams and CUDA graphs, all with an empty kernel.
#include <vector>

#include "apps/measure/cuda_objects.hpp"
#include "apps/measure/limits.hpp"

namespace measure {
namespace {

__global__ void empty() {}

const void* const kEmpty = reinterpret_cast<const void*>(empty);

constexpr int kTaskThreads = 256;  // a block as wide as a task's
constexpr int kWarmUp = 200;

void launch_empty(const Stream& stream, int threads) {
  check_cuda(cudaLaunchKernel(kEmpty, dim3(1), dim3(static_cast<unsigned>(threads)), nullptr, 0, stream.get()),
             "cudaLaunchKernel", "The kernel may not be built for this GPU: see FLYWHEEL_CUDA_ARCHITECTURES");
}

// Turns the us each of some batches took into M/s.
Samples rates_of(Samples times, double batch) {
  for (double& time : times) time = batch / time;
  return times;
}

// `wide` independent chains of `deep` nodes; one deep, it is a flat graph.
Graph chains(int wide, int deep) {
  Graph graph;
  for (int w = 0; w < wide; ++w) {
    std::vector<cudaGraphNode_t> before;
    for (int d = 0; d < deep; ++d) before = {graph.add(kEmpty, 1, kTaskThreads, before)};
  }
  return graph;
}

Samples node_rate(int wide, int deep, int samples) {
  const Stream stream;
  const GraphExec exec(chains(wide, deep), stream);
  const Samples times = time_each(3, samples, [&] {
    exec.launch(stream);
    stream.synchronize();
  });
  return rates_of(times, 1.0 * wide * deep);
}

}  // namespace

Samples launch_one_kernel(int samples) {
  const Stream stream;
  return time_each(kWarmUp, samples, [&] {
    launch_empty(stream, 32);
    stream.synchronize();
  });
}

Samples graph_one_node(int samples) {
  const Stream stream;
  Graph graph;
  graph.add(kEmpty, 1, 32, {});
  const GraphExec exec(graph, stream);
  return time_each(kWarmUp, samples, [&] {
    exec.launch(stream);
    stream.synchronize();
  });
}

Samples graph_node_rate(int samples) {
  constexpr int kDeep = 100;
  const int sms = sm_count();
  return best_of({node_rate(sms, kDeep, samples), node_rate(sms * kDeep, 1, samples)}, Better::higher);
}

Samples stream_launch_rate(int samples) {
  constexpr int kKernels = 1000;
  const Stream stream;
  const Samples times = time_each(1, samples, [&] {
    for (int i = 0; i < kKernels; ++i) launch_empty(stream, kTaskThreads);
    stream.synchronize();
  });
  return rates_of(times, kKernels);
}

}  // namespace measure
