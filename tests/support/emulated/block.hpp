// One block of the resident kernel on one thread of the operating system: 384 threads as fibers.
//
// A fiber runs until it waits for others. Who goes on then is random, by a seed: some warps get far ahead of others, and
// lanes of a warp part wherever nothing holds them together.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "support/atomics.hpp"
#include "support/emulated/copies.hpp"
#include "support/emulated/meetings.hpp"
#include "support/fiber_switch.hpp"

/// threadIdx, blockIdx and gridDim, of the fiber that runs.
struct EmulatedIndex {
  std::uint32_t x = 0, y = 0, z = 0;
};
inline thread_local EmulatedIndex threadIdx, blockIdx, gridDim;

namespace flywheel::testing {

/// What the blocks of a launch share.
class EmulatedGrid {
 public:
  /// The first error of any block ends all of them.
  void report(const std::string& text) {
    std::scoped_lock lock(mutex_);
    if (!broken_) why_ = text;
    broken_ = true;
  }
  bool broken() const { return broken_; }
  std::string why() const {
    std::scoped_lock lock(mutex_);
    return why_;
  }
  bool aborted() const { return abort && AtomicRef<std::uint64_t, Scope::device>(*abort).load(Order::relaxed) != 0; }

  std::uint64_t* abort = nullptr;  // the runtime's

 private:
  std::atomic<bool> broken_ = false;
  mutable std::mutex mutex_;
  std::string why_;
};

class EmulatedBlock {
 public:
  /// The stacks may be used again once run() has returned.
  struct Stacks {
    static constexpr std::size_t kBytes = 64 << 10;
    struct alignas(64) Stack {
      unsigned char bytes[kBytes];
    };
    std::unique_ptr<Stack[]> each = std::make_unique_for_overwrite<Stack[]>(kEmulatedThreads);
  };

  EmulatedBlock(std::uint32_t index, std::uint64_t seed, EmulatedGrid& grid, Stacks& stacks)
      : index_(index), seed_(seed), grid_(grid), stacks_(stacks),
        barriers_(static_cast<std::uint32_t>(mix(seed, index)) | 1, failing(), [this](const WarpMasks& who) { wake(who); }),
        copies_(barriers_, failing(), [this](std::uint32_t below) { return draw(below); }), meetings_(failing()) {}

  Mbarriers& barriers() { return barriers_; }
  AsyncCopies& copies() { return copies_; }

  /// Once: `kernel` on all threads, until all have returned or something was wrong; then the grid knows what.
  void run(std::function<void()> kernel) {
    kernel_ = std::move(kernel);
    blockIdx.x = index_;
    current_ = this;
    for (std::uint32_t t = 0; t < kEmulatedThreads; ++t) start(t);
    choose_pace();
    go_on();
    current_ = nullptr;
  }

  static EmulatedBlock& current() { return *current_; }
  /// The emulated block whose kernel runs on this thread of the operating system, or null.
  static EmulatedBlock* current_or_null() { return current_; }

  // ---- letting others run ----

  void yield() {
    later_[warp()] |= bit();
    go_on();
  }
  /// Before a look at memory: now and then others run first.
  void look() {
    if (looks_left_-- == 0) {
      looks_left_ = draw(24);
      yield();
    }
  }
  void wake_all() {
    for (std::uint32_t w = 0; w < kEmulatedWarps; ++w) ready_[w] |= std::exchange(asleep_[w], 0);
  }

  // ---- mbarriers ----

  void init(std::uint64_t& word, std::uint32_t arrivals) { barriers_.init(word, arrivals); }
  void invalidate(std::uint64_t& word) { barriers_.invalidate(word, asleep_); }
  void arrive(std::uint64_t& word) {
    barriers_.arrive(word, thread_);
    if (!draw(8)) yield();
  }
  /// Who looks in vain at a barrier for the second time sleeps until one of those looked at has changed.
  bool test(std::uint64_t& word, std::uint32_t parity) {
    const bool complete = barriers_.at(word).is_complete(parity);
    Watch& watch = fibers_[thread_].watch;
    if (complete) {
      watch.clear();
      if (!draw(8)) yield();
      return true;
    }
    const bool again = !watch.add(word, barriers_.at(word).phase);
    if (again) sleep(word);
    else if (!draw(4)) yield();
    return barriers_.at(word).is_complete(parity);
  }
  void publish_mbarriers() {}

