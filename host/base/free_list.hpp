// A first-fit allocator of ranges. The loader uses it for task records, edges and executables, and the heap for device
// memory. It keeps its bookkeeping outside the memory that it manages, so it can manage device memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace flywheel::detail {

/// Not thread-safe. Positions and sizes are in a unit that the caller chooses.
class FreeList {
 public:
  explicit FreeList(std::uint64_t size = 0) { add(0, size); }

  /// Adds the range of `size` units at `at` to what can be allocated.
  void add(std::uint64_t at, std::uint64_t size) {
    if (size) insert(at, size);
  }
  /// Allocates `size` units (0 counts as 1). Returns the position, or nothing if no free range is large enough.
  std::optional<std::uint64_t> allocate(std::uint64_t size);
  /// Frees the range that allocate() returned as `at`. Does nothing for any other position.
  void release(std::uint64_t at);
  /// Units that are allocated now.
  std::uint64_t used() const { return used_; }

 private:
  void insert(std::uint64_t at, std::uint64_t size);

  std::map<std::uint64_t, std::uint64_t> free_;   // position -> size
  std::map<std::uint64_t, std::uint64_t> taken_;  // position -> size
  std::uint64_t used_ = 0;
};

}  // namespace flywheel::detail
