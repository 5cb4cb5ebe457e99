// The hazards of a resident kernel, each in a process of its own with a time limit.
#include <cstdio>

#include "support/child.hpp"
#include "support/cuda_ok.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

constexpr std::chrono::seconds kLimit{90};

struct Trap {
  std::uint32_t* word;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {
#ifdef __CUDA_ARCH__
    __trap();
#endif
  }
};

/// Keeps the SMs busy for a while. The store that never happens keeps the loop.
__global__ void busy(std::uint64_t turns, std::uint64_t* out) {
  std::uint64_t x = threadIdx.x + 1;
  for (std::uint64_t i = 0; i < turns; ++i) x = mix(x, i);
  if (x == 0) *out = x;
}

/// Not launched before our kernel is resident. Were modules loaded lazily, loading it would wait for ours to
/// end.
__global__ void late_comer(std::uint32_t* word) { *word = 4711; }

__device__ std::uint64_t timer_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

/// Leaves no SM room for another block until the time is up.
__global__ void hold_sms(std::uint64_t ns) {
  const std::uint64_t begin = timer_ns();
  while (timer_ns() - begin < ns) __nanosleep(1000);
}

struct Timer {
  Timer() {
    cuda_ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cuda_ok(cudaEventCreate(&begin));
    cuda_ok(cudaEventCreate(&end));
    cuda_ok(cudaMalloc(&out, sizeof(*out)));
    milliseconds(2);  // warm up
  }
  /// The shortest of some runs of a kernel with two blocks for each SM.
  float milliseconds(int runs) {
    float best = 1e9f;
    for (int i = 0; i < runs; ++i) {
      float now = 0;
      cuda_ok(cudaEventRecord(begin, stream));
      busy<<<264, 256, 0, stream>>>(200'000, out);
      cuda_ok(cudaGetLastError());
      cuda_ok(cudaEventRecord(end, stream));
      cuda_ok(cudaEventSynchronize(end));
      cuda_ok(cudaEventElapsedTime(&now, begin, end));
      best = std::min(best, now);
    }
    return best;
  }
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  std::uint64_t* out = nullptr;
};

ChildResult run_here(const std::string& test_case, const Environment& environment = {}) {
  return run_child(test_case, kLimit, environment);
}

}  // namespace

TEST_CASE("more workers than SMs, or more shared memory than a block can have, are refused") {
  Options options = on_gpu("off");
  options.workers = 100'000;
  check_says(error_of<CapacityError>([&] { small_runtime(options); }),
             {"Options::workers is 100000", "SMs", "ask for at most"});
  options.workers = 0;
  options.scratch_bytes = 400u << 10;
  check_says(error_of<CapacityError>([&] { small_runtime(options); }), {"Options::scratch_bytes", "set it to at most"});
  options.scratch_bytes = 1024;
  options.device = 99;
  check_says(error_of<DeviceError>([&] { small_runtime(options); }), {"Options::device is 99"});
}

TEST_CASE("child: device trap", "[.child]") {
  Runtime runtime = start<Trap, Gate, Count>(on_gpu("off"));
  auto words = runtime.allocate<std::uint32_t>(8);
  Graph good, bad, slow;
  good.add(Count{words.data()});
  bad.add(Trap{words.data()});
  slow.add(Gate{words.data() + 1, words.data() + 2});
  const Executable counter = runtime.load(good), trap = runtime.load(bad), gate = runtime.load(slow);
  runtime.submit(counter).wait();
  std::vector<Run> runs{runtime.submit(gate)};
  for (int i = 0; i < 3; ++i) runs.push_back(runtime.submit(gate));
  runs.push_back(runtime.submit(trap));
  for (Run& run : runs) {
    CHECK(run.wait_for(std::chrono::seconds(30)));
    CHECK(run.status() == Status::device_lost);
    check_says(error_of<RunError>([&] { run.wait(); }), {"GPU context is dead", "compute-sanitizer", "Mode::drain"});
  }
  check_says(error_of<DeviceError>([&] { runtime.submit(counter); }), {"cannot submit", "GPU context is dead"});
  CHECK(error_of<DeviceError>([&] { runtime.load(good); }) != "");
  std::puts("all futures have failed");
}

TEST_CASE("a device trap fails every outstanding run with its cause") {
  const ChildResult result = run_here("child: device trap");
  check_child(result);
  check_says(result.output, {"all futures have failed"});
}

