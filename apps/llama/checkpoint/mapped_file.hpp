#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace llama {

// A file mapped read-only into memory: opening costs nothing until a page is touched, and several processes
// that load one model share its pages. Movable; the bytes stay where they are for as long as one owner lives.
class MappedFile {
 public:
  // Throws ModelError when `file` is missing, unreadable, no regular file, or empty.
  explicit MappedFile(const std::filesystem::path& file);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

// The whole of a text file. Throws ModelError as above; `remedy` is what to tell the reader when it is
// missing.
std::string read_text(const std::filesystem::path& file, const std::string& remedy);

}  // namespace llama
