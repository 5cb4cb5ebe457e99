// The GPU engine: one cooperative kernel with one block per SM, launched once and kept resident.
#include "gpu_engine.hpp"

#include <algorithm>
#include <cstring>

#include "../base/cuda_error.hpp"
#include "../base/log.hpp"
#include "gpu_probe.hpp"
#include "pointer_check.hpp"

namespace flywheel::detail {

namespace {
constexpr std::size_t kStagingBytes = std::size_t{4} << 20;

/// Makes the engine's device current, and restores the thread's former device at the end. CUDA's current device belongs
/// to the thread, and any thread of the program may call the engine.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device) : device_(device) {
    FLYWHEEL_CUDA(cudaGetDevice(&before_));
    if (before_ != device_) FLYWHEEL_CUDA(cudaSetDevice(device_));
  }
  ~DeviceGuard() {
    if (before_ != device_) cuda_note(cudaSetDevice(before_), "cudaSetDevice");
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int device_, before_ = 0;
};

/// Logs a warning if CUDA loads kernels lazily. Then another kernel is loaded at its first launch, and loading may wait
/// for the resident kernel to end.
void warn_of_lazy_loading() {
  using GetMode = int (*)(int*);
  constexpr int kLazy = 2;  // CU_MODULE_LAZY_LOADING
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  FLYWHEEL_CUDA(cudaGetDriverEntryPointByVersion("cuModuleGetLoadingMode", &function, 12000, cudaEnableDefault, &found));
  int mode = 0;
  if (!function || reinterpret_cast<GetMode>(function)(&mode) != 0 || mode != kLazy) return;
  log::warn(
      "CUDA loads kernels lazily in this process, and a first launch of another kernel may wait for ever beside a "
      "resident one. Start the runtime before other CUDA calls, or set CUDA_MODULE_LOADING=EAGER.");
}

[[noreturn]] void throw_no_memory(std::size_t bytes) {
  cudaGetLastError();  // clears the error, so that the program does not see it
  std::size_t free_bytes = 0, all_bytes = 0;
  FLYWHEEL_CUDA(cudaMemGetInfo(&free_bytes, &all_bytes));
  throw CapacityError("the GPU has no " + std::to_string(bytes) + " bytes in one piece: " + std::to_string(free_bytes >> 20) +
                      " of " + std::to_string(all_bytes >> 20) +
                      " MiB are free. To do: free GPU memory, perhaps of another program, or " + "lower the sizes in Options");
}

MemoryKind kind_of(cudaMemoryType type) {
  switch (type) {
    case cudaMemoryTypeHost:
      return MemoryKind::registered;
    case cudaMemoryTypeDevice:
      return MemoryKind::device;
    case cudaMemoryTypeManaged:
      return MemoryKind::managed;
    default:
      return MemoryKind::ordinary;
  }
}

CUstream_st* new_stream() {
  cudaStream_t stream;
  FLYWHEEL_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}
}  // namespace

GpuEngine::GpuEngine(const KernelEntry& entry, const Options& options, const GpuFacts& facts)
    : entry_(entry),
      device_(options.device),
      facts_(facts),
      drains_(choose_drain(options, facts)),
      warps_(options.tuning.bare_runs ? kWorkerWarps : 0) {
  const DeviceGuard guard(device_);
  if (!drains_) warn_of_lazy_loading();
  fit_ = fit_kernel(entry, options, facts);
  if (fit_.scratch_bytes < options.scratch_bytes)
    log::info("blocks have " + std::to_string(fit_.scratch_bytes) + " bytes of scratch: the rest of Options::scratch_bytes " +
              "gave way to pages of operands");
  kernel_stream_ = new_stream();
  copy_stream_ = new_stream();
  FLYWHEEL_CUDA(cudaHostAlloc(&staging_, kStagingBytes, cudaHostAllocDefault));
  FLYWHEEL_CUDA(cudaHostAlloc(&zeros_, kStagingBytes, cudaHostAllocDefault));
  std::memset(zeros_, 0, kStagingBytes);
  uploads_ = std::make_unique<GpuStaging>(copy_stream_);
}

