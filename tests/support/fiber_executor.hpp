// The threads of an emulated GPU block: fibers on one thread, in warps, that meet at collectives.
//
// A fiber runs until it has to wait for others; who goes on then is random. So what a body leaves to chance for want of
// a sync shows as a wrong result under some seeds, and the same seed shows it again.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "support/fiber_places.hpp"
#include "support/fiber_switch.hpp"
#include "support/seed.hpp"

namespace flywheel::testing {

inline constexpr std::uint32_t kFiberComputeWarps = 8;
inline constexpr std::uint32_t kFiberStoreWarp = kFiberComputeWarps;
inline constexpr std::uint32_t kFiberWarps = kFiberComputeWarps + 1;
inline constexpr std::uint32_t kFiberComputeThreads = kFiberComputeWarps * 32;
inline constexpr std::uint32_t kFiberThreads = kFiberWarps * 32;

class FiberExecutor {
 public:
  explicit FiberExecutor(std::uint64_t seed) : seed_(seed), random_(seed) {
    most_wait_ = std::uint64_t{1} << 3 * pick(random_, 0, 4);
    slow_ = pick(random_, 0, 2 * kFiberWarps);
  }

  /// Once. Calls body(thread) for threads 0..threads-1, a multiple of 32, each on a fiber of its own, until all have
  /// returned. What a body throws ends the run: the other fibers stay where they are, their locals are not destroyed.
  void run(std::uint32_t threads, std::function<void(std::uint32_t)> body) {
    body_ = std::move(body);
    for (Fiber& fiber : fibers_) fiber.at = kReturned;
    if (!stacks()) stacks() = std::make_unique_for_overwrite<Stack[]>(kFiberThreads);
    for (std::uint32_t t = 0; t < threads; ++t) start(t);
    current_ = this;
    go_on();
    current_ = nullptr;
    check_stacks(threads);
    if (std::all_of(fibers_.begin(), fibers_.end(), [](const Fiber& fiber) { return fiber.done; })) return;
    stacks() = nullptr;  // AddressSanitizer still knows the frames left on them
    if (error_) std::rethrow_exception(error_);
    stuck(threads);
  }

  /// The executor whose fiber calls.
  static FiberExecutor& current() { return *current_; }
  std::uint32_t thread() const { return thread_; }
  std::uint32_t warp() const { return thread_ / 32; }
  std::uint32_t lane() const { return thread_ % 32; }

  /// Waits for all lanes of the warp; the last one calls complete() before any goes on.
  template <class Complete>
  void meet(const Collective& what, Complete&& complete) {
    if (arrive(what)) {
      complete();
      wake(warp(), ~0u);
    }
    wait(what);
  }
  void meet(const Collective& what) {
    meet(what, [] {});
  }

  /// Waits for all lanes of all compute warps. How many of them have voted: that stays until all have come again.
  std::uint32_t meet_all(const Collective& what = kSyncAll, bool vote = false) {
    if (warps_synced_ && !(what == synced_at_))
      fail(warp_text(warp()) + " at " + what.text() + ", others at " + synced_at_.text());
    votes_ += vote;
    if (arrive(what)) all_lanes_meet(what);
    wait(what);
    return counted_;
  }

  /// What a lane puts in for the others. complete(posts) is called once all 32 have.
  struct Post {
    const void* first;
    const void* second;
    void* result;
    std::uint32_t source;  // lane
  };
  using Posts = std::array<Post, 32>;
  template <class Complete>
  void exchange(const Collective& what, const Post& post, Complete&& complete) {
    Posts& posts = meetings_[warp()].posts;
    posts[lane()] = post;  // those of an earlier exchange are no longer read: complete() ends before any lane goes on
    meet(what, [&] { complete(posts); });
  }

