#include "buffer.hpp"

#include "../futures/core.hpp"

namespace flywheel::detail {

BufferMemory::BufferMemory(std::shared_ptr<Core> core, std::size_t bytes) : core_(std::move(core)), bytes_(bytes) {
  data_ = core_->heap.try_allocate(bytes);
  if (!data_) core_->dispatcher.while_parked([&] { data_ = core_->heap.grow(bytes); });
  core_->engine->clear(data_, bytes);  // the heap may have used this memory before
}

BufferMemory::~BufferMemory() {
  if (data_ && core_->is_ours()) core_->heap.release(data_);
}

BufferMemory::BufferMemory(BufferMemory&& other) noexcept
    : core_(std::move(other.core_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

BufferMemory& BufferMemory::operator=(BufferMemory&& other) noexcept {
  BufferMemory taken(std::move(other));  // the old memory is freed at the end of this function, not with `other`
  std::swap(core_, taken.core_);
  std::swap(data_, taken.data_);
  std::swap(bytes_, taken.bytes_);
  return *this;
}

void BufferMemory::write(std::size_t at, const void* from, std::size_t bytes) {
  check(at, bytes, from);
  core_->engine->copy_to_device(static_cast<char*>(data_) + at, from, bytes);
}

void BufferMemory::read(std::size_t at, void* to, std::size_t bytes) const {
  check(at, bytes, to);
  core_->engine->copy_to_host(to, static_cast<const char*>(data_) + at, bytes);
}

namespace {
std::string end_of(std::size_t at, std::size_t bytes) {
  return at + bytes < at ? "beyond all memory" : std::to_string(at + bytes);
}
}  // namespace

void BufferMemory::check(std::size_t at, std::size_t bytes, const void* host) const {
  if (!data_) throw UsageError("copy with an empty buffer: allocate it with Runtime::allocate() first");
  core_->require_ours();
  if (!host && bytes) throw UsageError("copy with a null host pointer: pass memory for " + std::to_string(bytes) + " bytes");
  if (at > bytes_ || bytes > bytes_ - at)
    throw UsageError("copy of bytes " + std::to_string(at) + " to " + end_of(at, bytes) + " of a buffer that has " +
                     std::to_string(bytes_) + ": check position and count");
}

}  // namespace flywheel::detail