  // ---- copies ----

  void bulk_copy(void* to, const void* from, std::uint32_t bytes, std::uint64_t& word) {
    if (!fibers_[thread_].fenced) fail(here() + " starts a bulk copy and has not fenced global memory for it");
    copies_.bulk(to, from, bytes, word, thread_);
  }
  void fence_for_bulk_copies() { fibers_[thread_].fenced = true; }
  void copy16(void* to, const void* from) { copies_.copy16(to, from, thread_); }
  void commit_copies() { copies_.commit(thread_); }
  void wait_copies(std::uint32_t left) {
    if (!draw(4)) yield();
    copies_.wait(left, thread_);
  }
  void arrive_when_copied(std::uint64_t& word) { copies_.arrive_when_landed(word, thread_); }

  // ---- meetings of a warp, and of warps ----

  void sync_warp() { meet({"__syncwarp()"}, [](Meetings::Posts&) {}); }
  /// The votes of all lanes.
  std::uint32_t votes(const char* name, bool vote) {
    std::uint32_t all = 0;
    exchange({name}, {&vote, nullptr, &all, 0}, [](Meetings::Posts& posts) {
      std::uint32_t together = 0;
      for (std::uint32_t l = 0; l < 32; ++l) together |= std::uint32_t{*static_cast<const bool*>(posts[l].first)} << l;
      for (const auto& post : posts) *static_cast<std::uint32_t*>(post.result) = together;
    });
    return all;
  }
  std::uint32_t shuffle(const char* name, std::uint32_t value, std::uint32_t source) {
    std::uint32_t result = 0;
    exchange({name}, {&value, nullptr, &result, source}, [](Meetings::Posts& posts) {
      for (const auto& post : posts) std::memcpy(post.result, posts[post.source].first, sizeof(value));
    });
    return result;
  }
  void multiply_add(float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
    exchange({"mma_bf16()"}, {a, b, sums, 0}, [](Meetings::Posts& posts) { multiply_add_lanes(posts); });
  }
  /// PTX's bar.sync, which is aligned: whole warps.
  void named_barrier(std::uint32_t id, std::uint32_t threads) {
    meetings_.check_whole(warp(), "a named barrier");
    if (meetings_.arrive(warp(), lane(), Meetings::named(id)))
      if (const std::uint32_t warps = meetings_.arrive_named(warp(), id, threads)) {
        progress_ = true;
        for (std::uint32_t w = 0; w < kEmulatedWarps; ++w)
          if (warps >> w & 1) ready_[w] = ~0u;
      }
    wait(Meetings::named(id).name);
  }

  [[noreturn]] void fail(const std::string& text) {
    grid_.report("block " + std::to_string(index_) + ": " + text + " [FLYWHEEL_SEED=" + std::to_string(seed_) + "]");
    const std::uint32_t from = std::exchange(thread_, kCaller);
    if (from != kCaller) fibers_[from].context.switch_to(caller_);
    throw std::logic_error("a fiber went on after it failed");
  }
  std::string here() const { return "thread " + std::to_string(thread_) + " (warp " + std::to_string(warp()) + ")"; }

 private:
  static constexpr std::uint32_t kCaller = kEmulatedThreads;  // the fiber that is none: who called run()
  static constexpr std::uint64_t kCanary = 0x5ca1ab1e0ddba11u;

  /// The barriers a fiber has looked at in vain since it last slept.
  struct Watch {
    struct Look {
      std::uint64_t* word;
      std::uint32_t phase;
    };
    std::array<Look, 4> looks;
    std::uint32_t count = 0;

    void clear() { count = 0; }
    /// False if it is there already.
    bool add(std::uint64_t& word, std::uint32_t phase) {
      for (std::uint32_t i = 0; i < count; ++i)
        if (looks[i].word == &word) return false;
      if (count == looks.size()) return false;
      looks[count++] = {&word, phase};
      return true;
    }
  };

  struct Fiber {
    FiberContext context;
    Watch watch;
    const char* at = "its begin";
    const std::uint64_t* barrier = nullptr;  // on which it sleeps
    bool fenced = false;
  };