TEST_CASE("child: never ends", "[.child]") {
  Options options = on_gpu("off");
  options.stall_limit = std::chrono::milliseconds(300);
  options.shutdown_timeout = std::chrono::seconds(1);
  {
    Bench bench(options);
    const Executable counter = bench.counter(0);
    Graph polite, deaf;
    polite.add(Gate{bench.at(1), bench.at(2)});
    deaf.add(Deaf{bench.at(3), bench.at(4)});
    const Executable first = bench.runtime.load(polite), second = bench.runtime.load(deaf);
    for (const Executable& executable : {first, second}) {
      Run run = bench.runtime.submit(executable);
      while (!run.done()) bench.runtime.submit(counter).wait();  // others go on
      CHECK(run.status() == Status::worker_stalled);
      check_says(error_of<RunError>([&] { run.wait(); }), {"Options::stall_limit", "task 0 (flywheel::testing::", "worker"});
    }
    for (int i = 0; i < 100; ++i) bench.runtime.submit(counter).wait();
  }
  std::puts("the runtime is gone");
}

TEST_CASE("a task that never ends fails its run; neither others nor the end of the process wait for it") {
  const ChildResult result = run_here("child: never ends");
  check_child(result);
  check_says(result.output, {"the runtime is gone"});
  CHECK(result.seconds < 40);
}

TEST_CASE("child: exit with a resident kernel", "[.child]") {
  Options options = on_gpu("off");
  options.park_after = std::chrono::hours(1);
  auto* bench = new Bench(options);  // deliberately never deleted
  bench->runtime.submit(bench->counter(0)).wait();
  CHECK(bench->runtime.stats().parks == 0);
  std::puts("leaving");
  std::fflush(stdout);
  std::quick_exit(0);
}

TEST_CASE("child: return from main with a resident kernel", "[.child]") {
  Options options = on_gpu("off");
  options.park_after = std::chrono::hours(1);
  static Bench bench(options);  // destroyed after main
  bench.runtime.submit(bench.counter(0)).wait();
  std::puts("leaving");
}

TEST_CASE("a process may end while its kernel is resident") {
  for (const char* child : {"child: exit with a resident kernel", "child: return from main with a resident kernel"}) {
    const ChildResult result = run_here(child);
    check_child(result);
    check_says(result.output, {"leaving"});
    CHECK(result.seconds < 30);
  }
}

TEST_CASE("child: drain mode is chosen", "[.child]") {
  Options options;
  options.target = Target::gpu;
  Bench bench(options, 1024);
  Buffer<std::uint64_t> sum = bench.runtime.allocate<std::uint64_t>(1);
  Graph dynamic, phased, failing;
  const auto root = dynamic.add(Fibonacci{10, sum.data(), bench.at(0)});
  dynamic.add(EmitRange{0, 1000}, after(root));
  phased.add_grid(Rounds{bench.at(16), bench.at(2), 5});
  failing.add(Fail{5, 0});
  const Executable all[] = {bench.runtime.load(dynamic), bench.runtime.load(phased), bench.runtime.load(failing)};
  for (std::uint64_t round = 1; round <= 10; ++round) {
    std::vector<Run> runs;
    for (const Executable& executable : all) runs.push_back(bench.runtime.submit(executable));
    std::uint32_t next = 0;
    while (const auto value = runs[0].next<std::uint32_t>()) REQUIRE(*value == next++);
    CHECK(next == 1000);
    CHECK(runs[1].status() == Status::ok);
    CHECK(runs[2].status() == Status::task_failed);
    CHECK(sum.read()[0] == round * 55);
  }
  CHECK(bench.get(2) == 0);
  REQUIRE(eventually([&] { return bench.runtime.stats().completed == 30; }));
  CHECK(eventually([&] { return bench.runtime.stats().parks == bench.runtime.stats().launches; }));
  CHECK(bench.runtime.stats().launches > 1);  // each kernel ends when its work is done
}

TEST_CASE("CUDA_LAUNCH_BLOCKING=1 and FLYWHEEL_MODE=drain choose drain mode, with a word about it") {
  const ChildResult blocking = run_here("child: drain mode is chosen", {{"CUDA_LAUNCH_BLOCKING", "1"}});
  check_child(blocking);
  check_says(blocking.output, {"drain mode: CUDA_LAUNCH_BLOCKING=1", "Options::mode"});
  check_child(run_here("child: drain mode is chosen", {{"FLYWHEEL_MODE", "drain"}}));
  const ChildResult typo = run_here("child: drain mode is chosen", {{"FLYWHEEL_MODE", "train"}});
  CHECK(typo.status != 0);
  check_says(typo.output, {"FLYWHEEL_MODE is 'train'", "resident or drain"});
}

