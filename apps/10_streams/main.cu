// CUDA streams and runs wait for each other: a kernel of the program's own, then a Flywheel graph, then that kernel
// again, all on the same data, and the host never asks whether one of them has ended.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <cstdio>

namespace streams {

constexpr int kSize = 1'000, kPieces = 10, kSkipped = 77;

struct Square {
  int *x, count;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    block.for_each(count, [&](int i) { x[i] *= x[i]; });
  }
};

#ifdef __CUDACC__
__global__ void add_one(int* x) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < kSize) x[i] += 1;
}

bool cuda_ok(cudaError_t error) {
  if (error != cudaSuccess) std::printf("CUDA: %s\n", cudaGetErrorString(error));
  return error == cudaSuccess;
}

/// x[i] = (0 + 1)^2 + 1, then (2 + 1)^2 + 1, ...: three rounds of kernel, graph, kernel.
bool work(flywheel::Runtime& rt, cudaStream_t stream) {
  const auto x = rt.allocate<int>(kSize);
  flywheel::Graph g;
  for (int p = 0; p < kPieces; ++p) g.add(Square{x.data() + p * kSize / kPieces, kSize / kPieces});
  const flywheel::Executable exec = rt.load(g);
  int wanted = 0;
  for (int round = 0; round < 3; ++round, wanted = (wanted + 1) * (wanted + 1) + 1) {
    add_one<<<(kSize + 255) / 256, 256, 0, stream>>>(x.data());
    flywheel::Run run = rt.submit_after(stream, exec);  // starts when add_one has ended
    run.let_stream_wait(stream);                        // the next add_one starts when the run has
    add_one<<<(kSize + 255) / 256, 256, 0, stream>>>(x.data());
  }
  if (!cuda_ok(cudaGetLastError()) || !cuda_ok(cudaStreamSynchronize(stream))) return false;
  bool right = true;
  for (const int value : x.read()) right &= value == wanted;
  std::printf("three rounds of kernel, graph, kernel on %s: x = %d, to be %d\n", rt.device().c_str(), x.read()[0], wanted);
  return right;
}

bool try_streams(flywheel::Runtime& rt) {
  cudaStream_t stream = nullptr;  // non-blocking: others may have to wait until the resident kernel parks
  if (!cuda_ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking))) return false;
  const bool right = work(rt, stream);
  rt.shutdown();
  return cuda_ok(cudaStreamDestroy(stream)) && right;
}
#else
bool try_streams(flywheel::Runtime&) { return false; }
#endif

}  // namespace streams

int main() {
  using namespace streams;
  flywheel::Runtime rt = flywheel::start<Square>();
  if (rt.on_gpu()) return try_streams(rt) ? 0 : 1;
  std::printf("CUDA streams need a GPU, and this runs on %s\n", rt.device().c_str());
  return kSkipped;
}
