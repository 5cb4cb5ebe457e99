// First-fit allocation of ranges: of records, edges and bytes in memory taken once at start.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace flywheel {

/// Not thread-safe. Positions and sizes are in units of the caller's choice.
class FreeList {
 public:
  explicit FreeList(std::uint64_t size = 0) { add(0, size); }

  void add(std::uint64_t at, std::uint64_t size) {
    if (size) insert(at, size);
  }
  /// A range of `size` (0 counts as 1), or nothing if none is free.
  std::optional<std::uint64_t> allocate(std::uint64_t size);
  void release(std::uint64_t at);
  std::uint64_t used() const { return used_; }

 private:
  void insert(std::uint64_t at, std::uint64_t size);

  std::map<std::uint64_t, std::uint64_t> free_;   // position -> size
  std::map<std::uint64_t, std::uint64_t> taken_;  // position -> size
  std::uint64_t used_ = 0;
};

}  // namespace flywheel
