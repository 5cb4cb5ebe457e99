// The shared memory of an emulated GPU block: pages of operands, places of handoffs, scratch.
//
// What nobody has written, or may read no longer, is garbage: bytes 0xff, NaN in every format and -1 as integers.
#pragma once

#include <new>
#include <span>
#include <vector>

#include "runtime/compiled/operands.hpp"
#include "support/fiber_executor.hpp"
#include "support/internals.hpp"

namespace flywheel::testing {

inline constexpr unsigned char kGarbage = 0xff;

/// Garbage memory, aligned as operand streams are, that knows when something was written behind its end.
class GuardedBytes {
 public:
  explicit GuardedBytes(std::size_t bytes)
      : bytes_(bytes),
        memory_(static_cast<unsigned char*>(::operator new(bytes + kGuardBytes, kAlignment))) {
    std::memset(data(), kGarbage, bytes_);
    std::memset(data() + bytes_, kGuard, kGuardBytes);
  }
  unsigned char* data() const { return memory_.get(); }
  bool overrun() const {
    const unsigned char* const end = data() + bytes_;
    return std::any_of(end, end + kGuardBytes, [](unsigned char byte) { return byte != kGuard; });
  }
  void spoil() { std::memset(data(), kGarbage, bytes_); }

 private:
  static constexpr std::align_val_t kAlignment{kOperandAlignment};
  static constexpr std::size_t kGuardBytes = 256;
  static constexpr unsigned char kGuard = 0xa5;
  struct Free {
    void operator()(unsigned char* memory) const { ::operator delete(memory, kAlignment); }
  };
  std::size_t bytes_;
  std::unique_ptr<unsigned char, Free> memory_;
};

/// A count for each compute warp, of what all of them must have done.
class WarpCounts {
 public:
  void add(std::uint32_t warp) { ++counts_[warp]; }
  std::uint32_t of(std::uint32_t warp) const { return counts_[warp]; }
  std::uint32_t all() const { return *std::min_element(counts_.begin(), counts_.end()); }
  bool equal() const { return all() == *std::max_element(counts_.begin(), counts_.end()); }
  /// "3 2 3 3 3 3 3 3", by warps.
  std::string text() const {
    std::string text;
    for (const std::uint32_t count : counts_) text += (text.empty() ? "" : " ") + std::to_string(count);
    return text;
  }

 private:
  std::array<std::uint32_t, kFiberComputeWarps> counts_{};
};

/// A ring of pages. One is overwritten with garbage when all warps have given it back.
class FiberPages {
 public:
  static constexpr Collective kNext{"consumer_wait()"}, kGiveBack{"the operands' consumer_release()"};

  FiberPages(FiberExecutor& executor, std::span<const unsigned char> packed, std::uint32_t pages)
      : executor_(executor),
        packed_(packed) {
    if (pages < kFewestPages) executor.fail("a worker has at least kFewestPages pages: raise FiberOptions::pages");
    for (std::uint32_t p = 0; p < pages; ++p) pages_.emplace_back(kPageBytes);
  }
  std::uint32_t count() const { return pages_of(static_cast<std::uint32_t>(packed_.size())); }

  /// Page n of the operands. Waits until it can be there.
  const unsigned char* take(std::uint32_t n) {
    executor_.until(kNext, [&] { return n < given_.all() + pages_.size(); });
    if (n == loaded_) load();
    return place(n).data();
  }

  /// A warp that has given back `given` pages gives back one more; its lanes have taken `taken` each.
  void consumer_release(std::uint32_t taken, std::uint32_t given) {
    if (taken <= given) executor_.fail(executor_.here() + " gives a page back and holds none: call consumer_wait() first");
    executor_.meet(kGiveBack, [&] {
      const std::uint32_t before = given_.all();
      given_.add(executor_.warp());
      if (given_.all() == before) return;
      place(before).spoil();
      executor_.changed();
    });
  }
  std::string explain() const {
    const bool full = loaded_ == given_.all() + pages_.size() && loaded_ < count();
    return "; pages: " + std::to_string(loaded_) + " of " + std::to_string(count()) + " came, given back by warps " +
           given_.text() + ", room for " + std::to_string(pages_.size()) +
           (full ? ": call consumer_release() or raise FiberOptions::pages" : "");
  }

 private:
  GuardedBytes& place(std::uint32_t n) { return pages_[n % pages_.size()]; }
  void load() {
    const auto rest = packed_.subspan(std::size_t{loaded_} * kPageBytes);
    std::memcpy(place(loaded_).data(), rest.data(), std::min<std::size_t>(rest.size(), kPageBytes));
    ++loaded_;
  }

