// While the runtime has work without an end, a kernel of 1,024 blocks in another stream, cudaFree, a kernel that CUDA loads
// lazily and cudaDeviceSynchronize come through, beside every kind of work. Each kind runs in a process of its own, whose
// kernels are loaded lazily; it prints the longest times.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/child.hpp"
#include "support/cuda_ok.hpp"
#include "support/small_runtime.hpp"
#include "support/yields.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

constexpr std::size_t kTimes = 100;
constexpr double kMostMs = 250;

__global__ void add_one(std::uint32_t* word) {
  if (threadIdx.x == 0) atomicAdd(word, 1u);
}
template <std::size_t kIndex>
__global__ void load_lazily(std::uint32_t* word) {
  atomicAdd(word, static_cast<std::uint32_t>(kIndex));
}

using LazyKernel = void (*)(std::uint32_t*);
template <std::size_t... kIndex>
std::array<LazyKernel, sizeof...(kIndex)> lazy_kernels(std::index_sequence<kIndex...>) {
  return {load_lazily<kIndex>...};
}

/// The longest of kTimes calls, in ms.
template <class Call>
double longest(const char* name, Call&& call) {
  double most = 0;
  for (std::size_t i = 0; i < kTimes; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    call(i);
    most = std::max(most, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  std::printf("%s: at most %.1f ms\n", name, most);
  std::fflush(stdout);
  CHECK(most < kMostMs);
  return most;
}

/// The neighbours' calls. What they need is allocated before the runtime's work begins.
class Neighbours {
 public:
  Neighbours() {
    cuda_ok(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    cuda_ok(cudaMalloc(&word_, sizeof(*word_)));
    cuda_ok(cudaMemset(word_, 0, sizeof(*word_)));
    for (void*& piece : pieces_) cuda_ok(cudaMalloc(&piece, 1 << 16));
    add_one<<<1, 32, 0, stream_>>>(word_);  // loads it
    cuda_ok(cudaStreamSynchronize(stream_));
  }
  void call_all() {
    longest("a kernel of 1,024 blocks", [&](std::size_t) {
      add_one<<<1024, 256, 0, stream_>>>(word_);
      cuda_ok(cudaStreamSynchronize(stream_));
    });
    longest("cudaFree", [&](std::size_t i) { cuda_ok(cudaFree(pieces_[i])); });
    const auto kernels = lazy_kernels(std::make_index_sequence<kTimes>());
    longest("a kernel that is loaded lazily", [&](std::size_t i) {
      kernels[i]<<<1, 1, 0, stream_>>>(word_);
      cuda_ok(cudaStreamSynchronize(stream_));
    });
    longest("cudaDeviceSynchronize", [&](std::size_t) { cuda_ok(cudaDeviceSynchronize()); });
    std::uint32_t sum = 0;
    cuda_ok(cudaMemcpyAsync(&sum, word_, sizeof(sum), cudaMemcpyDeviceToHost, stream_));
    cuda_ok(cudaStreamSynchronize(stream_));
    CHECK(sum == 1 + 1024 * kTimes + kTimes * (kTimes - 1) / 2);
  }

 private:
  cudaStream_t stream_{};
  std::uint32_t* word_ = nullptr;
  std::array<void*, kTimes> pieces_{};
};

Options yielding() { return on_gpu("off"); }  // every 100 ms, as all runtimes do

/// Calls of all neighbours beside the endless runs; `counted` words must go on growing.
void call_beside(Bench& bench, Neighbours& neighbours, std::vector<Run> runs) {
  const auto moves = [&] {
    const std::uint32_t before = bench.get(0);
    return eventually([&] { return bench.get(0) != before; }, std::chrono::seconds(20));
  };
  REQUIRE(moves());
  neighbours.call_all();
  CHECK(moves());
  CHECK(bench.runtime.stats().yields > 0);
  for (Run& run : runs) run.cancel();
  for (Run& run : runs) CHECK(run.status() == Status::cancelled);
}

}  // namespace

TEST_CASE("child: neighbours of spawned tasks", "[.child]") {
  Bench bench(yielding());
  Neighbours neighbours;
  const Buffer<std::uint64_t> sum = bench.runtime.allocate<std::uint64_t>(1);
  Graph graph;
  graph.add(Fibonacci{16, sum.data(), bench.at(0)});
  const Executable executable = bench.runtime.load(graph);
  call_beside(bench, neighbours,
              {bench.runtime.submit(executable, repeat_until_stop()), bench.runtime.submit(executable, repeat_until_stop())});
  CHECK(sum.read()[0] > 0);
}

TEST_CASE("child: neighbours of graphs back to back", "[.child]") {
  Bench bench(yielding());
  Neighbours neighbours;
  Graph graph;
  const auto first = graph.add(Square{12});
  for (int i = 0; i < 300; ++i) graph.add(Count{bench.at(0)}, after(first));
  const Executable executable = bench.runtime.load(graph);
  std::atomic<std::uint32_t> submitted{0}, wrong{0};
  std::jthread program([&](const std::stop_token& stop) {
    std::vector<Run> flying;
    while (!stop.stop_requested()) {
      flying.push_back(bench.runtime.submit(executable));
      ++submitted;
      if (flying.size() < 4) continue;
      wrong += flying.front().get(first) != 144;
      flying.erase(flying.begin());
    }
    for (Run& run : flying) wrong += run.get(first) != 144;
  });
  call_beside(bench, neighbours, {});
  program.request_stop();
  program.join();
  CHECK(wrong == 0);
  CHECK(bench.get(0) == 300 * submitted);
}

TEST_CASE("child: neighbours of a compiled run", "[.child]") {
  Bench bench(yielding());
  Neighbours neighbours;
  Graph graph;
  for (std::uint32_t i = 0; i < bench.runtime.workers(); ++i)
    graph.add(Count{bench.at(1)}, after(graph.add(Count{bench.at(0)})));
  call_beside(bench, neighbours, {bench.runtime.submit(bench.runtime.load(graph, compiled), repeat_until_stop())});
  CHECK(bench.get(0) - bench.get(1) <= bench.runtime.workers());  // the last pass may have been cut short
}

TEST_CASE("child: neighbours of a phased run", "[.child]") {
  Bench bench(yielding(), 1024);
  Neighbours neighbours;
  Graph graph;
  graph.add(Count{bench.at(0)});
  graph.phase();
  graph.add_grid(Rounds{bench.at(8), bench.at(2), 50});
  call_beside(bench, neighbours, {bench.runtime.submit(bench.runtime.load(graph), repeat_until_stop())});
  CHECK(bench.get(2) == 0);
}

TEST_CASE("neighbours come through within 250 ms beside work without an end") {
  for (const char* work : {"spawned tasks", "graphs back to back", "a compiled run", "a phased run"}) {
    const ChildResult result =
        run_child(std::string("child: neighbours of ") + work, std::chrono::seconds(150), {{"CUDA_MODULE_LOADING", "LAZY"}});
    std::printf("beside %s:\n%s", work, result.output.c_str());
    check_child(result);
  }
}

TEST_CASE("a Pause lets calls that wait for the device through at once, 100 times") {
  Bench bench(yielding());
  Graph graph;
  graph.add(Count{bench.at(0)});
  Run run = bench.runtime.submit(bench.runtime.load(graph, compiled), repeat_until_stop());
  longest("a Pause, cudaMalloc, cudaDeviceSynchronize and cudaFree", [&](std::size_t) {
    const Pause guard(bench.runtime);
    void* memory = nullptr;
    cuda_ok(cudaMalloc(&memory, 1 << 20));
    cuda_ok(cudaDeviceSynchronize());
    cuda_ok(cudaFree(memory));
  });
  run.cancel();
  CHECK(run.status() == Status::cancelled);
}

TEST_CASE("on the GPU, work goes on over many suspensions") {
  Bench bench(yielding(), 1024);
  const auto clear = [&] {
    for (std::size_t i = 0; i < 1024; ++i) bench.put(i, 0);
  };
  check_yields_of_spawns(bench, 200, false);
  clear();
  check_yields_of_roots(bench, 3000, 10);
  clear();
  check_yields_of_compiled(bench, 20'000, 10);
  clear();
  check_yields_of_phases(bench, 5'000, 10);
  check_cancels_beside_yields(bench, 50);
}
