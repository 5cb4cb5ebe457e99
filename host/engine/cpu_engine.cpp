// The CPU engine: workers as CPU threads, with the same queues, counters and loops as on a GPU, so that gdb and the
// sanitizers can be used.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "../../runtime/cpu/entry.hpp"
#include "../base/error.hpp"
#include "../base/log.hpp"
#include "../base/options_check.hpp"
#include "engine.hpp"
#include "thrown_texts.hpp"

namespace flywheel::detail {

namespace {

constexpr std::size_t kAlignment = 256;

/// Zeroes memory that was just allocated. Whole pages go back to the system, which provides zeros on first use: most of a
/// runtime's memory is never touched.
void* zero_new(void* memory, std::size_t bytes) {
  constexpr std::size_t kLarge = 256 << 10;
  if (bytes < kLarge) return std::memset(memory, 0, bytes);
  const auto page = static_cast<std::size_t>(getpagesize());
  auto* const first = static_cast<unsigned char*>(memory);
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(first) % page;
  const std::size_t pages = (bytes - before) / page * page;
  if (madvise(first + before, pages, MADV_DONTNEED) != 0) return std::memset(memory, 0, bytes);  // as where memory is locked
  std::memset(first, 0, before);
  std::memset(first + before + pages, 0, bytes - before - pages);
  return memory;
}

/// Copies memory word by word with atomic accesses if everything is 8-byte aligned: as on a GPU, a copy may run while
/// workers access the same words atomically.
void copy_words(void* to, const void* from, std::size_t bytes) {
  if (!bytes) return;  // with 0 bytes the pointers may be null
  const bool aligned = (reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | bytes) % 8 == 0;
  if (!aligned) {
    std::memcpy(to, from, bytes);
    return;
  }
  auto* target = static_cast<std::uint64_t*>(to);
  auto* source = const_cast<std::uint64_t*>(static_cast<const std::uint64_t*>(from));
  // Relaxed: each word only has to be whole. The caller orders the copy with the workers' accesses.
  for (std::size_t i = 0; i < bytes / 8; ++i)
    std::atomic_ref(target[i]).store(std::atomic_ref(source[i]).load(std::memory_order_relaxed), std::memory_order_relaxed);
}

/// What the threads use. Threads share its ownership with the engine: a thread whose task never ends keeps it when the
/// engine is destroyed.
struct CpuThreads {
  KernelEntry entry;
  DeviceState dev{};
  DirectSlot direct_slot{kEmptyMailbox, 0, 0, {}, {}, 0};
  std::vector<std::vector<unsigned char>> scratch;
  std::atomic<std::uint32_t> active{0};
};

class CpuEngine final : public Engine {
 public:
  CpuEngine(const KernelEntry& entry, const Options& options)
      : workers_(count_workers(options)),
        drains_(options.mode == Mode::drain),
        executor_(std::make_shared<CpuThreads>()) {
    executor_->entry = entry;
    executor_->scratch.assign(workers_, std::vector<unsigned char>(options.scratch_bytes + 16));
  }
  ~CpuEngine() override {
    // Acquire: pairs with the release in start(), as in state(). If threads still run, a task does not end: they are
    // left detached.
    if (!executor_->active.load(std::memory_order_acquire)) join();
    for (std::thread& thread : threads_) thread.detach();
  }

  std::string name() const override { return "CPU, " + std::to_string(workers_) + (workers_ == 1 ? " worker" : " workers"); }
  bool is_gpu() const override { return false; }
  std::uint32_t workers() const override { return workers_; }
  bool drains() const override { return drains_; }
  std::uint32_t operand_pages() const override { return 0; }  // tasks read their operands in place

  void* allocate_device(std::size_t bytes) override {
    const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* memory = std::aligned_alloc(kAlignment, rounded ? rounded : kAlignment);
    if (!memory)
      throw CapacityError("no memory for " + std::to_string(bytes) + " bytes: ask for less, or lower the sizes in Options");
    return zero_new(memory, rounded);
  }
  void free_device(void* memory) noexcept override { std::free(memory); }
  void* allocate_shared(std::size_t bytes) override { return allocate_device(bytes); }
  void free_shared(void* memory) noexcept override { std::free(memory); }
  void copy_to_device(void* device, const void* host, std::size_t bytes) override { copy_words(device, host, bytes); }
  void clear(void* device, std::size_t bytes) override { std::memset(device, 0, bytes); }
  void copy_to_host(void* host, const void* device, std::size_t bytes) override { copy_words(host, device, bytes); }
  std::string check_pointer(const void* pointer) const override { return pointer ? "" : "it is null"; }

  void launch(const DeviceState& dev) override {
    join();
    executor_->dev = dev;
    executor_->direct_slot = {kEmptyMailbox, 0, 0, {}, {}, 0};
    // Relaxed: the threads start after this store, and the start of a thread orders it before all that the thread does.
    executor_->active.store(workers_ + 1, std::memory_order_relaxed);
    try {
      start([](CpuThreads& c) { cpu_poller(c.dev, &c.direct_slot); });
      for (std::uint32_t w = 0; w < workers_; ++w)
        start([w](CpuThreads& c) {
          cpu_worker(c.dev, *c.entry.cpu_tasks, w, w == 0 ? &c.direct_slot : nullptr, c.scratch[w].data());
        });
    } catch (const std::exception& error) {
      give_up_launch(error.what());
    }
  }

  EngineState state(std::string&) override {
    // Acquire: pairs with the release in start(): once the count is 0, the caller may read and change what the threads
    // have written.
    return executor_->active.load(std::memory_order_acquire) ? EngineState::running : EngineState::parked;
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
  void start(Loop loop) {
    threads_.emplace_back([executor = executor_, loop] {
      loop(*executor);
      // Release: pairs with the acquires in state() and the destructor. What the loop has written is visible before the
      // count drops.
      executor->active.fetch_sub(1, std::memory_order_release);
    });
  }
  /// Ends the threads that have started, before the caller frees the device state's memory, and throws LaunchRefused.
  [[noreturn]] void give_up_launch(const std::string& why) {
    const std::size_t started = threads_.size();
    // Relaxed: workers and the inbox poller load it relaxed and then leave; they read nothing that depends on it.
    CpuPlatform::device(executor_->dev.control->broadcast.abort).store(1, Order::relaxed);
    join();
    executor_->active.store(0, std::memory_order_relaxed);  // relaxed: all threads are joined
    throw LaunchRefused("of " + std::to_string(workers_ + 1) + " threads " + std::to_string(started) + " could be started (" +
                        why + "): ask for fewer Options::workers, or raise the limits of the process");
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  std::uint32_t workers_;
  bool drains_;
  std::shared_ptr<CpuThreads> executor_;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<Engine> make_cpu_engine(const KernelEntry& entry, const Options& options) {
  keep_what_bodies_throw();
  if (const std::string what = scratch_of_no_gpu(options); !what.empty()) log::warn(what);
  return std::make_unique<CpuEngine>(entry, options);
}

}  // namespace flywheel::detail
