// One block of the resident kernel on one thread of the operating system: 384 threads as fibers.
//
// A fiber runs until it waits for others. Who goes on then is random, by a seed: some warps get far ahead of others, and
// lanes of a warp part wherever nothing holds them together.
#pragma once

#include "support/emulated/copies.hpp"
#include "support/emulated/fiber.hpp"
#include "support/emulated/grid.hpp"
#include "support/emulated/meetings.hpp"
#include "support/emulated/races.hpp"
#include "support/emulated/turns.hpp"

namespace flywheel::testing {

class EmulatedBlock {
 public:
  EmulatedBlock(std::uint32_t index, std::uint64_t seed, EmulatedGrid& grid, EmulatedStacks& stacks)
      : index_(index),
        seed_(seed),
        grid_(grid),
        stacks_(stacks),
        turns_(mix(seed, index), grid.pace),
        barriers_(static_cast<std::uint32_t>(mix(seed, index)) | 1, failing(), [this](const WarpMasks& who) { wake(who); }),
        copies_(barriers_, watched_, failing(), [this](std::uint32_t below) { return turns_.draw(below); }),
        meetings_(failing()) {}

  std::uint32_t threads = kEmulatedThreads;  // that meet in __syncthreads(); the others have left by then

  Mbarriers& barriers() { return barriers_; }
  AsyncCopies& copies() { return copies_; }

  /// Once: `kernel` on all threads, until all have returned or something was wrong; then the grid knows what.
  void run(std::function<void()> kernel) {
    const Unwatched unwatched;
    kernel_ = std::move(kernel);
    blockIdx.x = index_;
    current_ = this;
    for (std::uint32_t t = 0; t < kEmulatedThreads; ++t) start(t, seed_);
    release(&kernel_);
    go_on();
    acquire(&kernel_);
    current_ = nullptr;
    if (!meetings_.all_left()) stacks_.spoil();
  }

  /// To be called as a thread of the block.
  class Call {
   public:
    explicit Call(EmulatedBlock& block) : block_(block) {}
    EmulatedBlock* operator->() const { return &block_; }

   private:
    Unwatched unwatched_;
    EmulatedBlock& block_;
  };
  static Call current() { return Call(*current_); }

  // ---- letting others run ----

  FLYWHEEL_UNWATCHED void yield() {
    turns_.yield(thread_);
    go_on();
  }
  /// Before a look at memory: now and then others run first.
  FLYWHEEL_UNWATCHED void look() {
    if (polls_left_-- == 0) {
      polls_left_ = turns_.draw(24);
      yield();
    }
  }
  FLYWHEEL_UNWATCHED void wake_all() {
    for (std::uint32_t t = 0; t < kEmulatedThreads; ++t)
      if (turns_.is_asleep(t)) fibers_[t].watch.free_looks = grid_.pace.free_looks;
    turns_.wake_all();
  }

  // ---- mbarriers ----

  void init(std::uint64_t& word, std::uint32_t arrivals) {
    barriers_.init(word, arrivals);
    published_ = false;
  }
  void invalidate(std::uint64_t& word) {
    for (std::uint32_t t = 0; t < kEmulatedThreads; ++t)
      if (turns_.is_asleep(t) && fibers_[t].barrier == &word)
        fail(barriers_.name(word) + " is invalidated while thread " + std::to_string(t) + " waits for it");
    barriers_.invalidate(word);
  }
  FLYWHEEL_UNWATCHED void arrive(std::uint64_t& word) {
    release(&word);
    barriers_.arrive(word, thread_);
    if (!turns_.draw(8)) yield();
  }
  /// A thread whose second test of a barrier fails sleeps until one of the barriers that it has tested has changed.
  FLYWHEEL_UNWATCHED bool test(std::uint64_t& word, std::uint32_t parity) {
    EmulatedFiber& fiber = fibers_[thread_];
    fiber.test_began = barriers_.ended();
    const Mbarrier& barrier = barriers_.at(word);
    if (barrier.is_complete(parity) || fiber.watch.free_looks || !warp_is_suspended()) return poll_at_last(word, parity);
    fiber.watch.clear();
    fiber.watch.add(word, barrier.phase);
    sleep(word);
    return has_come(word, parity);
  }
  /// Does not wait for an answer to the test before it, and may tell what was so when that began.
  FLYWHEEL_UNWATCHED bool poll(std::uint64_t& word, std::uint32_t parity) {
    const std::uint64_t then = fibers_[thread_].test_began;
    fibers_[thread_].test_began = EmulatedFiber::kNever;
    const Mbarrier& barrier = barriers_.at(word);
    return !(barrier.is_complete(parity) && barrier.ended > then) && poll_at_last(word, parity);
  }
  FLYWHEEL_UNWATCHED bool poll_at_last(std::uint64_t& word, std::uint32_t parity) {
    const bool complete = barriers_.at(word).is_complete(parity);
    Watch& watch = fibers_[thread_].watch;
    if (complete) {
      watch.clear();
      if (!turns_.draw(8)) yield();
      return has_come(word, parity);
    }
    const bool again = !watch.add(word, barriers_.at(word).phase);
    if (again && watch.free_looks) return --watch.free_looks, false;
    if (again) sleep(word);
    else if (!turns_.draw(4)) yield();
    const bool come = has_come(word, parity);
    if (come) watch.clear();  // the barrier may be gone before the next test of another
    return come;
  }
  void publish_mbarriers() { published_ = true; }

