// Two runtimes of the same tasks on one GPU, as far as the host is concerned: they share the kernel's limit of shared memory.
#include <atomic>
#include <thread>

#include "host/base/error.hpp"
#include "host/engine/engine.hpp"
#include "host/engine/gpu_probe.hpp"
#include "simulate/workloads/bench.hpp"
#include "support/internals.hpp"

namespace flywheel::simulate {

namespace {

/// The attribute of the one kernel.
std::atomic<std::size_t> limit{0};

SharedLimitCalls calls() {
  return {[](const void*) { return limit.load(); }, [](const void*, std::size_t bytes) { limit.store(bytes); }};
}

/// CPU workers behind an engine that raises the limit and launches as GpuEngine does.
class LimitedEngine final : public Engine {
 public:
  LimitedEngine(const KernelEntry& entry, const Options& options)
      : inner_(make_cpu_engine(entry, options)),
        bytes_(options.scratch_bytes) {
    raise_shared_limit(&limit, bytes_, calls());
  }
  std::string name() const override { return "limited"; }
  bool is_gpu() const override { return false; }
  std::uint32_t workers() const override { return inner_->workers(); }
  bool drains() const override { return inner_->drains(); }
  std::uint32_t operand_pages() const override { return 0; }
  void* allocate_device(std::size_t bytes) override { return inner_->allocate_device(bytes); }
  void free_device(void* memory) noexcept override { inner_->free_device(memory); }
  void* allocate_shared(std::size_t bytes) override { return inner_->allocate_shared(bytes); }
  void free_shared(void* memory) noexcept override { inner_->free_shared(memory); }
  void copy_to_device(void* to, const void* from, std::size_t bytes) override { inner_->copy_to_device(to, from, bytes); }
  void clear(void* device, std::size_t bytes) override { inner_->clear(device, bytes); }
  void copy_to_host(void* to, const void* from, std::size_t bytes) override { inner_->copy_to_host(to, from, bytes); }
  std::string check_pointer(const void* pointer) const override { return inner_->check_pointer(pointer); }
  void launch(const DeviceState& dev) override {
    raise_shared_limit(&limit, bytes_, calls());
    if (bytes_ > limit.load()) throw LaunchRefused("the kernel's limit of shared memory is below what it is launched with");
    inner_->launch(dev);
  }
  EngineState state(std::string& why) override { return inner_->state(why); }
  void after_stream(CudaStream, std::function<void()>) override {}
  void make_stream_wait(CudaStream, const std::uint32_t*, std::uint32_t) override {}

 private:
  std::unique_ptr<Engine> inner_;
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
