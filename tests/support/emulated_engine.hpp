// An engine whose GPU is emulated: the kernel itself, device/*.cuh as they are, with a thread of the operating system for
// each block and a fiber for each of its threads. For programs that find tests/support/emulated before all other headers.
#pragma once

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "device/kernel.cuh"
#include "host/api/runtime.hpp"
#include "host/base/error.hpp"
#include "host/engine/engine.hpp"
#include "support/fresh_seed.hpp"
#include "support/internals.hpp"

namespace flywheel::testing {

/// What the kernel calls the mbarrier at an address of the calling block's shared memory.
inline std::string mbarrier_name(const void* at) {
  RolesShared& roles = roles_shared();
  ExecutorShared& executor = executor_shared();
  const struct {
    const char* name;
    const std::uint64_t* first;
    std::size_t count;
  } all[] = {{"ready", roles.ready, kRoleSlots},
             {"computed", roles.computed, kRoleSlots},
             {"coming", roles.coming, kRoleSlots},
             {"before", roles.before, kRoleSlots},
             {"stored", roles.stored, kRoleSlots},
             {"handoff_full", roles.handoff_full, kHandoffs},
             {"handoff_empty", roles.handoff_empty, kHandoffs},
             {"page_full", roles.page_full, kMostPages},
             {"page_empty", roles.page_empty, kMostPages},
             {"begin", &roles.begin, 1},
             {"left", &roles.left, 1},
             {"load_begin", &executor.load_begin, 1},
             {"returned", &executor.returned, 1},
             {"full", executor.full, 2},
             {"done", executor.done, 2}};
  for (const auto& one : all)
    for (std::size_t i = 0; i < one.count; ++i)
      if (one.first + i == at) return one.name + ("[" + std::to_string(i) + "]");
  return "that the kernel does not know";
}

/// What the blocks of a launch use.
struct EmulatedLaunch {
  using Kernel = void (*)(DeviceState);

  Kernel kernel;
  DeviceState dev{};
  EmulatedGrid grid;
  std::atomic<std::uint32_t> active{0};
  std::uint64_t seed = 0;

  /// One block, on the calling thread. Shared memory holds anything at first.
  void run_block(std::uint32_t index, std::size_t shared_bytes, EmulatedStacks& stacks) {
    const int anything = static_cast<int>(mix(seed, index) % 256);
    const SharedRange ranges[] = {{reinterpret_cast<unsigned char*>(&roles_shared()), sizeof(RolesShared)},
                                  {reinterpret_cast<unsigned char*>(&executor_shared()), sizeof(ExecutorShared)},
                                  {memory, shared_bytes}};
    const WatchedBlock watched(this, {ranges[0], ranges[1], ranges[2]});
    for (const SharedRange& range : ranges) std::memset(range.first, anything, range.bytes);
    gridDim.x = dev.workers;
    run(index, ranges[2], ranges[0], stacks);
    active.fetch_sub(1, std::memory_order_release);
  }

 private:
  void run(std::uint32_t index, const SharedRange& dynamic, const SharedRange& fixed, EmulatedStacks& stacks) {
    const Unwatched unwatched;
    const auto block = std::make_unique<EmulatedBlock>(index, seed, grid, stacks);
    block->barriers().name_of = mbarrier_name;
    block->copies().dynamic = dynamic;
    block->copies().fixed = fixed;
    block->run([this] { kernel(dev); });
  }
};

/// Memory is ordinary memory; programs see a GPU of so many workers.
class EmulatedEngine final : public Engine {
 public:
  EmulatedEngine(const KernelEntry& entry, const Options& options, std::uint64_t seed, const EmulatedPace& pace)
      : options_(options),
        workers_(options.workers ? options.workers : 3),
        seed_(seed),
        memory_(make_cpu_engine(entry, options)),
        stacks_(workers_) {
    launch_.grid.seed = seed;
    launch_.grid.pace = pace;
    launch_.kernel = reinterpret_cast<EmulatedLaunch::Kernel>(reinterpret_cast<std::uintptr_t>(entry.kernel));
    if (entry.has_operands) pages_ = options.operand_pages ? options.operand_pages : 3;
    if (shared_bytes() > kEmulatedSharedBytes)
      throw CapacityError("emulated blocks have 227 KB of shared memory: lower Options::scratch_bytes or operand_pages");
  }
  ~EmulatedEngine() override {
    if (launch_.active) launch_.grid.report("the engine is destroyed while its kernel runs");
    join();
  }

