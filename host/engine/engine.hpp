// An engine: where the workers live and what memory they see. One for the GPU, one for CPU threads.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "../base/cuda_stream.hpp"
#include "../base/options.hpp"
#include "../../runtime/records/entry.hpp"

namespace flywheel {

enum class EngineState { parked, running, lost };

class Engine {
 public:
  virtual ~Engine() = default;

  virtual std::string name() const = 0;
  virtual bool is_gpu() const = 0;
  virtual std::uint32_t workers() const = 0;
  virtual bool drains() const = 0;  // the kernel ends when its work is done
  virtual std::uint32_t operand_pages() const = 0;  // of a worker, see operands.hpp
  /// Of a worker, in whole lines of 16 bytes; may be less than was asked for where that was left at its default.
  virtual std::uint32_t scratch_bytes(const Options& options) const { return (options.scratch_bytes + 15) / 16 * 16; }
  virtual double bytes_of_tick() const { return 0; }  // that memory is rated at, in a tick of the workers' clock; 0: not known

  // Memory. Zeroed; 256-byte aligned. Never called while the kernel is resident, except for the copies.
  virtual void* allocate_device(std::size_t bytes) = 0;
  virtual void free_device(void* memory) noexcept = 0;
  virtual void* allocate_shared(std::size_t bytes) = 0;  // host memory that the device reads and writes
  virtual void free_shared(void* memory) noexcept = 0;
  virtual void copy_to_device(void* device, const void* host, std::size_t bytes) = 0;
  virtual void clear(void* device, std::size_t bytes) = 0;
  virtual void copy_to_host(void* host, const void* device, std::size_t bytes) = 0;
  /// Empty if tasks can use the pointer, else a sentence why they cannot.
  virtual std::string check_pointer(const void* pointer) const = 0;

  // The kernel.
  virtual void launch(const DeviceState& dev) = 0;
  virtual EngineState state(std::string& why_lost) = 0;

  // Streams of the program's own. They throw where there is no GPU.
  virtual void after_stream(CudaStream stream, std::function<void()> then) = 0;
  virtual void make_stream_wait(CudaStream stream, const std::uint32_t* word, std::uint32_t at_least) = 0;
};

std::unique_ptr<Engine> make_cpu_engine(const KernelEntry& entry, const Options& options);
/// Null where the library was built without CUDA or there is no usable GPU; `why` says which.
std::unique_ptr<Engine> make_gpu_engine(const KernelEntry& entry, const Options& options, std::string& why);
/// The engine that the options ask for. Throws DeviceError if it asks for a GPU that cannot be used.
std::unique_ptr<Engine> make_engine(const KernelEntry& entry, const Options& options);

}  // namespace flywheel
