#include "free_list.hpp"

#include <algorithm>

namespace flywheel::detail {

std::optional<std::uint64_t> FreeList::allocate(std::uint64_t size) {
  size = std::max<std::uint64_t>(size, 1);
  const auto fit = std::find_if(free_.begin(), free_.end(), [&](const auto& range) { return range.second >= size; });
  if (fit == free_.end()) return std::nullopt;
  const auto [at, room] = *fit;
  free_.erase(fit);
  if (room > size) free_[at + size] = room - size;
  taken_[at] = size;
  used_ += size;
  return at;
}

void FreeList::release(std::uint64_t at) {
  const auto found = taken_.find(at);
  if (found == taken_.end()) return;
  const std::uint64_t size = found->second;
  taken_.erase(found);
  used_ -= size;
  insert(at, size);
}

void FreeList::insert(std::uint64_t at, std::uint64_t size) {
  auto next = free_.lower_bound(at);
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == at) {
      at = before->first;
      size += before->second;
      free_.erase(before);
    }
  }
  if (next != free_.end() && at + size == next->first) {
    size += next->second;
    free_.erase(next);
  }
  free_[at] = size;
}

}  // namespace flywheel::detail