  // ---- copies ----

  FLYWHEEL_UNWATCHED void expect_bytes(std::uint64_t& word, std::uint32_t bytes) {
    release(&word);
    barriers_.arrive(word, thread_, bytes);
    if (!turns_.draw(8)) yield();
  }
  void bulk_copy(void* to, const void* from, std::uint32_t bytes, std::uint64_t& word) {
    const EmulatedFiber& fiber = fibers_[thread_];
    if (!fiber.fenced_global) fail(here() + " starts a bulk copy and has not fenced global memory for it");
    if (!fiber.fenced_shared) fail(here() + " starts a bulk copy and has not fenced shared memory for it");
    if (!published_) fail(here() + " starts a bulk copy before publish_mbarriers()");
    copies_.bulk(to, from, bytes, word, &fiber);
  }
  void fence_global_for_bulk_copies() { fence(fibers_[thread_].fenced_global); }
  void fence_shared_for_bulk_copies() { fence(fibers_[thread_].fenced_shared); }
  void copy16(void* to, const void* from) { copies_.copy(to, from, 16, thread_); }
  void copy4(void* to, const void* from) { copies_.copy(to, from, 4, thread_); }
  void commit_copies() { copies_.commit(thread_); }
  void wait_copies(std::uint32_t left) {
    if (!turns_.draw(4)) yield();
    copies_.wait(left, thread_);
  }
  void arrive_when_copied(std::uint64_t& word) { copies_.arrive_when_landed(word, thread_); }

  // ---- meetings of a warp, and of warps ----

