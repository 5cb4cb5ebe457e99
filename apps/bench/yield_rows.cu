// What yielding costs, and how long a neighbour waits for it. Part of the runtime's rows, see runtime_rows.hpp.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <algorithm>
#include <chrono>

#include "apps/bench/runtime_rows.hpp"
#include "apps/measure/cuda_objects.hpp"

namespace bench {

using namespace flywheel;
using measure::Samples;

namespace {

struct Tick {
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

/// The neighbour: as many blocks as no GPU holds beside a resident kernel.
__global__ void neighbour() {}
constexpr unsigned kBlocks = 1024, kThreads = 256;

double ms_since(std::chrono::steady_clock::time_point begin) { return measure::microseconds_since(begin) / 1000; }

constexpr std::chrono::milliseconds kPeriod{100};

Options options_for(std::chrono::milliseconds yield_every) {
  Options options;
  options.target = Target::gpu;
  options.mode = Mode::resident;
  options.yield_every = yield_every;
  return options;
}

/// One task on each worker: a pass of a compiled run in which all of them meet.
Executable one_pass(Runtime& rt) {
  Graph graph;
  for (std::uint32_t i = 0; i < rt.workers(); ++i) graph.add(Tick{});
  return rt.load(graph, compiled);
}

/// The longest of `tries` times in ms until a kernel of 1,024 blocks has run beside a compiled run without an end.
Samples return_max(int tries) {
  const measure::Stream stream;
  const auto launch = [&] {
    neighbour<<<kBlocks, kThreads, 0, stream.get()>>>();
    measure::check_cuda(cudaGetLastError(), "a launch");
    stream.synchronize();
  };
  launch();  // loads it
  Runtime rt = start<Tick>(options_for(kPeriod));
  Run run = rt.submit(one_pass(rt), repeat_until_stop());
  double longest = 0;
  for (int i = 0; i < tries; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    launch();
    longest = std::max(longest, ms_since(begin));
  }
  run.cancel();
  run.status();
  return {longest};
}

/// The time in ms of `passes` passes.
double time_passes(std::chrono::milliseconds yield_every, std::uint32_t passes) {
  Runtime rt = start<Tick>(options_for(yield_every));
  const Executable exec = one_pass(rt);
  rt.submit(exec, repeat(1000)).wait();
  const auto begin = std::chrono::steady_clock::now();
  rt.submit(exec, repeat(passes)).wait();
  return ms_since(begin);
}

/// The share of its throughput that a compiled run of about a second loses to yielding. Both kinds of run are taken in turns.
Samples cost(int samples) {
  constexpr std::uint32_t kSomePasses = 20'000;
  constexpr double kWantedMs = 1000;
  const auto passes = static_cast<std::uint32_t>(kSomePasses * kWantedMs / time_passes({}, kSomePasses));
  Samples shares;
  for (int i = 0; i < samples; ++i) {
    const double without = time_passes({}, passes), with = time_passes(kPeriod, passes);
    shares.push_back(std::max(1 - without / with, 0.0));  // noise may make it negative
  }
  return shares;
}

}  // namespace

std::vector<measure::Measurement> yield_rows(const measure::Effort& effort) {
  return {
      {.name = "submit.yield_return_max", .unit = "ms", .round = [=] { return return_max(effort.samples(50)); }},
      {.name = "submit.yield_cost", .unit = "share", .round = [=] { return cost(effort.samples(10)); }},
  };
}

}  // namespace bench
