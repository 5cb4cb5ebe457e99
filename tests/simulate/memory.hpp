// What each thread knows of the others: which of their stores it may not miss any more, and which plain accesses are ordered.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flywheel::simulate::memory {

void begin_run();
/// `parent` starts `thread`.
void thread_begins(std::uint32_t thread, std::uint32_t parent);
/// The running thread has seen the end of that one.
void thread_joined(std::uint32_t thread);
/// A lock, known by its address, is taken or let go.
void acquire(const void* lock);
void release(const void* lock);

/// This memory is another's from here on: nothing is known of it.
void forget(const void* at, std::size_t bytes);
/// The running thread reads or writes without atomics. `where`: the code's address.
void plain(const void* at, std::size_t bytes, bool write, const void* where);

/// Orders are numbers as in C++: 0 relaxed, 1 consume, 2 acquire, 3 release, 4 acq_rel, 5 seq_cst.
/// The value that a load sees; `newest`: what memory holds.
std::uint64_t load(const void* at, std::size_t bytes, std::uint64_t newest, int order, const void* where);
/// Called with what memory holds before and after.
void store(const void* at, std::size_t bytes, std::uint64_t before, std::uint64_t after, int order, const void* where);
void update(const void* at, std::size_t bytes, std::uint64_t before, std::uint64_t after, int order, const void* where);
void fence(int order, const void* where);
/// For how many steps after a store a load may still read one before it.
std::uint64_t longest_stale();
/// `changed(i, value)` is called for each store to word i of these `words` of 8 bytes; until the next run begins.
void watch(const void* at, std::size_t words, void (*changed)(std::size_t word, std::uint64_t value));

/// Places in the program that order something, and how often they were passed. Shared with the parent.
struct Site {
  std::uintptr_t place;
  int order;
  std::uint64_t passed;
};
inline constexpr std::size_t kMostSites = 4096;
/// From here on they are noted in `sites`, which has kMostSites.
void note_sites(Site* sites);

}  // namespace flywheel::simulate::memory