  FLYWHEEL_UNWATCHED void sync_warp() {
    const void* const place = &meetings_.posts(warp());
    release(place);
    meet({"__syncwarp()"}, [](Meetings::Posts&) {});
    acquire(place);
  }
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
  template <class Pair>
  void multiply_add(const char* name, float (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
    exchange({name}, {a, b, sums, 0}, [](Meetings::Posts& posts) { multiply_add_lanes<Pair>(posts); });
  }
  /// PTX's bar.sync and bar.red.popc, which are aligned: whole warps.
  FLYWHEEL_UNWATCHED void named_barrier(std::uint32_t id, std::uint32_t threads) {
    meet_named(Meetings::named(id), id, threads);
  }
  std::uint32_t named_barrier_count(std::uint32_t id, std::uint32_t threads, bool vote) {
    meetings_.vote(id, vote);
    meet_named(Meetings::named(id, true), id, threads);
    return meetings_.votes(id);
  }

  [[noreturn]] void fail(const std::string& text) {
    grid_.report("block " + std::to_string(index_) + ": " + text);
    throw Failed{};  // as far as run_thread()
  }
  std::string here() const { return "thread " + std::to_string(thread_) + " (warp " + std::to_string(warp()) + ")"; }

 private:
  struct Failed {};
  static constexpr std::uint32_t kCaller = kEmulatedThreads;  // the fiber that is none: who called run()
  static constexpr std::uint32_t kMostTold = 8;  // times in a row that sleepers are woken before that is a deadlock
  using Watch = EmulatedFiber::Watch;

  Mbarriers::Fail failing() {
    return [this](const std::string& text) { fail(thread_ == kCaller ? text : here() + ": " + text); };
  }

  /// ThreadSanitizer takes either fence for both.
  void fence(bool& done) {
    done = true;
    release(&fibers_[thread_]);
  }

  FLYWHEEL_UNWATCHED_INLINE std::uint32_t warp() const { return thread_ / 32; }
  FLYWHEEL_UNWATCHED_INLINE std::uint32_t lane() const { return thread_ % 32; }
  FLYWHEEL_UNWATCHED_INLINE std::uint32_t bit() const { return 1u << lane(); }
  /// See kLanesApart.
  std::uint32_t watched_place(std::uint32_t thread, std::uint64_t seed) const {
    const std::uint32_t apart = grid_.lanes_apart, lane = thread % 32;
    if (apart >= 31) return thread;
    const auto drawn = static_cast<std::uint32_t>(mix(seed, thread) % apart);
    return thread / 32 * (apart + 1) + (lane ? 1 + drawn : 0);
  }
  void start(std::uint32_t thread, std::uint64_t seed) {
    stacks_.start(thread, watched_place(thread, seed), fibers_[thread].context, &EmulatedBlock::enter);
    turns_.let_go(thread / 32, 1u << thread % 32);
  }
  static void enter() {
    FiberContext::arrived();
    EmulatedBlock& block = began();
    const std::uint32_t next = block.run_thread();
    const Unwatched unwatched;
    block.leave_for(next);
  }
  static EmulatedBlock& began() {
    const Unwatched unwatched;
    acquire(&current_->kernel_);
    return *current_;
  }
  /// Who goes on then.
  std::uint32_t run_thread() {
    try {
      kernel_();
      const Unwatched unwatched;
      if (meetings_.leave(warp(), lane())) let_warp_go();
      fibers_[thread_].at = "the end of the kernel";
      return next();
    } catch (const Failed&) {
      return kCaller;
    }
  }
  /// Does not return.
  [[gnu::always_inline]] void leave_for(std::uint32_t thread) {
    release(&kernel_);
    FiberContext& ended = fibers_[std::exchange(thread_, thread)].context;
    threadIdx.x = thread_;
    ended.end_with(
        context(thread_), []() __attribute__((always_inline)) { Unwatched::end(); });
  }

  FLYWHEEL_UNWATCHED void wake(const WarpMasks& who) {
    progress_ = true;
    turns_.wake(who);
  }
  FLYWHEEL_UNWATCHED bool has_come(const std::uint64_t& word, std::uint32_t parity) {
    const bool complete = barriers_.at(word).is_complete(parity);
    if (complete) acquire(&word);
    return complete;
  }
  /// By a test, which then wakes for its own barrier only. Mostly the same for all lanes of a warp.
  FLYWHEEL_UNWATCHED bool warp_is_suspended() const {
    return !checked_out_of_turn_ && mix(barriers_.ended() / 32, warp()) % 4 == 0;
  }
  FLYWHEEL_UNWATCHED void let_warp_go() { turns_.let_go(warp(), meetings_.present(warp())); }
  FLYWHEEL_UNWATCHED void sleep(std::uint64_t& word) {
    EmulatedFiber& fiber = fibers_[thread_];
    bool changed = false;
    for (std::uint32_t i = 0; i < fiber.watch.count; ++i) {
      Mbarrier& barrier = barriers_.at(*fiber.watch.looks[i].word);
      barrier.watchers[warp()] |= bit();
      changed |= barrier.phase != fiber.watch.looks[i].phase;
    }
    fiber.watch.clear();
    if (changed) return yield();
    fiber.barrier = &word;
    turns_.sleep(thread_);
    wait("an mbarrier");
  }
  FLYWHEEL_UNWATCHED void wait(const char* at) {
    fibers_[thread_].at = at;
    go_on();
    fibers_[thread_].at = "a look at memory";
  }

  template <class Complete>
  FLYWHEEL_UNWATCHED void meet(const Collective& what, Complete&& complete) {
    if (meetings_.arrive(warp(), lane(), what)) {
      complete(meetings_.posts(warp()));
      let_warp_go();
    }
    wait(what.name);
  }
  FLYWHEEL_UNWATCHED void meet_named(const Collective& what, std::uint32_t id, std::uint32_t threads) {
    meetings_.check_whole(warp(), "a named barrier");
    release(meetings_.place(id));
    if (meetings_.arrive(warp(), lane(), what))
      if (const std::uint32_t warps = meetings_.arrive_named(warp(), id, threads, what)) {
        progress_ = true;
        for (std::uint32_t w = 0; w < kEmulatedWarps; ++w)
          if (warps >> w & 1) turns_.let_go(w);
      }
    wait(what.name);
    acquire(meetings_.place(id));
  }
  template <class Complete>
  FLYWHEEL_UNWATCHED void exchange(const Collective& what, const Meetings::Post& post, Complete&& complete) {
    meetings_.check_whole(warp(), what.name);
    meetings_.posts(warp())[lane()] = post;
    meet(what, complete);
  }

  // ---- who runs ----

  FLYWHEEL_UNWATCHED void go_on() {
    const std::uint32_t from = thread_;
    thread_ = next();
    threadIdx.x = thread_;
    if (thread_ == from) return;
    context(from).switch_to(
        context(thread_), []() __attribute__((always_inline)) { Unwatched::end(); });
    Unwatched::begin();
  }
  FLYWHEEL_UNWATCHED_INLINE FiberContext& context(std::uint32_t thread) {
    return thread == kCaller ? caller_ : fibers_[thread].context;
  }

  FLYWHEEL_UNWATCHED std::uint32_t next() {
    for (;;) {
      if (copies_.any() && !turns_.draw(landing_)) copies_.land_some();
      const std::uint32_t thread = turns_.next();
      if (thread != Turns::kNobody) return thread;
      if (!begin_round()) return kCaller;
    }
  }

  /// Nobody is ready: those who yielded have their turn, something lands, sleepers look at their time limits. False if
  /// the block is through.
  bool begin_round() {
    if (grid_.broken()) return false;
    const bool any = turns_.begin_round(), aborted = grid_.aborted();
    turns_.rest(progress_);
    if (progress_) checked_out_of_turn_ = 0;
    progress_ = false;
    if (!any && meetings_.all_left()) return finish(), false;
    if (!turns_.draw(16)) landing_ = 1u << 2 * turns_.draw(5);
    if (!any && copies_.any()) return copies_.land_some(), true;
    const bool asleep = turns_.any_asleep();
    if (asleep && (turns_.is_time_to_check() || aborted)) wake_all();
    else if (asleep && !any && checked_out_of_turn_ < kMostTold) ++checked_out_of_turn_, wake_all();
    else if (!any) stuck();
    return true;
  }
  void finish() {
    if (copies_.any()) fail("the kernel ended with copies on their way");
    for (std::uint32_t t = 0; t < kEmulatedThreads; ++t)
      if (!stacks_.is_whole(t))
        fail("thread " + std::to_string(t) + " used more than its 64 KB of stack: raise EmulatedStacks::kBytes");
  }

  [[noreturn]] void stuck() {
    std::string text = "deadlock, no thread can go on:";
    for (std::uint32_t w = 0; w < kEmulatedWarps; ++w)
      text += (w ? "; warp " : " warp ") + std::to_string(w) + ": " + whereabouts(w);
    fail(text);
  }
  std::string whereabouts(std::uint32_t warp) const {
    std::string text;
    for (std::uint32_t told = 0; ~told;) {
      const std::string at = where(warp * 32 + static_cast<std::uint32_t>(std::countr_one(told)));
      std::uint32_t same = 0;
      for (std::uint32_t l = 0; l < 32; ++l) same |= std::uint32_t{where(warp * 32 + l) == at} << l;
      text += (told ? ", " : "") + lanes_text(same) + " at " + at;
      told |= same;
    }
    return text;
  }
  std::string where(std::uint32_t thread) const {
    return turns_.is_asleep(thread) ? barriers_.name(*fibers_[thread].barrier) : fibers_[thread].at;
  }

  static inline thread_local EmulatedBlock* current_ = nullptr;

  const std::uint32_t index_;
  const std::uint64_t seed_;
  EmulatedGrid& grid_;
  EmulatedStacks& stacks_;
  WatchedCopies watched_;
  std::function<void()> kernel_;
  EmulatedFiber fibers_[kEmulatedThreads];
  Turns turns_;
  Mbarriers barriers_;
  AsyncCopies copies_;
  Meetings meetings_;
  FiberContext caller_;
  std::uint32_t thread_ = kCaller;
  std::uint32_t polls_left_ = 0;
  std::uint32_t landing_ = 1;              // turns for which copies keep still, on average
  bool progress_ = false;                  // in this round
  std::uint32_t checked_out_of_turn_ = 0;  // sleepers, since the last progress: they might have slept through something
  bool published_ = false;                 // all mbarriers, to the bulk copies
};

}  // namespace flywheel::testing
