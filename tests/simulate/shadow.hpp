// What is known of the program's memory, for each 8 bytes of it: who accessed them last, and the stores to the atomic words there.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "simulate/clocks.hpp"

namespace flywheel::simulate {

/// What a release tells, to whom its scope includes.
struct Released {
  VectorClock all;   // with scope system
  VectorClock near;  // with scope device, or wider, to the blocks of `device`
  std::uint8_t device = 0;
};

/// A store to an atomic word. `seen`: when each thread first read it; the writer did when it wrote it.
struct Store {
  std::uint64_t value = 0;
  std::uint64_t step = 0;
  Released released;  // what comes with it to those who acquire
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

inline constexpr std::uint8_t kPlain = 0xff, kAnyScope = 3;

struct PlainAccess {
  Epoch epoch = 0;  // 0: none
  std::uint8_t fiber = 0;
  std::uint8_t mask = 0;  // of the 8 bytes
  bool write = false;
  std::uint8_t scope = kPlain;  // if it is atomic
  std::uint8_t device = 0;      // whose block it was
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
  void clear() {
    pages_.clear();
    for (auto& cached : cache_) cached = {kNever, nullptr};
  }

 private:
  static constexpr std::uintptr_t kPageBytes = 256;
  static constexpr std::size_t kCached = 1024;
  struct Page {
    Granule granules[kPageBytes / 8];
  };
  struct Cached {
    std::uintptr_t number = kNever;
    Page* page = nullptr;
  };

  static void forget_in(std::uintptr_t number, Page& page, std::uintptr_t begin, std::uintptr_t end) {
    const std::uintptr_t first = std::max(begin, number * kPageBytes), last = std::min(end, (number + 1) * kPageBytes);
    for (std::uintptr_t at = first; at < last; at += 8) page.granules[at % kPageBytes / 8] = {};
  }
  Page& page_of(std::uintptr_t number) {
    Cached& cached = cache_[number % kCached];
    if (cached.number == number) return *cached.page;
    auto& page = pages_[number];
    if (!page) page = std::make_unique<Page>();
    cached = {number, page.get()};
    return *page;
  }

  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  Cached cache_[kCached];
};

}  // namespace flywheel::simulate