  /// Waits until ready() is true. It is asked again after each changed().
  template <class Ready>
  void until(const Collective& what, Ready&& ready) {
    while (!ready()) {
      looking_[warp()] |= 1u << lane();
      wait(what);
    }
  }
  void changed() {
    for (std::uint32_t w = 0; w < kFiberWarps; ++w) wake(w, std::exchange(looking_[w], 0));
  }

  /// What is wrong with a run, said so that it can be repeated.
  [[noreturn]] void fail(const std::string& text) const {
    throw std::runtime_error(text + " [FiberOptions::seed = " + std::to_string(seed_) + "]");
  }
  std::string here() const { return warp_text(warp()) + " " + lanes_text(1u << lane()); }
  static std::string warp_text(std::uint32_t warp) {
    return warp == kFiberStoreWarp ? "the store warp" : "compute warp " + std::to_string(warp);
  }
  /// Says more about a deadlock.
  std::function<std::string()> explain;

 private:
  struct Fiber {
    WatchedThread watched;
    FiberContext context;
    Collective at{};
    bool done = true;
  };
  struct Meeting {
    Collective what{};
    std::uint32_t arrived = 0;
    Posts posts;
  };
  static constexpr std::uint32_t kCaller = kFiberThreads;  // the fiber that is none: who called run()
  static constexpr std::size_t kStackBytes = 64 << 10;
  static constexpr std::uint64_t kCanary = 0x5ca1ab1e0ddba11u;

  struct alignas(64) Stack {
    unsigned char bytes[kStackBytes];
  };
  /// Made once for all executors of a thread.
  static std::unique_ptr<Stack[]>& stacks() {
    static thread_local std::unique_ptr<Stack[]> memory;
    return memory;
  }

  void start(std::uint32_t thread) {
    unsigned char* const stack = stacks()[thread].bytes;
    std::memcpy(stack, &kCanary, sizeof(kCanary));
    // Stacks that begin a power of two apart would share a few sets of the caches.
    const std::size_t bytes = kStackBytes - thread % 32 * 128;
    fibers_[thread].done = false;
    fibers_[thread].context.start(stack + bytes, bytes, &FiberExecutor::enter, fibers_[thread].watched);
    wake(thread / 32, 1u << thread % 32);
  }

  static void enter() {
    FiberContext::arrived();
    FiberExecutor& executor = current();
    try {
      executor.body_(executor.thread());
      executor.fibers_[executor.thread()].done = true;
      executor.fibers_[executor.thread()].at = kReturned;
    } catch (...) {
      executor.error_ = std::current_exception();
    }
    executor.go_on();
  }

  /// By the last lane of a warp.
  void all_lanes_meet(const Collective& what) {
    synced_at_ = what;
    if (++warps_synced_ < kFiberComputeWarps) return;
    warps_synced_ = 0;
    counted_ = std::exchange(votes_, 0);
    for (std::uint32_t w = 0; w < kFiberComputeWarps; ++w) wake(w, ~0u);
  }

  void wake(std::uint32_t warp, std::uint32_t lanes) { ready_[warp] |= lanes; }

  void wait(const Collective& at) {
    fibers_[thread_].at = at;
    go_on();
  }

  /// Lets another fiber run, or the caller of run() if none can.
  void go_on() {
    const std::uint32_t from = thread_;
    thread_ = error_ ? kCaller : next();
    if (thread_ != from) context(from).switch_to(context(thread_));
  }
  FiberContext& context(std::uint32_t thread) { return thread == kCaller ? caller_ : fibers_[thread].context; }

  /// Stays with a warp for a while: else no warp would ever be far ahead of another.
  std::uint32_t next() {
    const std::uint64_t dice = random_();
    if (!ready_[warp_now_] || dice / 1024 % most_wait_ == 0) choose_warp(dice >> 32);
    std::uint32_t& ready = ready_[warp_now_];
    if (!ready) return kCaller;
    const int turn = static_cast<int>(dice % 32);
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(std::rotr(ready, turn)) + turn) % 32;
    ready &= ~(1u << lane);
    return warp_now_ * 32 + lane;
  }

