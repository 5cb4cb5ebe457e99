#include "free_list.hpp"

#include <algorithm>

namespace flywheel::detail {

std::optional<std::uint64_t> FreeList::allocate(std::uint64_t size) {
  size = std::max<std::uint64_t>(size, 1);
  const auto fit = by_size_.lower_bound({size, 0});
  if (fit == by_size_.end()) return std::nullopt;
  const auto [room, at] = *fit;
  erase(free_.find(at));
  if (room > size) insert(at + size, room - size);
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

FreeList::Ranges::iterator FreeList::erase(Ranges::iterator range) {
  by_size_.erase({range->second, range->first});
  return free_.erase(range);
}

void FreeList::insert(std::uint64_t at, std::uint64_t size) {
  auto next = free_.lower_bound(at);
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == at) {
      at = before->first;
      size += before->second;
      next = erase(before);
    }
  }
  if (next != free_.end() && at + size == next->first) {
    size += next->second;
    erase(next);
  }
  free_[at] = size;
  by_size_.insert({size, at});
}

}  // namespace flywheel::detail