  FiberExecutor& executor_;
  std::span<const unsigned char> packed_;
  std::vector<GuardedBytes> pages_;
  std::uint32_t loaded_ = 0;
  WarpCounts given_;
};

/// The places of handoffs. One is overwritten with garbage when the store warp has given it back.
class FiberHandoffs {
 public:
  static constexpr Collective kHand{"producer_acquire()"}, kPassOn{"producer_commit()"}, kTake{"consumer_wait()"},
      kGiveBack{"consumer_release()"}, kBorrow{"borrow_handoffs()"};

  explicit FiberHandoffs(FiberExecutor& executor) : executor_(executor) {
    for (std::uint32_t p = 0; p < kHandoffs; ++p) places_.emplace_back(kHandoffBytes);
  }

  /// A warp waits until all it has passed on is taken, and hands nothing over any more.
  void borrow(std::uint32_t passed_on) {
    executor_.until(kBorrow, [&] { return taken_ >= passed_on; });
    borrowed_ = true;
  }
  /// The place of handoff n. Waits until it is free.
  void* producer_acquire(std::uint32_t n) {
    if (borrowed_) executor_.fail(executor_.here() + " hands over after borrow_handoffs()");
    executor_.until(kHand, [&] { return n < taken_ + kHandoffs; });
    outcome_[executor_.warp()] = n + 1;
    return place(n).data();
  }
  void producer_commit(std::uint32_t n) {
    executor_.meet(kPassOn, [&] {
      if (outcome_[executor_.warp()] != n + 1)
        executor_.fail(executor_.here() + " passes on what it did not ask for: call producer_acquire() first");
      handed_.add(executor_.warp());
      executor_.changed();
    });
  }
  /// A compute warp has returned.
  void end_compute() {
    if (++ended_ < kFiberComputeWarps) return;
    if (!handed_.equal())
      executor_.fail("each compute warp must call producer_commit() equally often; theirs called it " + handed_.text() +
                     " times");
    executor_.changed();
  }

  /// Handoff n, once all warps have passed it on. Null once the compute part is over and there is none.
  const void* consumer_wait(std::uint32_t n) {
    executor_.meet(kTake);
    executor_.until(kTake, [&] { return n < handed_.all() || ended_ == kFiberComputeWarps; });
    return n < handed_.all() ? place(n).data() : nullptr;
  }
  void consumer_release(std::uint32_t n) {
    executor_.meet(kGiveBack, [&] {
      if (place(n).overrun()) executor_.fail("a handoff has more than kHandoffBytes: hand over less at once");
      place(n).spoil();
      ++taken_;
      executor_.changed();
    });
  }
  std::string explain() const {
    return "; handoffs: passed on by warps " + handed_.text() + ", given back " + std::to_string(taken_);
  }

 private:
  GuardedBytes& place(std::uint32_t n) { return places_[n % kHandoffs]; }

  FiberExecutor& executor_;
  std::vector<GuardedBytes> places_;
  std::array<std::uint32_t, kFiberComputeWarps> outcome_{};  // by any lane: the handoff's number, from 1
  WarpCounts handed_;
  std::uint32_t taken_ = 0;
  std::uint32_t ended_ = 0;
  bool borrowed_ = false;
};

/// What the threads of a block ask of block.scratch(): all of them the same, in the same order.
class FiberScratch {
 public:
  FiberScratch(FiberExecutor& executor, std::uint32_t bytes)
      : executor_(executor),
        bytes_(bytes),
        own_(bytes),
        with_borrowed_(bytes + kHandoffs * kHandoffBytes) {}

  /// A thread's call number `call`, for memory from `at` to `end`. Null if there is not that much.
  void* take(std::size_t call, std::size_t at, std::size_t end, bool borrows) {
    if (call == ends_.size()) ends_.push_back(end);
    if (ends_[call] != end) executor_.fail(executor_.here() + " asks scratch() for another size than threads before it");
    if (borrows) return end <= bytes_ + kHandoffs * kHandoffBytes ? with_borrowed_.data() + at : nullptr;
    return end <= bytes_ ? own_.data() + at : nullptr;
  }
  void check() const {
    if (own_.overrun() || with_borrowed_.overrun())
      executor_.fail("a body wrote behind all scratch memory: ask scratch() for as much as it uses");
  }

 private:
  FiberExecutor& executor_;
  std::size_t bytes_;
  GuardedBytes own_, with_borrowed_;
  std::vector<std::size_t> ends_;
};

}  // namespace flywheel::testing
