// Runs and CUDA streams wait for each other.
#include "support/cuda_ok.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// A stream, a pinned word, and a runtime; all memory is there before the kernel is.
struct StreamFixture {
  StreamFixture() {
    cuda_ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cuda_ok(cudaMallocHost(&pinned, sizeof(*pinned)));
    *pinned = 0;
    Options options;
    options.target = Target::gpu;
    bench = std::make_unique<Bench>(options);
  }
  ~StreamFixture() {
    bench.reset();
    cudaFreeHost(pinned);
    cudaStreamDestroy(stream);
  }
  /// The stream sleeps, then copies the pinned word to word i.
  void copy_late(std::size_t i) {
    cuda_ok(cudaLaunchHostFunc(
        stream, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }, nullptr));
    cuda_ok(cudaMemcpyAsync(bench->at(i), pinned, sizeof(*pinned), cudaMemcpyHostToDevice, stream));
  }

  cudaStream_t stream = nullptr;
  std::uint32_t* pinned = nullptr;
  std::unique_ptr<Bench> bench;
};

}  // namespace

TEST_CASE_METHOD(StreamFixture, "submit_after: a run sees what the stream did before it") {
  Graph graph;
  const auto seen = graph.add(Load{bench->at(0)});
  const Executable executable = bench->runtime.load(graph);
  for (std::uint32_t round = 1; round <= 5; ++round) {
    *pinned = round * 11;
    copy_late(0);
    Run run = bench->runtime.submit_after(stream, executable);
    CHECK(run.get(seen) == round * 11);
  }
}

TEST_CASE_METHOD(StreamFixture, "let_stream_wait: the stream sees what the run did before it") {
  Executable held;
  Run run = bench->hold(0, held);
  run.let_stream_wait(stream);
  cuda_ok(cudaMemcpyAsync(pinned, bench->at(0), sizeof(*pinned), cudaMemcpyDeviceToHost, stream));
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
  bench->put(1, 1);
  run.wait();
  cuda_ok(cudaStreamSynchronize(stream));
  CHECK(*pinned == 1);
}

TEST_CASE_METHOD(StreamFixture, "a run cancelled before its stream got there never starts") {
  const Executable executable = bench->counter(3);
  copy_late(0);
  Run run = bench->runtime.submit_after(stream, executable);
  run.cancel();
  CHECK(run.status() == Status::cancelled);
  cuda_ok(cudaStreamSynchronize(stream));
  bench->runtime.submit(bench->counter(4)).wait();
  CHECK(bench->get(3) == 0);
}

TEST_CASE_METHOD(StreamFixture, "shutdown before the stream got there ends the run") {
  const Executable executable = bench->counter(3);
  copy_late(0);
  Run run = bench->runtime.submit_after(stream, executable);
  bench->runtime.shutdown();
  CHECK(run.status() == Status::aborted);
  CHECK(bench->get(3) == 0);
}
