// What each thread knows of the others: which of their stores it may not miss any more, and which plain accesses are ordered.
#pragma once

#include <cstddef>
#include <cstdint>

namespace flywheel::simulate {

/// Orders are numbers as in C++: 0 relaxed, 1 consume, 2 acquire, 3 release, 4 acq_rel, 5 seq_cst.
inline constexpr int kAcquire = 2, kRelease = 3, kAcqRel = 4, kSeqCst = 5;
/// Scopes are numbers as in runtime/base/order.hpp: 0 block, 1 device, 2 system. Threads that are not of an emulated block have
/// only the widest.
inline constexpr int kDevice = 1, kSystem = 2;

/// What an atomic access or a fence asks for, and the code's address.
struct How {
  int order;
  int scope;
  const void* where;
};

namespace memory {

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

/// The value that a load sees; `newest`: what memory holds.
std::uint64_t load(const void* at, std::size_t bytes, std::uint64_t newest, How how);
/// Called with what memory holds before and after. A store may come before another that is there already: then that stays, and
/// the answer is false.
bool store(const void* at, std::size_t bytes, std::uint64_t before, std::uint64_t after, How how);
void update(const void* at, std::size_t bytes, std::uint64_t before, std::uint64_t after, How how);
void fence(How how);
/// For how many steps after a store a load may still read one before it.
std::uint64_t longest_stale();
/// `changed(i, value)` is called for each store to word i of these `words` of 8 bytes; until the next run begins.
void watch(const void* at, std::size_t words, void (*changed)(std::size_t word, std::uint64_t value));

}  // namespace memory

}  // namespace flywheel::simulate