  Mbarriers::Fail failing() {
    return [this](const std::string& text) { fail(thread_ == kCaller ? text : here() + ": " + text); };
  }

  std::uint32_t warp() const { return thread_ / 32; }
  std::uint32_t lane() const { return thread_ % 32; }
  std::uint32_t bit() const { return 1u << lane(); }
  std::uint64_t random() { return mix(seed_ + index_, drawn_++); }
  std::uint32_t draw(std::uint32_t below) { return static_cast<std::uint32_t>((random() >> 32) * below >> 32); }

  void start(std::uint32_t thread) {
    unsigned char* const stack = stacks_.each[thread].bytes;
    std::memcpy(stack, &kCanary, sizeof(kCanary));
    // Stacks that begin a power of two apart would share a few sets of the caches.
    const std::size_t bytes = Stacks::kBytes - thread % 32 * 128;
    fibers_[thread].context.start(stack + bytes, bytes, &EmulatedBlock::enter);
    ready_[thread / 32] |= 1u << thread % 32;
  }
  static void enter() {
    FiberContext::arrived();
    EmulatedBlock& block = *current_;
    block.kernel_();
    if (block.meetings_.leave(block.warp(), block.lane())) block.ready_[block.warp()] |= block.meetings_.present(block.warp());
    block.fibers_[block.thread_].at = "the end of the kernel";
    block.go_on();
  }

  void wake(const WarpMasks& who) {
    progress_ = true;
    for (std::uint32_t w = 0; w < kEmulatedWarps; ++w) {
      ready_[w] |= asleep_[w] & who[w];
      asleep_[w] &= ~who[w];
    }
  }
  void sleep(std::uint64_t& word) {
    Fiber& fiber = fibers_[thread_];
    bool changed = false;
    for (std::uint32_t i = 0; i < fiber.watch.count; ++i) {
      Mbarrier& barrier = barriers_.at(*fiber.watch.looks[i].word);
      barrier.watchers[warp()] |= bit();
      changed |= barrier.phase != fiber.watch.looks[i].phase;
    }
    fiber.watch.clear();
    if (changed) return yield();
    fiber.barrier = &word;
    asleep_[warp()] |= bit();
    wait("an mbarrier");
  }
  void wait(const char* at) {
    fibers_[thread_].at = at;
    go_on();
    fibers_[thread_].at = "a look at memory";
  }

  template <class Complete>
  void meet(const Collective& what, Complete&& complete) {
    if (meetings_.arrive(warp(), lane(), what)) {
      complete(meetings_.posts(warp()));
      ready_[warp()] |= meetings_.present(warp());
    }
    wait(what.name);
  }
  template <class Complete>
  void exchange(const Collective& what, const Meetings::Post& post, Complete&& complete) {
    meetings_.check_whole(warp(), what.name);
    meetings_.posts(warp())[lane()] = post;
    meet(what, complete);
  }

  // ---- who runs ----

  void go_on() {
    const std::uint32_t from = thread_;
    thread_ = next();
    threadIdx.x = thread_;
    if (thread_ != from) context(from).switch_to(context(thread_));
  }
  FiberContext& context(std::uint32_t thread) { return thread == kCaller ? caller_ : fibers_[thread].context; }

  std::uint32_t next() {
    for (;;) {
      const std::uint64_t dice = random();
      if (dice % 8 == 0 && copies_.any()) copies_.land_some();
      if (dice / 8 % 8192 == 0) choose_pace();
      if (!ready_[warp_now_] || dice / 65536 % patience_ == 0) choose_warp(dice >> 32);
      std::uint32_t& ready = ready_[warp_now_];
      if (!ready && !begin_round()) return kCaller;
      if (!ready) continue;
      const int turn = static_cast<int>(dice >> 40) % 32;
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(std::rotr(ready, turn)) + turn) % 32;
      ready &= ~(1u << lane);
      return warp_now_ * 32 + lane;
    }
  }

