// Two runtimes of the same tasks on one GPU, as far as the host is concerned: they share the kernel's limit of shared memory.
#include <atomic>
#include <thread>

#include "host/base/error.hpp"
#include "host/engine/gpu_probe.hpp"
#include "simulate/workloads/bench.hpp"
#include "support/forwarding_engine.hpp"
#include "support/internals.hpp"

namespace flywheel::simulate {

namespace {

/// The attribute of the one kernel.
std::atomic<std::size_t> limit{0};

SharedLimitCalls calls() {
  return {[](const void*) { return limit.load(); }, [](const void*, std::size_t bytes) { limit.store(bytes); }};
}

/// CPU workers behind an engine that raises the limit and launches as GpuEngine does.
class LimitedEngine final : public testing::ForwardingEngine {
 public:
  LimitedEngine(const KernelEntry& entry, const Options& options)
      : ForwardingEngine(make_cpu_engine(entry, options)),
        bytes_(options.scratch_bytes) {
    raise_shared_limit(&limit, bytes_, calls());
  }
  std::string name() const override { return "limited"; }
  void launch(const DeviceState& dev) override {
    raise_shared_limit(&limit, bytes_, calls());
    if (bytes_ > limit.load()) throw LaunchRefused("the kernel's limit of shared memory is below what it is launched with");
    inner_->launch(dev);
  }

 private:
  std::size_t bytes_;
};

/// Submits now and then, so that the kernel leaves and comes back.
void use(const Options& options, std::uint32_t runs, std::uint64_t seed) {
  Random random = random_of_thread(seed);
  Runtime runtime(kernel_entry<Leaf>(), options, std::make_unique<LimitedEngine>(kernel_entry<Leaf>(), options));
  Buffer<std::uint32_t> count = runtime.allocate<std::uint32_t>(1);
  Graph graph;
  graph.add(Leaf{count.data()});
  Executable executable = runtime.load(graph);
  for (std::uint32_t i = 0; i < runs; ++i) {
    Run run = runtime.submit(executable);
    check_run(run, "a run beside another runtime");
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(4'000)));
  }
  expect(testing::peek_at(*count.data()) == runs, "a submitted task did not run once");
}

}  // namespace

void run_limits(Random& random) {
  Options options = options_of(random, 4);
  options.workers = 1 + random.below(2);
  options.park_after = std::chrono::milliseconds(random.below(2));
  describe_program(options, "two runtimes");
  limit.store(0);
  std::vector<std::thread> all;
  for (std::uint32_t i = 0; i < 2; ++i) {
    options.scratch_bytes = 64u << (4 * random.below(3));
    const std::uint32_t runs = 1 + random.below(5);
    const std::uint64_t seed = random.next();
    owe(options, runs, runs, 4'000 * runs);
    all.emplace_back([options, runs, seed] { use(options, runs, seed); });
  }
  for (std::thread& thread : all) thread.join();
}

}  // namespace flywheel::simulate