TEST_CASE("a runtime in a process that loads kernels lazily says what may hang") {
  const ChildResult lazy =
      run_here("child: return from main with a resident kernel", {{"CUDA_MODULE_LOADING", "LAZY"}, {"FLYWHEEL_LOG", "warn"}});
  check_child(lazy);
  check_says(lazy.output, {"loads kernels lazily", "CUDA_MODULE_LOADING=EAGER"});
}

TEST_CASE("child: another kernel is loaded and run beside the resident one", "[.child]") {
  cudaStream_t stream;
  cuda_ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::uint32_t* word = nullptr;
  cuda_ok(cudaMallocHost(&word, sizeof(*word)));
  *word = 0;
  Options options = on_gpu("off");
  options.park_after = std::chrono::hours(1);
  options.yield_every = std::chrono::milliseconds(0);  // the kernel stays, and the other one runs beside it
  cudaDeviceProp properties{};
  cuda_ok(cudaGetDeviceProperties(&properties, 0));
  options.workers = static_cast<std::uint32_t>(properties.multiProcessorCount) / 2;
  Bench bench(options);
  Executable held;
  Run run = bench.hold(0, held);
  late_comer<<<1, 1, 0, stream>>>(word);
  cuda_ok(cudaGetLastError());
  REQUIRE(eventually([&] { return cudaStreamQuery(stream) == cudaSuccess; }));
  CHECK(*word == 4711);
  CHECK_FALSE(run.done());
  bench.put(1, 1);
  run.wait();
  CHECK(bench.runtime.stats().launches == 1);
}

TEST_CASE("fewer workers than SMs leave room: another kernel loads and runs while ours is resident") {
  check_child(run_here("child: another kernel is loaded and run beside the resident one"));
}

TEST_CASE("child: no SM is free", "[.child]") {
  cudaStream_t stream;
  cuda_ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  Options options = on_gpu("off");
  options.start_timeout = std::chrono::milliseconds(300);
  Bench bench(options);
  const Executable counter = bench.counter(0);
  cudaDeviceProp properties{};
  cuda_ok(cudaGetDeviceProperties(&properties, 0));
  hold_sms<<<2 * properties.multiProcessorCount, 1024, 0, stream>>>(2'000'000'000);
  cuda_ok(cudaGetLastError());
  Run run = bench.runtime.submit(counter);
  REQUIRE(run.wait_for(std::chrono::seconds(10)));
  CHECK(run.status() == Status::workers_missing);
  std::string message;
  try {
    run.wait();
  } catch (const RunError& error) {
    message = error.what();
  }
  check_says(message, {"0 of", "workers have started", "another program holds SMs", "Options::workers"});
}

TEST_CASE("SMs held by others: the run fails in time and says so, and the late kernel ends by itself") {
  check_child(run_here("child: no SM is free"));
}

TEST_CASE("parked, the runtime takes nothing from other kernels, and comes back") {
  Timer timer;
  const float alone = timer.milliseconds(20);
  Options options = on_gpu("off");
  options.park_after = std::chrono::milliseconds(2);
  Bench bench(options);
  const Executable counter = bench.counter(0);
  for (std::uint32_t round = 1; round <= 5; ++round) {
    bench.runtime.submit(counter).wait();
    REQUIRE(eventually([&] { return bench.runtime.stats().parks == round; }));
    const float parked = timer.milliseconds(20);
    INFO("alone " << alone << " ms, parked " << parked << " ms");
    CHECK(parked < 1.05f * alone);
  }
  CHECK(bench.get(0) == 5);
}

TEST_CASE("a stream longer than its ring does not stop the kernel, read or not") {
  Options options = on_gpu("off");
  options.stream_capacity = 8;
  Bench bench(options);
  Graph graph;
  graph.add(EmitRange{0, 5000});
  const Executable executable = bench.runtime.load(graph);
  std::vector<Run> runs;
  for (int i = 0; i < 4; ++i) runs.push_back(bench.runtime.submit(executable));
  for (Run& run : runs) CHECK(run.wait_for(std::chrono::seconds(60)));
  for (Run& run : runs)
    for (std::uint32_t i = 0; i < 5000; ++i) REQUIRE(run.next<std::uint32_t>() == i);
}
