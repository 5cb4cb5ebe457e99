// Buffers: device memory that belongs to the program, allocated from the runtime's heap. Runtime::allocate() and
// Runtime::upload() create them.
#pragma once

#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "../base/error.hpp"

namespace flywheel {

namespace detail {
struct Core;

/// Owns a range of device memory. The untyped part of Buffer<T>. Move-only.
class BufferMemory {
 public:
  BufferMemory() = default;
  /// Allocates `bytes` zeroed bytes. If the heap has no room it parks the kernel and grows the heap. Throws
  /// CapacityError or DeviceError.
  BufferMemory(std::shared_ptr<Core> core, std::size_t bytes);
  ~BufferMemory();
  BufferMemory(BufferMemory&& other) noexcept;
  BufferMemory& operator=(BufferMemory&& other) noexcept;

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  /// Copies `bytes` bytes to or from offset `at`. Throws UsageError for an empty buffer, a null host pointer or a range
  /// outside the buffer.
  void write(std::size_t at, const void* from, std::size_t bytes);
  void read(std::size_t at, void* to, std::size_t bytes) const;

 private:
  void check(std::size_t at, std::size_t bytes, const void* host) const;

  std::shared_ptr<Core> core_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};
}  // namespace detail

/// n values of T in device memory. Programs pass data() to tasks. Move-only. A buffer must outlive the runs that use
/// it.
///
///   flywheel::Buffer<float> x = rt.upload(std::vector<float>(1000, 1.f));
///   std::vector<float> back = x.read();
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>, "a device buffer holds trivially copyable values");

 public:
  Buffer() = default;
  Buffer(std::shared_ptr<detail::Core> core, std::size_t size) : memory_(std::move(core), bytes_of(size)) {}

  /// The address in device memory; null if the buffer is empty. On CPU workers it is ordinary host memory.
  T* data() const { return static_cast<T*>(memory_.data()); }
  /// The number of values.
  std::size_t size() const { return memory_.bytes() / sizeof(T); }

  /// Copies `count` values to position `at`. It works while the kernel is resident, and it is not ordered with runs in
  /// flight. Throws UsageError if the values do not fit.
  void write(const T* from, std::size_t count, std::size_t at = 0) { memory_.write(bytes_of(at), from, bytes_of(count)); }
  void write(const std::vector<T>& from) { write(from.data(), from.size()); }
  /// Copies `count` values from position `at`. Like write(), it is not ordered with runs in flight: wait for the run
  /// first.
  void read(T* to, std::size_t count, std::size_t at = 0) const { memory_.read(bytes_of(at), to, bytes_of(count)); }
  /// All values.
  std::vector<T> read() const {
    std::vector<T> all(size());
    read(all.data(), all.size());
    return all;
  }

 private:
  /// The size in bytes of `count` values. A count whose size would overflow gives the largest size, which the check
  /// that follows refuses.
  static std::size_t bytes_of(std::size_t count) { return count > kMost ? kMost : count * sizeof(T); }
  static constexpr std::size_t kMost = ~std::size_t{0} / (sizeof(T) + 1);

  detail::BufferMemory memory_;
};

}  // namespace flywheel