  /// For a while: how long one warp keeps its turn, and whether one of them is slow.
  void choose_pace() {
    patience_ = std::uint64_t{1} << 3 * draw(5);
    slow_ = draw(2 * kEmulatedWarps);
  }
  /// The slow warp only when no other can go on.
  void choose_warp(std::uint64_t dice) {
    for (std::uint32_t i = 0; i < kEmulatedWarps; ++i) {
      const auto warp = static_cast<std::uint32_t>((dice + i) % kEmulatedWarps);
      if (!ready_[warp]) continue;
      warp_now_ = warp;
      if (warp != slow_) return;
    }
  }

  /// Nobody is ready: those who yielded have their turn, something lands, sleepers look at their time limits. False if
  /// the block is through.
  bool begin_round() {
    if (grid_.broken()) return false;
    std::uint32_t any = 0;
    for (std::uint32_t w = 0; w < kEmulatedWarps; ++w) any |= ready_[w] |= std::exchange(later_[w], 0);
    rest();
    if (copies_.any()) return copies_.land_some(), true;
    if (++rounds_ % 256 == 0 || grid_.aborted()) wake_all();
    if (any || any_asleep_twice()) return true;
    if (!meetings_.all_left()) stuck();
    check_stacks();
    return false;
  }
  /// Once without progress they may look again: they might have slept through something.
  bool any_asleep_twice() {
    std::uint32_t asleep = 0;
    for (const std::uint32_t lanes : ready_) asleep |= lanes;
    for (const std::uint32_t lanes : asleep_) asleep |= lanes;
    if (!asleep || (woken_ && !grid_.aborted())) return false;
    woken_ = true;
    wake_all();
    return true;
  }
  /// A block that only polls leaves the processor to others.
  void rest() {
    idle_ = progress_ ? 0 : idle_ + 1;
    if (progress_) woken_ = false;
    progress_ = false;
    if (idle_ > 512) std::this_thread::sleep_for(std::chrono::microseconds(50));
    else if (idle_ > 8) std::this_thread::yield();
  }

  [[noreturn]] void stuck() {
    std::string text = "deadlock, no thread can go on:";
    for (std::uint32_t w = 0; w < kEmulatedWarps; ++w) {
      text += (w ? "; warp " : " warp ") + std::to_string(w) + ": ";
      for (std::uint32_t told = 0; ~told;) {
        const Fiber& first = fibers_[w * 32 + static_cast<std::uint32_t>(std::countr_one(told))];
        std::uint32_t same = 0;
        for (std::uint32_t l = 0; l < 32; ++l) {
          const Fiber& fiber = fibers_[w * 32 + l];
          same |= std::uint32_t{!std::strcmp(fiber.at, first.at) && (fiber.barrier == first.barrier || !is_asleep(fiber))} << l;
        }
        text += (told ? ", " : "") + lanes_text(same) + " at " + (is_asleep(first) ? barriers_.name(*first.barrier) : first.at);
        told |= same;
      }
    }
    fail(text);
  }
  static bool is_asleep(const Fiber& fiber) { return !std::strcmp(fiber.at, "an mbarrier"); }

  void check_stacks() {
    if (copies_.any()) fail("the kernel ended with copies on their way");
    for (std::uint32_t t = 0; t < kEmulatedThreads; ++t)
      if (std::memcmp(stacks_.each[t].bytes, &kCanary, sizeof(kCanary)))
        fail("thread " + std::to_string(t) + " used more than its 64 KB of stack: raise EmulatedBlock::Stacks::kBytes");
  }

  static inline thread_local EmulatedBlock* current_ = nullptr;

  const std::uint32_t index_;
  const std::uint64_t seed_;
  EmulatedGrid& grid_;
  Stacks& stacks_;
  std::function<void()> kernel_;
  std::array<Fiber, kEmulatedThreads> fibers_;
  Mbarriers barriers_;
  AsyncCopies copies_;
  Meetings meetings_;
  WarpMasks ready_{}, later_{}, asleep_{};
  FiberContext caller_;
  std::uint32_t thread_ = kCaller;
  std::uint32_t warp_now_ = 0;
  std::uint32_t looks_left_ = 0;
  std::uint64_t drawn_ = 0;
  std::uint64_t patience_ = 1;
  std::uint32_t slow_ = 0;
  std::uint32_t rounds_ = 0;
  std::uint32_t idle_ = 0;  // rounds in which nothing happened
  bool progress_ = false, woken_ = false;
};

}  // namespace flywheel::testing
