// One thread of an emulated block, and the stacks of all.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "support/emulated/mbarrier.hpp"
#include "support/emulated/races.hpp"
#include "support/fiber_switch.hpp"

namespace flywheel::testing {

/// Of a block. May be used for another once all fibers have ended.
///
/// What it consists of goes to the next one of the same thread of the operating system: under ThreadSanitizer most of a
/// launch's time would go into creating and destroying 384 threads. No race is hidden, because all that one block has done
/// happened before the next one is made in that thread.
class EmulatedStacks {
 public:
  static constexpr std::size_t kBytes = 64 << 10;

  EmulatedStacks() : parts_(take_spare()) {}
  ~EmulatedStacks() {
    if constexpr (kKeepsStacks)
      if (!is_spoiled_) spare().push_back(std::move(parts_));
  }
  EmulatedStacks(const EmulatedStacks&) = delete;
  EmulatedStacks& operator=(const EmulatedStacks&) = delete;

  /// `watched`: which of ThreadSanitizer's threads it is.
  void start(std::uint32_t thread, std::uint32_t watched, FiberContext& context, void (*entry)()) {
    unsigned char* const stack = stack_of(thread);
    std::memcpy(stack, &kCanary, sizeof(kCanary));
    // Stacks that begin a power of two apart would share a few sets of the caches.
    const std::size_t bytes = kBytes - thread % 16 * 128;
    context.start(stack + bytes, bytes, entry, parts_->watched[watched]);
  }
  bool is_whole(std::uint32_t thread) const { return !std::memcmp(stack_of(thread), &kCanary, sizeof(kCanary)); }
  /// Some fibers have not ended: AddressSanitizer still knows the frames left on their stacks.
  void spoil() { is_spoiled_ = true; }

 private:
  static constexpr std::uint64_t kCanary = 0x5ca1ab1e0ddba11u;
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kLastLine = kPage - 64;  // of a page: one stack's canary is in the page of the next one's begin

  struct Parts {
    std::unique_ptr<unsigned char[]> memory =
        std::make_unique_for_overwrite<unsigned char[]>(kEmulatedThreads * kBytes + 2 * kPage);
    std::array<WatchedThread, kEmulatedThreads> watched;
  };
  static std::vector<std::unique_ptr<Parts>>& spare() {
    static thread_local std::vector<std::unique_ptr<Parts>> parts;
    return parts;
  }
  static std::unique_ptr<Parts> take_spare() {
    if constexpr (kKeepsStacks)
      if (!spare().empty()) {
        std::unique_ptr<Parts> parts = std::move(spare().back());
        spare().pop_back();
        return parts;
      }
    return std::make_unique<Parts>();
  }

  unsigned char* stack_of(std::uint32_t thread) const {
    const std::uintptr_t page = (reinterpret_cast<std::uintptr_t>(parts_->memory.get()) + kPage - 1) / kPage * kPage;
    return reinterpret_cast<unsigned char*>(page) + kLastLine + thread * kBytes;
  }

  std::unique_ptr<Parts> parts_;
  bool is_spoiled_ = false;
};

struct EmulatedFiber {
  /// The barriers it has looked at in vain since it last slept.
  struct Watch {
    struct Look {
      std::uint64_t* word;
      std::uint32_t phase;
    };
    static constexpr std::uint32_t kMost = 4;
    Look looks[kMost];
    std::uint32_t count = 0;
    std::uint32_t free_looks = 0;  // before it sleeps again: time limits count looks

    FLYWHEEL_UNWATCHED_INLINE void clear() { count = free_looks = 0; }
    /// False if it is there already.
    FLYWHEEL_UNWATCHED bool add(std::uint64_t& word, std::uint32_t phase) {
      for (std::uint32_t i = 0; i < count; ++i)
        if (looks[i].word == &word) return false;
      if (count == kMost) return false;
      looks[count++] = {&word, phase};
      return true;
    }
  };

  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  FiberContext context;
  Watch watch;
  std::uint64_t test_began = kNever;  // after so many ends of phases; of the last test, if none polled since
  const char* at = "its begin";
  const std::uint64_t* barrier = nullptr;             // on which it slept last
  bool fenced_global = false, fenced_shared = false;  // for bulk copies
};

}  // namespace flywheel::testing
