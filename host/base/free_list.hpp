// A best-fit allocator of ranges. The loader uses it for the graph arena, and the heap for device memory. It keeps its
// bookkeeping outside the memory that it manages, so it can manage device memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace flywheel::detail {

/// Allocates the smallest free range that is large enough, the first of these, in time logarithmic in their number. Not
/// thread-safe. Positions and sizes are in a unit that the caller chooses.
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
  using Ranges = std::map<std::uint64_t, std::uint64_t>;
  void insert(std::uint64_t at, std::uint64_t size);
  Ranges::iterator erase(Ranges::iterator range);

  Ranges free_;                                                // position -> size
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  // the same as {size, position}
  Ranges taken_;                                               // position -> size
  std::uint64_t used_ = 0;
};

}  // namespace flywheel::detail
