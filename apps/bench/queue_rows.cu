// 1,000 equal tasks: as one graph of the runtime, by the textbook persistent kernel whose blocks draw numbers from one counter,
// as nodes of a CUDA graph, and as launches in one stream and in 32. Then small block tasks, independent ones and spawned
// ones, by the hundred thousand. Part of the runtime's rows, see runtime_rows.hpp.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <cuda/atomic>

#include <numeric>
#include <stdexcept>

#include "apps/bench/runtime_rows.hpp"
#include "apps/measure/cuda_objects.hpp"
#include "apps/measure/work_clock.hpp"

namespace bench {

using namespace flywheel;
using measure::Samples;

namespace {

constexpr std::uint32_t kTasks = 1'000;
constexpr unsigned kWorkThreads = 256;

/// What task `number` does: works for so long, and says so. Thread 0 of a block.
__host__ __device__ void work(std::int64_t ticks, std::uint32_t* done, std::uint32_t number) {
  measure::spin_for(ticks);
  done[number] += number + 1;
}

struct Work {
  std::int64_t ticks;
  std::uint32_t* done;
  std::uint32_t number;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) work(ticks, done, number);
    block.sync();
  }
};

__global__ void work_kernel(std::int64_t ticks, std::uint32_t* done, std::uint32_t number) {
  if (threadIdx.x == 0) work(ticks, done, number);
}

__global__ void queue_kernel(std::int64_t ticks, std::uint32_t* done, std::uint32_t* next) {
  __shared__ std::uint32_t drawn;
  for (;;) {
    // Relaxed: a number alone; the tasks have nothing to do with each other.
    if (threadIdx.x == 0)
      drawn = cuda::atomic_ref<std::uint32_t, cuda::thread_scope_device>(*next).fetch_add(1, cuda::memory_order_relaxed);
    __syncthreads();  // all threads see the number
    const std::uint32_t number = drawn;
    if (number >= kTasks) return;
    if (threadIdx.x == 0) work(ticks, done, number);
    __syncthreads();  // all have read the number, before thread 0 draws again
  }
}

/// An independent task with arguments of its own, and an effect.
struct Multiply {
  std::uint32_t* to;
  std::uint32_t a, b;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) *to += a * b;
  }
};

/// A node of a binary tree, counted at its worker. Where the spawn pool has no room it counts the nodes below, too.
struct Branch {
  std::uint64_t* counts;  // 16 words for each worker
  std::uint32_t levels;   // below this one
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (!block.leader()) return;
    std::uint64_t nodes = 1;
    for (int child = 0; levels && child < 2; ++child)
      if (!block.spawn(Branch{counts, levels - 1})) nodes += (std::uint64_t{1} << levels) - 1;
    counts[16 * block.worker()] += nodes;  // no other task of this worker runs meanwhile
  }
};

/// {ticks of the work's clock, ns} of 2 ms.
__global__ void clock_kernel(std::int64_t* rate) {
  const std::int64_t begin = measure::work_clock(), begin_ns = measure::shared_clock_ns();
  while (measure::shared_clock_ns() - begin_ns < 2'000'000) {}
  rate[0] = measure::work_clock() - begin;
  rate[1] = measure::shared_clock_ns() - begin_ns;
}

/// The peers' memory, and how long a task takes.
class Peer {
 public:
  explicit Peer(double us) : done_(kTasks), next_(1), rate_(2) {
    for (int i = 0; i < 2; ++i) clock_kernel<<<1, 1, 0, stream.get()>>>(rate_.get());  // the first warms the clock up
    std::int64_t rate[2];
    get(rate, rate_.get(), sizeof(rate));
    ticks_ = static_cast<std::int64_t>(us * 1'000 * static_cast<double>(rate[0]) / static_cast<double>(rate[1]));
    done_.fill(0, stream);
    stream.synchronize();
  }
  std::int64_t ticks() const { return ticks_; }
  std::uint32_t* done() const { return done_.get(); }
  std::uint32_t* next() const { return next_.get(); }
  void reset_counter() const { next_.fill(0, stream); }

  /// Runs all tasks so often, and checks that each has run each time. ms.
  template <class Launch>
  Samples times(int samples, Launch&& launch) {
    constexpr int kWarmUp = 3;
    Samples ms = measure::time_each(kWarmUp, samples, [&] {
      launch();
      stream.synchronize();
    });
    std::vector<std::uint32_t> found(kTasks);
    get(found.data(), done(), kTasks * sizeof(found[0]));
    check(found, static_cast<std::uint32_t>(samples + kWarmUp));
    for (double& time : ms) time /= 1'000;
    return ms;
  }
  static void check(const std::vector<std::uint32_t>& found, std::uint32_t times) {
    for (std::uint32_t i = 0; i < kTasks; ++i)
      if (found[i] != times * (i + 1))
        throw std::runtime_error("task " + std::to_string(i) + " has not run as often as it should");
  }

  const measure::Stream stream;

 private:
  void get(void* to, const void* from, std::size_t bytes) const {
    measure::check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream.get()), "cudaMemcpyAsync");
    stream.synchronize();
  }

  measure::DeviceBuffer<std::uint32_t> done_, next_;
  measure::DeviceBuffer<std::int64_t> rate_;
  std::int64_t ticks_ = 0;
};

void launched() { measure::check_cuda(cudaGetLastError(), "a launch"); }

Runtime start_queue() {
  flywheel::Options options;
  options.target = Target::gpu;
  options.mode = Mode::resident;
  options.spawn_capacity = 1u << 18;
  return start<Work, Multiply, Branch>(options);
}