  std::string name() const override { return "emulated GPU, seed " + std::to_string(seed_); }
  bool is_gpu() const override { return true; }
  std::uint32_t workers() const override { return workers_; }
  bool drains() const override { return options_.mode == Mode::drain; }
  std::uint32_t operand_pages() const override { return pages_; }
  std::uint32_t warps() const override { return options_.tuning.bare_runs ? kWorkerWarps : 0; }
  double bytes_of_tick() const override { return 1000; }  // a page for each of 3 workers in 0.1 us: loaders keep a pace

  void* allocate_device(std::size_t bytes) override { return memory_->allocate_device(bytes); }
  void free_device(void* memory) noexcept override { memory_->free_device(memory); }
  void* allocate_shared(std::size_t bytes) override { return memory_->allocate_shared(bytes); }
  void free_shared(void* memory) noexcept override { memory_->free_shared(memory); }
  void copy_to_device(void* device, const void* host, std::size_t bytes) override {
    const WatchedMemcpy copying;
    memory_->copy_to_device(device, host, bytes);
  }
  void clear(void* device, std::size_t bytes) override { memory_->clear(device, bytes); }
  void copy_to_host(void* host, const void* device, std::size_t bytes) override {
    const Unwatched unwatched;  // tests look what a run has done so far
    memory_->copy_to_host(host, device, bytes);
  }
  std::string check_pointer(const void* pointer) const override { return memory_->check_pointer(pointer); }

  void launch(const DeviceState& dev) override {
    join();
    launch_.dev = dev;
    launch_.grid.abort = &dev.control->broadcast.abort;
    launch_.seed = mix(seed_, dev.launch);
    launch_.active.store(workers_, std::memory_order_relaxed);
    for (std::uint32_t b = 0; b < workers_; ++b)
      threads_.emplace_back([this, b] { launch_.run_block(b, shared_bytes(), stacks_[b]); });
  }

  EngineState state(std::string& why_lost) override {
    // Acquire: pairs with the release in run_block(); a parked engine's memory may be read and changed.
    if (launch_.active.load(std::memory_order_acquire)) return EngineState::running;
    if (!launch_.grid.broken()) return EngineState::parked;
    why_lost = launch_.grid.why();
    return EngineState::lost;
  }

  void after_stream(CudaStream stream, std::function<void()> then) override { memory_->after_stream(stream, std::move(then)); }
  void make_stream_wait(CudaStream stream, const std::uint32_t* word, std::uint32_t at_least) override {
    memory_->make_stream_wait(stream, word, at_least);
  }

 private:
  std::size_t shared_bytes() const {
    const std::size_t scratch = (std::size_t{options_.scratch_bytes} + 15) / 16 * 16;
    return pages_ * std::size_t{kPageBytes} + scratch + kHandoffs * kHandoffBytes;
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  Options options_;
  std::uint32_t workers_;
  std::uint64_t seed_;
  std::uint32_t pages_ = 0;
  std::unique_ptr<Engine> memory_;
  std::vector<EmulatedStacks> stacks_;
  EmulatedLaunch launch_;
  std::vector<std::thread> threads_;
};

/// As flywheel::start(), on an emulated GPU: of 3 workers and 3 pages if the options do not say.
template <class... Tasks>
Runtime start_emulated(const Options& options, std::uint64_t seed = fresh_seed(), const EmulatedPace& pace = {}) {
  static const KernelEntry entry = [] {
    KernelEntry gpu = kernel_entry<Tasks...>();
    gpu.kernel = reinterpret_cast<const void*>(&flywheel_kernel<TaskList<Tasks...>>);
    gpu.block_threads = kBlockThreads;
    return gpu;
  }();
  return Runtime(entry, options, std::make_unique<EmulatedEngine>(entry, options, seed, pace));
}

}  // namespace flywheel::testing
