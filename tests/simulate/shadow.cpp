#include "simulate/shadow.hpp"

#include <sys/mman.h>

#include <cstdlib>

namespace flywheel::simulate {

void* take_for_good(std::size_t bytes) {
  constexpr std::size_t kHuge = std::size_t{2} << 20;  // one page, where the system has such: a single page fault
  static unsigned char* next = nullptr;
  static std::size_t left = 0;
  if (bytes > left) {
    void* const memory = mmap(nullptr, 2 * kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    auto* const at = static_cast<unsigned char*>(memory);
    next = at + (kHuge - reinterpret_cast<std::size_t>(at) % kHuge);
    madvise(next, kHuge, MADV_HUGEPAGE);
    left = kHuge;
  }
  left -= bytes;
  return (next += bytes) - bytes;
}

AtomicWord& Shadow::word_of(Granule& granule, const void* at, std::size_t bytes, std::uint64_t newest) {
  AtomicWord** link = &granule.words;
  while (*link && (*link)->at != at) link = &(*link)->next;
  if (!*link) {
    *link = words_.take();
    **link = {};
  }
  AtomicWord& word = **link;
  if (word.bytes == bytes && word.newest().value == newest) return word;
  // Memory that does not hold the newest store was written plainly, or in words of another size: all see that.
  drop_stores(word);
  word.at = at;
  word.bytes = static_cast<std::uint32_t>(bytes);
  Store& store = add(word, 0);
  store.value = newest;
  store.step = 0;
  store.released.all.clear();
  store.released.device = 0;
  return word;
}

Store& Shadow::add(AtomicWord& word, std::size_t back) {
  if (word.count == AtomicWord::kMost) {
    stores_.give(word.stores[0]);
    std::copy(word.stores + 1, word.stores + word.count, word.stores);
    --word.count;
  }
  Store** const place = word.stores + word.count - back;
  std::copy_backward(place, word.stores + word.count, word.stores + word.count + 1);
  ++word.count;
  *place = stores_.take();
  (*place)->seen.clear();
  (*place)->updates = false;
  return **place;
}

void Shadow::forget(std::uintptr_t begin, std::uintptr_t end) {
  begin &= ~std::uintptr_t{7};
  if ((end - begin) / kPageBytes > pages_.size()) {
    for (auto& [number, page] : pages_) forget_in(number, *page, begin, end);
    return;
  }
  for (std::uintptr_t number = begin / kPageBytes; number * kPageBytes < end; ++number) {
    const auto found = pages_.find(number);
    if (found != pages_.end()) forget_in(number, *found->second, begin, end);
  }
}

void Shadow::forget_in(std::uintptr_t number, Page& page, std::uintptr_t begin, std::uintptr_t end) {
  const std::uintptr_t first = std::max(begin, number * kPageBytes), last = std::min(end, (number + 1) * kPageBytes);
  for (std::uintptr_t at = first; at < last; at += 8) {
    Granule& granule = page.granules[at % kPageBytes / 8];
    while (AtomicWord* const word = granule.words) {
      drop_stores(*word);
      granule.words = word->next;
      words_.give(word);
    }
    granule = {};
  }
}

}  // namespace flywheel::simulate
