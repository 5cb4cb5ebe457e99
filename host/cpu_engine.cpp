// Workers as CPU threads: the same queues, counters and loops, under gdb and the sanitizers.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "host/engine.hpp"
#include "host/error.hpp"

namespace flywheel {

namespace {

constexpr std::size_t kAlignment = 256;

class CpuEngine final : public Engine {
 public:
  CpuEngine(const KernelEntry& entry, const Options& options)
      : entry_(entry), workers_(count_workers(options)), drains_(options.mode == Mode::drain), porch_{kEmptyMailbox, 0} {
    for (std::uint32_t w = 0; w < workers_; ++w) scratch_.push_back(std::make_unique<unsigned char[]>(options.scratch_bytes + 16));
  }
  ~CpuEngine() override { join(); }

  std::string name() const override { return "CPU, " + std::to_string(workers_) + " workers"; }
  bool is_gpu() const override { return false; }
  std::uint32_t workers() const override { return workers_; }
  bool drains() const override { return drains_; }

  void* allocate_device(std::size_t bytes) override {
    const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* memory = std::aligned_alloc(kAlignment, rounded ? rounded : kAlignment);
    if (!memory) throw CapacityError("no memory for " + std::to_string(bytes) + " bytes: lower the sizes in Options");
    return std::memset(memory, 0, rounded);
  }
  void free_device(void* memory) noexcept override { std::free(memory); }
  void* allocate_shared(std::size_t bytes) override { return allocate_device(bytes); }
  void free_shared(void* memory) noexcept override { std::free(memory); }
  void copy_to_device(void* device, const void* host, std::size_t bytes) override { std::memcpy(device, host, bytes); }
  void copy_to_host(void* host, const void* device, std::size_t bytes) override { std::memcpy(host, device, bytes); }
  const char* check_pointer(const void* pointer) const override { return pointer ? nullptr : "it is null"; }

  void launch(const World& world) override {
    join();
    world_ = world;
    porch_ = {kEmptyMailbox, 0};
    active_.store(workers_ + 1, std::memory_order_relaxed);
    threads_.emplace_back([this] { turn([this] { entry_.cpu_door(world_, &porch_); }); });
    for (std::uint32_t w = 0; w < workers_; ++w)
      threads_.emplace_back([this, w] {
        turn([this, w] { entry_.cpu_worker(world_, w, w == 0 ? &porch_ : nullptr, scratch_[w].get()); });
      });
  }

  EngineState state(std::string&) override {
    // Acquire: pairs with the release in turn(); a parked engine's memory may be read and changed.
    return active_.load(std::memory_order_acquire) ? EngineState::running : EngineState::parked;
  }

  void after_stream(CudaStream, std::function<void()>) override { throw no_stream(); }
  void make_stream_wait(CudaStream, const std::uint32_t*, std::uint32_t) override { throw no_stream(); }

 private:
  static std::uint32_t count_workers(const Options& options) {
    if (options.workers > kMaxWorkers)
      throw CapacityError("Options::workers is " + std::to_string(options.workers) + ": at most " +
                          std::to_string(kMaxWorkers));
    const std::uint32_t threads = std::thread::hardware_concurrency();
    return options.workers ? options.workers : (threads ? threads : 1);
  }
  static UsageError no_stream() {
    return UsageError("this runtime runs on CPU workers and knows no CUDA streams: start it with Target::gpu");
  }

  template <class Loop>
  void turn(Loop&& loop) {
    loop();
    active_.fetch_sub(1, std::memory_order_release);
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  KernelEntry entry_;
  std::uint32_t workers_;
  bool drains_;
  World world_{};
  Porch porch_;
  std::vector<std::unique_ptr<unsigned char[]>> scratch_;
  std::vector<std::thread> threads_;
  std::atomic<std::uint32_t> active_{0};
};

}  // namespace

std::unique_ptr<Engine> make_cpu_engine(const KernelEntry& entry, const Options& options) {
  return std::make_unique<CpuEngine>(entry, options);
}

}  // namespace flywheel
