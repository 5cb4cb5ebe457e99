#include "apps/llama/checkpoint/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "apps/llama/checkpoint/error.hpp"

namespace llama {
namespace {

class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& file) : value_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& what) {
  const std::string cause = std::strerror(errno);
  throw ModelError(file, what + ": " + cause, "check that the file exists and may be read by you");
}

std::size_t checked_size(const Descriptor& descriptor, const std::filesystem::path& file) {
  struct stat status {};
  if (::fstat(descriptor.value(), &status) != 0) fail(file, "cannot read its size");
  if (!S_ISREG(status.st_mode)) {
    throw ModelError(file, "is not a regular file", "name the file itself, not a folder or a device");
  }
  if (status.st_size == 0) {
    throw ModelError(file, "is empty", "download or copy it again: its transfer probably broke off");
  }
  return static_cast<std::size_t>(status.st_size);
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& file) {
  const Descriptor descriptor(file);
  if (descriptor.value() < 0) fail(file, "cannot be opened");
  const std::size_t size = checked_size(descriptor, file);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.value(), 0);
  if (address == MAP_FAILED) fail(file, "cannot be mapped into memory");
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

std::string read_text(const std::filesystem::path& file, const std::string& remedy) {
  if (!std::filesystem::is_regular_file(file)) throw ModelError(file, "is missing or no file", remedy);
  const MappedFile mapped(file);
  return {reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()};
}

}  // namespace llama