  /// The slow warp, if there is one, only when no other can go on.
  void choose_warp(std::uint64_t dice) {
    for (std::uint32_t i = 0; i < kFiberWarps; ++i) {
      const auto warp = static_cast<std::uint32_t>((dice + i) % kFiberWarps);
      if (!ready_[warp]) continue;
      warp_now_ = warp;
      if (warp != slow_) return;
    }
  }

  /// True for the last lane of the warp.
  bool arrive(const Collective& what) {
    Meeting& meeting = meetings_[warp()];
    if (meeting.arrived && !(meeting.what == what)) split(meeting, what);
    meeting.what = what;
    meeting.arrived |= 1u << lane();
    if (~meeting.arrived) return false;
    meeting.arrived = 0;
    return true;
  }

  [[noreturn]] void split(const Meeting& meeting, const Collective& what) const {
    const auto either = [&](const Collective& a, const Collective& b) {
      return (meeting.what == a && what == b) || (meeting.what == b && what == a);
    };
    const char* why = either(kSyncAll, kReturned) ? "sync() was reached by some threads while others have returned: "
                                                  : "lanes of a warp meet at different collectives: ";
    fail(why + warp_text(warp()) + ": " + lanes_text(meeting.arrived) + " at " + meeting.what.text() + ", " +
         lanes_text(1u << lane()) + " at " + what.text());
  }

  [[noreturn]] void stuck(std::uint32_t threads) const {
    const auto any = [&](const Collective& what) {
      return std::any_of(fibers_.begin(), fibers_.begin() + kFiberComputeThreads,
                         [&](const Fiber& fiber) { return fiber.at == what; });
    };
    std::string text = any(kSyncAll) && any(kReturned) ? "sync() was reached by some threads while others have returned: "
                                                       : "deadlock, no thread can go on: ";
    for (std::uint32_t w = 0; w < threads / 32; ++w) text += (w ? "; " : "") + warp_text(w) + ": " + whereabouts(w);
    if (explain) text += explain();
    fail(text);
  }

  std::string whereabouts(std::uint32_t warp) const {
    std::string text;
    for (std::uint32_t told = 0; ~told;) {
      const Collective& at = fibers_[warp * 32 + static_cast<std::uint32_t>(std::countr_one(told))].at;
      std::uint32_t same = 0;
      for (std::uint32_t l = 0; l < 32; ++l) same |= std::uint32_t{fibers_[warp * 32 + l].at == at} << l;
      text += (told ? ", " : "") + lanes_text(same) + " at " + at.text();
      told |= same;
    }
    return text;
  }

  void check_stacks(std::uint32_t threads) const {
    for (std::uint32_t t = 0; t < threads; ++t)
      if (std::memcmp(stacks()[t].bytes, &kCanary, sizeof(kCanary)))
        fail("thread " + std::to_string(t) + " used more than its 64 KB of stack: raise FiberExecutor::kStackBytes");
  }

  static inline thread_local FiberExecutor* current_ = nullptr;

  const std::uint64_t seed_;
  Random random_;
  std::uint64_t most_wait_;  // on average, steps before another warp gets its turn
  std::uint32_t slow_;       // a warp, or none
  std::function<void(std::uint32_t)> body_;
  std::array<Fiber, kFiberThreads> fibers_;
  std::array<Meeting, kFiberWarps> meetings_;
  std::array<std::uint32_t, kFiberWarps> ready_{};    // lanes that can go on
  std::array<std::uint32_t, kFiberWarps> looking_{};  // lanes in until()
  FiberContext caller_;
  std::uint32_t thread_ = kCaller;
  std::uint32_t warp_now_ = 0;
  std::uint32_t warps_synced_ = 0;
  Collective synced_at_{};                 // where those warps are
  std::uint32_t votes_ = 0, counted_ = 0;  // of meet_all(): so far, and of the last time
  std::exception_ptr error_;
};

}  // namespace flywheel::testing
