// An engine provides the workers and the memory that they use. There are two: the GPU engine with one resident kernel,
// and the CPU engine with threads. Included by all rooms of the host library that allocate, copy or launch.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "../../runtime/gemm/product_record.hpp"
#include "../../runtime/records/entry.hpp"
#include "../base/cuda_stream.hpp"
#include "../base/options.hpp"

namespace flywheel::detail {

/// parked: no kernel runs. running: the kernel runs. lost: the device cannot be used any more.
enum class EngineState { parked, running, lost };

/// A matrix by rows, and the boxes of it that tensor copies move.
struct TensorBox {
  const void* values;
  bool floats;                         // otherwise Bf16
  std::uint32_t rows, columns, pitch;  // `pitch` values from row to row
  std::uint32_t box_columns, box_rows;
};

/// The interface of both engines. Functions throw DeviceError if a CUDA call fails.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual std::string name() const = 0;
  virtual bool is_gpu() const = 0;
  virtual std::uint32_t workers() const = 0;
  virtual bool drains() const = 0;                   // the kernel ends when its work is done (Mode::drain)
  virtual std::uint32_t operand_pages() const = 0;   // pages of a worker, see runtime/compiled/operands.hpp
  virtual std::uint32_t warps() const { return 0; }  // of a worker, that can run warp tasks side by side in compiled runs
  /// Bytes of scratch of a worker, a multiple of 16. May be less than Options::scratch_bytes if that was left at its
  /// default.
  virtual std::uint32_t scratch_bytes(const Options& options) const { return (options.scratch_bytes + 15) / 16 * 16; }
  /// Rated memory bandwidth in bytes per tick of the workers' clock; 0 if it is not known.
  virtual double bytes_of_tick() const { return 0; }

  // Memory is zeroed and 256-byte aligned. While the kernel is resident only copies and clear() may be called. Sizes
  // are in bytes.
  virtual void* allocate_device(std::size_t bytes) = 0;
  virtual void free_device(void* memory) noexcept = 0;
  virtual void* allocate_shared(std::size_t bytes) = 0;  // host memory that the device reads and writes
  virtual void free_shared(void* memory) noexcept = 0;
  virtual void copy_to_device(void* device, const void* host, std::size_t bytes) = 0;
  virtual void clear(void* device, std::size_t bytes) = 0;
  virtual void copy_to_host(void* host, const void* device, std::size_t bytes) = 0;
  /// Copies within device memory. The kernel is parked.
  virtual void copy_on_device(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

  // Uploads: the host writes a piece, and the engine brings it to the device while the host goes on. Thread-safe. An
  // engine whose device memory is host memory lets the host write in place, as the functions do here.
  /// Memory of 1 to `bytes` bytes in which the host writes what is to stand at `device`. Its size is `bytes` or a
  /// multiple of 128. It ends with send() or drop_piece().
  virtual std::span<unsigned char> stage(void* device, std::size_t bytes) {
    return {static_cast<unsigned char*>(device), bytes};
  }
  /// Begins to bring the first `used` bytes of a piece to `device`. Returns a number for finish_uploads().
  virtual std::uint64_t send(void* /*device*/, std::span<unsigned char> /*piece*/, std::size_t /*used*/) { return 0; }
  virtual void drop_piece(std::span<unsigned char> /*piece*/) noexcept {}
  /// Waits until this upload and all before it are on the device: then a run that uses them may be submitted.
  virtual void finish_uploads(std::uint64_t /*number*/) {}

  /// Empty if tasks can use the pointer, else a sentence that says why not and names the remedy.
  virtual std::string check_pointer(const void* pointer) const = 0;

  /// Makes the tensor map by which tensor copies move boxes of a matrix. False, and nothing is done, where there are no such
  /// copies.
  virtual bool map_matrix(unsigned char (&)[kTensorMapBytes], const TensorBox&) const { return false; }

  // The kernel.
  /// Starts the workers; the engine is parked before. Throws LaunchRefused if they cannot start but the device still
  /// works. Returns only if the kernel will run to its end or the device is lost: each launch goes on with the announcement
  /// that the one before has left, so none may be missing.
  virtual void launch(const DeviceState& dev) = 0;
  /// The state now. If it is `lost`, sets `why_lost`.
  virtual EngineState state(std::string& why_lost) = 0;

  // The program's CUDA streams. An engine without a GPU throws UsageError.
  /// Calls `then` on a thread of CUDA when the work that the stream has so far is done. `then` may not call CUDA.
  virtual void after_stream(CudaStream stream, std::function<void()> then) = 0;
  /// Makes later work of the stream wait until `*word` is at least `at_least`, modulo 2^32.
  virtual void make_stream_wait(CudaStream stream, const std::uint32_t* word, std::uint32_t at_least) = 0;
};

/// An engine with CPU threads. Throws CapacityError for too many workers.
std::unique_ptr<Engine> make_cpu_engine(const KernelEntry& entry, const Options& options);
/// An engine on a GPU. Null if the library was built without CUDA or no GPU is usable; `why` then says which.
std::unique_ptr<Engine> make_gpu_engine(const KernelEntry& entry, const Options& options, std::string& why);
/// The engine that the options and FLYWHEEL_TARGET ask for. Throws DeviceError if that is a GPU and none is usable.
std::unique_ptr<Engine> make_engine(const KernelEntry& entry, const Options& options);

}  // namespace flywheel::detail