GpuEngine::~GpuEngine() {
  std::string why;
  if (state(why) == EngineState::running) {  // a live kernel still uses all of it: leak it
    uploads_.release();
    return;
  }
  cuda_note(cudaFreeHost(staging_), "cudaFreeHost");
  cuda_note(cudaFreeHost(zeros_), "cudaFreeHost");
  uploads_.reset();
  cuda_note(cudaStreamDestroy(copy_stream_), "cudaStreamDestroy");
  cuda_note(cudaStreamDestroy(kernel_stream_), "cudaStreamDestroy");
}

void* GpuEngine::allocate_device(std::size_t bytes) {
  const DeviceGuard guard(device_);
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, std::max<std::size_t>(bytes, 1));
  if (error == cudaErrorMemoryAllocation) throw_no_memory(bytes);
  cuda_check(error, "cudaMalloc");
  try {
    clear(memory, bytes);
  } catch (...) {
    cuda_note(cudaFree(memory), "cudaFree");
    throw;
  }
  return memory;
}

// Clears with copies of zeros. A memset is a kernel, which would wait for a resident kernel to end, for example another
// runtime's. A copy does not wait.
void GpuEngine::clear(void* device, std::size_t bytes) {
  const DeviceGuard guard(device_);
  for (std::size_t at = 0; at < bytes; at += kStagingBytes)
    FLYWHEEL_CUDA(cudaMemcpyAsync(static_cast<char*>(device) + at, zeros_, std::min(kStagingBytes, bytes - at),
                                  cudaMemcpyHostToDevice, copy_stream_));
  FLYWHEEL_CUDA(cudaStreamSynchronize(copy_stream_));
}

void GpuEngine::free_device(void* memory) noexcept { cuda_note(cudaFree(memory), "cudaFree"); }

void* GpuEngine::allocate_shared(std::size_t bytes) {
  const DeviceGuard guard(device_);
  void* memory = nullptr;
  FLYWHEEL_CUDA(cudaHostAlloc(&memory, std::max<std::size_t>(bytes, 1), cudaHostAllocMapped | cudaHostAllocPortable));
  return std::memset(memory, 0, bytes);
}

void GpuEngine::free_shared(void* memory) noexcept { cuda_note(cudaFreeHost(memory), "cudaFreeHost"); }

// Copies through the pinned staging buffer: a copy from pageable memory would synchronise with the resident kernel.
void GpuEngine::copy_to_device(void* device, const void* host, std::size_t bytes) {
  const DeviceGuard guard(device_);
  std::scoped_lock lock(staging_mutex_);
  for (std::size_t at = 0; at < bytes; at += kStagingBytes) {
    const std::size_t part = std::min(kStagingBytes, bytes - at);
    std::memcpy(staging_, static_cast<const char*>(host) + at, part);
    FLYWHEEL_CUDA(cudaMemcpyAsync(static_cast<char*>(device) + at, staging_, part, cudaMemcpyHostToDevice, copy_stream_));
    FLYWHEEL_CUDA(cudaStreamSynchronize(copy_stream_));
  }
}

void GpuEngine::copy_to_host(void* host, const void* device, std::size_t bytes) {
  const DeviceGuard guard(device_);
  std::scoped_lock lock(staging_mutex_);
  for (std::size_t at = 0; at < bytes; at += kStagingBytes) {
    const std::size_t part = std::min(kStagingBytes, bytes - at);
    FLYWHEEL_CUDA(cudaMemcpyAsync(staging_, static_cast<const char*>(device) + at, part, cudaMemcpyDeviceToHost, copy_stream_));
    FLYWHEEL_CUDA(cudaStreamSynchronize(copy_stream_));
    std::memcpy(static_cast<char*>(host) + at, staging_, part);
  }
}

void GpuEngine::copy_on_device(void* to, const void* from, std::size_t bytes) {
  const DeviceGuard guard(device_);
  FLYWHEEL_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, copy_stream_));
  FLYWHEEL_CUDA(cudaStreamSynchronize(copy_stream_));
}

