// Device memory of the program's own, from the runtime's heap.
#pragma once

#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "../base/error.hpp"

namespace flywheel {

struct Core;

/// Owner of one piece of device memory. Untyped part of Buffer<T>.
class BufferMemory {
 public:
  BufferMemory() = default;
  BufferMemory(std::shared_ptr<Core> core, std::size_t bytes);
  ~BufferMemory();
  BufferMemory(BufferMemory&& other) noexcept;
  BufferMemory& operator=(BufferMemory&& other) noexcept;

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  void write(std::size_t at, const void* from, std::size_t bytes);
  void read(std::size_t at, void* to, std::size_t bytes) const;

 private:
  void check(std::size_t at, std::size_t bytes, const void* host) const;

  std::shared_ptr<Core> core_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// n values of T in device memory: pass data() to tasks. Move-only; it must outlive the runs that use it.
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>, "a device buffer holds trivially copyable values");

 public:
  Buffer() = default;
  Buffer(std::shared_ptr<Core> core, std::size_t size) : memory_(std::move(core), bytes_of(size)) {}

  T* data() const { return static_cast<T*>(memory_.data()); }
  std::size_t size() const { return memory_.bytes() / sizeof(T); }

  /// Copies `count` values to position `at`. Also while a kernel is resident; not ordered with runs in flight.
  void write(const T* from, std::size_t count, std::size_t at = 0) {
    memory_.write(bytes_of(at), from, bytes_of(count));
  }
  void write(const std::vector<T>& from) { write(from.data(), from.size()); }
  void read(T* to, std::size_t count, std::size_t at = 0) const {
    memory_.read(bytes_of(at), to, bytes_of(count));
  }
  std::vector<T> read() const {
    std::vector<T> all(size());
    read(all.data(), all.size());
    return all;
  }

 private:
  /// Too many to count in bytes are too many anyway: the check that follows says so.
  static std::size_t bytes_of(std::size_t count) { return count > kMost ? kMost : count * sizeof(T); }
  static constexpr std::size_t kMost = ~std::size_t{0} / (sizeof(T) + 1);

  BufferMemory memory_;
};

}  // namespace flywheel
