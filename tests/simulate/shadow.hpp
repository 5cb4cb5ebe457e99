// What is known of the program's memory, for each 8 bytes of it: who accessed them last, and the stores to the atomic words there.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "simulate/clocks.hpp"

namespace flywheel::simulate {

/// A store to an atomic word. `seen`: when each thread first read it; the writer did when it wrote it.
struct Store {
  std::uint64_t value = 0;
  std::uint64_t step = 0;
  VectorClock released;  // what comes with it to those who acquire
  VectorClock seen;
  bool updates = false;  // a read-modify-write: it follows what it read
};

/// An atomic word, its stores from the oldest that somebody may still read to the newest.
struct AtomicWord {
  const void* at = nullptr;
  std::size_t bytes = 0;
  std::vector<Store> stores;
  std::unique_ptr<AtomicWord> next;  // in the same 8 bytes
};

struct PlainAccess {
  Epoch epoch = 0;  // 0: none
  std::uint8_t fiber = 0;
  std::uint8_t mask = 0;  // of the 8 bytes
  bool write = false;
  bool atomic = false;
  const void* where = nullptr;
};

struct Granule {
  static constexpr int kAccesses = 4;
  PlainAccess accesses[kAccesses];
  std::unique_ptr<AtomicWord> words;
};

class Shadow {
 public:
  Granule& of(std::uintptr_t address) {
    Page& page = page_of(address / kPageBytes);
    return page.granules[address % kPageBytes / 8];
  }
  void forget(std::uintptr_t begin, std::uintptr_t end) {
    for (std::uintptr_t at = begin & ~std::uintptr_t{7}; at < end;) {
      const std::uintptr_t number = at / kPageBytes, page_end = (number + 1) * kPageBytes;
      const auto found = pages_.find(number);
      if (found != pages_.end())
        for (std::uintptr_t g = at; g < std::min(end, page_end); g += 8) found->second->granules[g % kPageBytes / 8] = {};
      at = page_end;
    }
  }
  void clear() {
    pages_.clear();
    for (auto& cached : cache_) cached = {kNever, nullptr};
  }

 private:
  static constexpr std::uintptr_t kPageBytes = 4096;
  struct Page {
    Granule granules[kPageBytes / 8];
  };
  struct Cached {
    std::uintptr_t number = kNever;
    Page* page = nullptr;
  };

  Page& page_of(std::uintptr_t number) {
    Cached& cached = cache_[number % 64];
    if (cached.number == number) return *cached.page;
    auto& page = pages_[number];
    if (!page) page = std::make_unique<Page>();
    cached = {number, page.get()};
    return *page;
  }

  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  Cached cache_[64];
};

}  // namespace flywheel::simulate
