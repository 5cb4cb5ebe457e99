// Copies to shared memory that go on beside the threads. They land late, in pieces and in any order; until then the
// destination holds garbage.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "support/emulated/mbarrier.hpp"
#include "support/emulated/races.hpp"

namespace flywheel::testing {

class AsyncCopies {
 public:
  using Draw = std::function<std::uint32_t(std::uint32_t)>;  // a number below that

  AsyncCopies(Mbarriers& barriers, WatchedCopies& watched, Mbarriers::Fail fail, Draw draw)
      : barriers_(barriers),
        watched_(watched),
        fail_(std::move(fail)),
        draw_(std::move(draw)),
        threads_(kEmulatedThreads) {}

  SharedRange dynamic;  // where bulk copies may go
  SharedRange fixed;    // where copies of 4 or 16 bytes may go as well

  bool any() const { return !bulk_.empty() || !busy_.empty(); }

  /// `fences`: of the thread that starts it, the address it released with. What it knows otherwise is of another proxy.
  void bulk(void* to, const void* from, std::uint32_t bytes, std::uint64_t& barrier, const void* fences) {
    check(to, from, "bulk_copy()");
    if (bytes % 16 || !bytes) fail_("bulk_copy() of " + std::to_string(bytes) + " bytes: not a multiple of 16");
    if (!dynamic.holds(to, bytes)) fail_("bulk_copy() to a place outside the block's dynamic shared memory");
    for (const Bulk& other : bulk_)
      if (other.to < static_cast<unsigned char*>(to) + bytes && static_cast<unsigned char*>(to) < other.to + other.left)
        fail_("bulk_copy() to a place where another is still to land");
    std::memset(to, garbage(), bytes);
    bulk_.push_back({static_cast<unsigned char*>(to), static_cast<const unsigned char*>(from), bytes, &barrier, fences});
  }

  /// By the thread itself.
  void copy(void* to, const void* from, std::uint32_t bytes, std::uint32_t thread) {
    const char* const what = bytes == 16 ? "copy16()" : "copy4()";
    check(to, from, what, bytes);
    if (!dynamic.holds(to, bytes) && !fixed.holds(to, bytes))
      fail_(std::string(what) + " to a place outside the block's shared memory");
    std::memset(to, garbage(), bytes);
    release(&threads_[thread]);
    if (threads_[thread].is_idle()) busy_.push_back(thread);
    Thread& own = threads_[thread];
    own.copies.push_back({to, from, bytes, own.group, own.number++});
  }
  void commit(std::uint32_t thread) { ++threads_[thread].group; }
  /// Lands what the thread waits for: all but the last `left` groups.
  void wait(std::uint32_t left, std::uint32_t thread) {
    Thread& own = threads_[thread];
    for (std::size_t i = own.copies.size(); i-- > 0;)
      if (own.copies[i].group + left < own.group) land(thread, i);
    acquire(&own);
  }
  void arrive_when_landed(std::uint64_t& barrier, std::uint32_t thread) {
    Thread& own = threads_[thread];
    release(&own);  // what it has read by now it read before it said where to copy from
    if (own.copies.empty()) return arrive_for(own, barrier, thread);
    own.marks.push_back({&barrier, static_cast<std::uint32_t>(own.copies.size()), own.number});
  }

  /// Something lands.
  void land_some() {
    const auto choices = static_cast<std::uint32_t>(bulk_.size() + busy_.size());
    const std::uint32_t chosen = draw_(choices);
    if (chosen < bulk_.size()) return land_bulk(chosen);
    const std::uint32_t thread = busy_[chosen - bulk_.size()];
    for (std::uint32_t count = 1 + draw_(32); count && !threads_[thread].copies.empty(); --count)
      land(thread, draw_(static_cast<std::uint32_t>(threads_[thread].copies.size())));
  }

 private:
  struct Bulk {
    unsigned char* to;
    const unsigned char* from;
    std::uint32_t left;
    std::uint64_t* barrier;
    const void* fences;
  };
  struct Copy {
    void* to;
    const void* from;
    std::uint32_t bytes, group, number;
  };
  struct Mark {
    std::uint64_t* barrier;
    std::uint32_t left;    // copies to land before the arrival
    std::uint32_t number;  // of the first copy after it
  };
  struct Thread {
    std::vector<Copy> copies;
    std::vector<Mark> marks;
    std::uint32_t group = 0, number = 0;

    bool is_idle() const { return copies.empty(); }
  };

  int garbage() { return static_cast<int>(0x80 + draw_(128)); }

  void check(const void* to, const void* from, const char* what, std::uint32_t align = 16) const {
    if (reinterpret_cast<std::uintptr_t>(to) % align || reinterpret_cast<std::uintptr_t>(from) % align)
      fail_(std::string(what) + " with an address that is not aligned to " + std::to_string(align) + " bytes");
  }

  /// A piece from either end.
  void land_bulk(std::size_t index) {
    Bulk& copy = bulk_[index];
    const std::uint32_t bytes = draw_(2) ? copy.left : 16 * (1 + draw_(copy.left / 16));
    const std::uint32_t skip = draw_(2) ? copy.left - bytes : 0;
    watched_.land([&] {
      acquire(copy.fences);
      std::memcpy(copy.to + skip, copy.from + skip, bytes);
      release(copy.barrier);
    });
    if (!skip) copy.to += bytes, copy.from += bytes;
    copy.left -= bytes;
    std::uint64_t& barrier = *copy.barrier;
    if (!copy.left) bulk_.erase(bulk_.begin() + static_cast<std::ptrdiff_t>(index));
    barriers_.come(barrier, bytes);
  }

  void land(std::uint32_t thread, std::size_t index) {
    Thread& own = threads_[thread];
    const Copy copy = own.copies[index];
    watched_.land([&] {
      acquire(&own);
      std::memcpy(copy.to, copy.from, copy.bytes);
      release(&own);
    });
    own.copies[index] = own.copies.back();
    own.copies.pop_back();
    if (own.is_idle()) std::erase(busy_, thread);
    for (Mark& mark : own.marks)
      if (copy.number < mark.number && !--mark.left) arrive_for(own, *mark.barrier, thread);
    std::erase_if(own.marks, [](const Mark& mark) { return !mark.left; });
  }

  /// Of a thread whose copies have landed.
  void arrive_for(const Thread& own, std::uint64_t& barrier, std::uint32_t thread) {
    watched_.land([&] {
      acquire(&own);
      release(&barrier);
    });
    barriers_.arrive(barrier, thread);
  }

  Mbarriers& barriers_;
  WatchedCopies& watched_;
  Mbarriers::Fail fail_;
  Draw draw_;
  std::vector<Bulk> bulk_;
  std::vector<Thread> threads_;
  std::vector<std::uint32_t> busy_;  // threads with copies on their way
};

}  // namespace flywheel::testing