/// M tasks/s.
Samples block_tasks(int samples) {
  constexpr std::uint32_t kCount = 100'000, kWarmUp = 3;
  Runtime rt = start_queue();
  const auto sums = rt.allocate<std::uint32_t>(kCount);
  flywheel::Graph graph;
  for (std::uint32_t i = 0; i < kCount; ++i) graph.add(Multiply{sums.data() + i, i + 1, 2 * i + 1});
  const Executable exec = rt.load(graph);
  Samples rates = measure::time_each(kWarmUp, samples, [&] { rt.submit(exec).wait(); });
  const std::vector<std::uint32_t> found = sums.read();
  for (std::uint32_t i = 0; i < kCount; ++i)
    if (found[i] != (kWarmUp + static_cast<std::uint32_t>(samples)) * (i + 1) * (2 * i + 1))
      throw std::runtime_error("task " + std::to_string(i) + " has not run as often as it should");
  for (double& rate : rates) rate = kCount / rate;
  return rates;
}

/// M nodes/s.
Samples spawned_tasks(int samples) {
  constexpr std::uint32_t kLevels = 17, kWarmUp = 3;
  constexpr std::uint64_t kNodes = (std::uint64_t{2} << kLevels) - 1;
  Runtime rt = start_queue();
  const auto counts = rt.allocate<std::uint64_t>(16 * rt.workers());
  flywheel::Graph graph;
  graph.add(Branch{counts.data(), kLevels});
  const Executable exec = rt.load(graph);
  Samples rates = measure::time_each(kWarmUp, samples, [&] { rt.submit(exec).wait(); });
  const std::vector<std::uint64_t> found = counts.read();
  if (std::accumulate(found.begin(), found.end(), std::uint64_t{0}) != kNodes * (kWarmUp + static_cast<std::uint64_t>(samples)))
    throw std::runtime_error("the nodes of the tree have not run once each");
  for (double& rate : rates) rate = static_cast<double>(kNodes) / rate;
  return rates;
}

Samples by_runtime(double us, int samples) {
  const std::int64_t ticks = Peer(us).ticks();
  Runtime rt = start_queue();
  const auto done = rt.allocate<std::uint32_t>(kTasks);
  flywheel::Graph graph;
  for (std::uint32_t i = 0; i < kTasks; ++i) graph.add(Work{ticks, done.data(), i});
  const Executable exec = rt.load(graph);
  constexpr int kWarmUp = 3;
  Samples ms = measure::time_each(kWarmUp, samples, [&] { rt.submit(exec).wait(); });
  Peer::check(done.read(), static_cast<std::uint32_t>(samples + kWarmUp));
  for (double& time : ms) time /= 1'000;
  return ms;
}

Samples by_counter(double us, int samples) {
  Peer peer(us);
  return peer.times(samples, [&] {
    peer.reset_counter();
    queue_kernel<<<static_cast<unsigned>(measure::sm_count()), kWorkThreads, 0, peer.stream.get()>>>(peer.ticks(), peer.done(),
                                                                                                     peer.next());
    launched();
  });
}

Samples by_cuda_graph(double us, int samples) {
  Peer peer(us);
  const measure::Graph graph;
  for (std::uint32_t i = 0; i < kTasks; ++i) {
    std::int64_t ticks = peer.ticks();
    std::uint32_t* done = peer.done();
    void* arguments[] = {&ticks, &done, &i};
    graph.add(reinterpret_cast<const void*>(work_kernel), 1, kWorkThreads, {}, arguments);
  }
  const measure::GraphExec exec(graph, peer.stream);
  return peer.times(samples, [&] { exec.launch(peer.stream); });
}

/// Round robin; the peer's own stream waits for all of them.
Samples by_streams(double us, int samples, std::size_t count) {
  Peer peer(us);
  const std::vector<measure::Stream> streams(count);
  const measure::Event end;
  return peer.times(samples, [&] {
    for (std::uint32_t i = 0; i < kTasks; ++i) {
      work_kernel<<<1, kWorkThreads, 0, streams[i % count].get()>>>(peer.ticks(), peer.done(), i);
      launched();
    }
    for (const measure::Stream& stream : streams) {
      end.record(stream);
      end.let_wait(peer.stream);
    }
  });
}

}  // namespace

std::vector<measure::Measurement> queue_rows(const measure::Effort& effort) {
  std::vector<measure::Measurement> rows;
  rows.push_back({.name = "grain.block_tasks",
                  .unit = "M/s",
                  .peer = "peer.graph_node_rate",
                  .limit = "limit.atomic_rate",
                  .round = [samples = effort.samples(30)] { return block_tasks(samples); }});
  rows.push_back(
      {.name = "grain.spawn_block", .unit = "M/s", .round = [samples = effort.samples(20)] { return spawned_tasks(samples); }});
  for (const auto& [name, us, full] : {std::tuple{"1000x100us", 100.0, 50}, std::tuple{"1000x5us", 5.0, 200}}) {
    const int samples = effort.samples(full), few = effort.samples(full / 5);
    const std::string queue = "queue." + std::string(name), peer = "peer." + std::string(name) + ".";
    const auto add = [&](const std::string& row, const std::string& beside, auto round) {
      rows.push_back({.name = row, .unit = "ms", .peer = beside, .round = round});
    };
    add(queue, peer + "counter", [=, us = us] { return by_runtime(us, samples); });
    add(peer + "counter", "", [=, us = us] { return by_counter(us, samples); });
    add(peer + "cuda_graph", "", [=, us = us] { return by_cuda_graph(us, samples); });
    add(peer + "one_stream", "", [=, us = us] { return by_streams(us, few, 1); });
    add(peer + "32_streams", "", [=, us = us] { return by_streams(us, samples, 32); });
  }
  return rows;
}

}  // namespace bench
