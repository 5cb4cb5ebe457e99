// What is known of the program's memory, for each 8 bytes of it: who accessed them last, and the stores to the atomic words
// there.
#pragma once

#include <algorithm>
#include <unordered_map>

#include "simulate/clocks.hpp"
#include "simulate/pool.hpp"

namespace flywheel::simulate {

/// What a release tells, to whom its scope includes.
struct Released {
  VectorClock all;          // with scope system
  VectorClock near;         // with scope device, or wider, to the blocks of `device`
  std::uint8_t device = 0;  // 0: `near` says nothing
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
  static constexpr std::uint32_t kMost = 6;
  const void* at = nullptr;
  AtomicWord* next = nullptr;  // in the same 8 bytes
  std::uint32_t bytes = 0;
  std::uint32_t count = 0;
  Store* stores[kMost] = {};

  Store& newest(std::size_t back = 0) { return *stores[count - 1 - back]; }
  const Store& newest(std::size_t back = 0) const { return *stores[count - 1 - back]; }
};

inline constexpr std::uint8_t kPlain = 0xff, kAnyScope = 3;

struct PlainAccess {
  Epoch epoch;  // 0: none
  std::uint8_t fiber : 7;
  std::uint8_t write : 1;
  std::uint8_t mask;    // of the 8 bytes
  std::uint8_t scope;   // if it is atomic; else kPlain
  std::uint8_t device;  // whose block it was
  std::uint32_t where;  // in the program's file
};

/// Lies in zeroed memory, as pages do.
struct Granule {
  static constexpr int kAccesses = 4;
  PlainAccess accesses[kAccesses];
  AtomicWord* words;
};

class Shadow {
 public:
  Granule& of(std::uintptr_t address) {
    Page& page = page_of(address / kPageBytes);
    return page.granules[address % kPageBytes / 8];
  }
  /// The word at this address, its stores as long as it has the same size and its newest value is this.
  AtomicWord& word_of(Granule& granule, const void* at, std::size_t bytes, std::uint64_t newest);
  /// A store, whose fields are left from an earlier one, `back` of the newest come after it.
  Store& add(AtomicWord& word, std::size_t back);
  void drop_stores(AtomicWord& word) {
    while (word.count) stores_.give(word.stores[--word.count]);
  }
  void forget(std::uintptr_t begin, std::uintptr_t end);

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

  void forget_in(std::uintptr_t number, Page& page, std::uintptr_t begin, std::uintptr_t end);
  Page& page_of(std::uintptr_t number) {
    Cached& cached = cache_[number % kCached];
    if (cached.number == number) return *cached.page;
    Page*& page = pages_[number];
    if (!page) page = pages_pool_.take();
    cached = {number, page};
    return *page;
  }

  std::unordered_map<std::uintptr_t, Page*> pages_;
  Cached cache_[kCached];
  Pool<Page> pages_pool_;
  Pool<AtomicWord> words_;
  Pool<Store> stores_;
};

}  // namespace flywheel::simulate