std::span<unsigned char> GpuEngine::stage(void*, std::size_t bytes) {
  const DeviceGuard guard(device_);
  return uploads_->take(bytes);
}

std::uint64_t GpuEngine::send(void* device, std::span<unsigned char> piece, std::size_t used) {
  const DeviceGuard guard(device_);
  return uploads_->send(device, piece, used);
}

void GpuEngine::finish_uploads(std::uint64_t number) {
  const DeviceGuard guard(device_);
  uploads_->finish(number);
}

std::string GpuEngine::check_pointer(const void* pointer) const {
  if (!pointer) return "it is null";
  const DeviceGuard guard(device_);  // `devicePointer` is valid for the current device
  cudaPointerAttributes attributes{};
  FLYWHEEL_CUDA(cudaPointerGetAttributes(&attributes, pointer));
  return why_unusable({kind_of(attributes.type), attributes.device, attributes.devicePointer != nullptr}, device_);
}

void GpuEngine::launch(const DeviceState& dev) {
  const DeviceGuard guard(device_);
  DeviceState copy = dev;
  void* arguments[] = {&copy};
  raise_shared_limit(entry_.kernel, fit_.shared_bytes);  // code outside the library may have lowered it
  const cudaError_t error = cudaLaunchCooperativeKernel(entry_.kernel, dim3(fit_.workers), dim3(entry_.block_threads),
                                                        arguments, fit_.shared_bytes, kernel_stream_);
  if (error == cudaSuccess) return;
  cudaGetLastError();  // clears the error, so that the program does not see it
  std::string why_lost;
  // A lost context answers every call with the same error, so the error of the launch alone does not tell a refusal
  // from a lost device.
  if (state(why_lost) != EngineState::lost) throw LaunchRefused(cuda_failure(error, "cudaLaunchCooperativeKernel"));
  cuda_check(error, "cudaLaunchCooperativeKernel");
}

EngineState GpuEngine::state(std::string& why_lost) {
  const cudaError_t answer = cudaStreamQuery(kernel_stream_);
  if (answer == cudaSuccess) return EngineState::parked;
  if (answer == cudaErrorNotReady) return EngineState::running;
  why_lost = std::string(cudaGetErrorString(answer)) + " (" + cudaGetErrorName(answer) + ")";
  return EngineState::lost;
}

void GpuEngine::after_stream(CudaStream stream, std::function<void()> then) {
  auto* call = new std::function<void()>(std::move(then));
  const auto run = [](void* data) {
    std::unique_ptr<std::function<void()>> once(static_cast<std::function<void()>*>(data));
    (*once)();
  };
  const cudaError_t error = cudaLaunchHostFunc(stream, run, call);
  if (error != cudaSuccess) delete call;
  cuda_check(error, "cudaLaunchHostFunc");
}

void GpuEngine::make_stream_wait(CudaStream stream, const std::uint32_t* word, std::uint32_t at_least) {
  // The function is found through the runtime's entry point query: a program that links libcuda would not start without
  // a driver.
  using WaitValue = int (*)(CudaStream, unsigned long long, std::uint32_t, unsigned);
  static const WaitValue wait_value = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    FLYWHEEL_CUDA(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &function, 12000, cudaEnableDefault, &found));
    return reinterpret_cast<WaitValue>(function);
  }();
  constexpr unsigned kAtLeast = 0;  // CU_STREAM_WAIT_VALUE_GEQ
  if (!wait_value || wait_value(stream, reinterpret_cast<unsigned long long>(word), at_least, kAtLeast) != 0)
    throw DeviceError("cuStreamWaitValue32 is not available on this GPU: wait for the run on the host instead");
}

std::unique_ptr<Engine> make_gpu_engine(const KernelEntry& entry, const Options& options, std::string& why) {
  if (!entry.kernel) {
    why = "the task types were compiled without nvcc";
    return nullptr;
  }
  GpuFacts facts{};
  if (!probe_gpu(options.device, facts, why)) return nullptr;
  return std::make_unique<GpuEngine>(entry, options, facts);
}

}  // namespace flywheel::detail
