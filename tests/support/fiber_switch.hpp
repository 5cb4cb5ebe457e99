// Switching from one stack to another within one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "support/unwatched.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
extern "C" void __tsan_func_exit();
#endif
#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace flywheel::testing {

#ifdef __x86_64__
/// Saves what a callee must keep (System V ABI for AMD64, 3.2.1) on this stack, whose pointer goes to *from, and goes
/// on where `to` was left. Rounding modes are not saved: all fibers have the same. Weak, so that the compiler concludes
/// nothing for its callers from a body without register names.
[[gnu::naked, gnu::weak]] void switch_stacks(void** /*from*/, void* /*to*/) {
  asm volatile(
      "pushq %%rbp\n\tpushq %%rbx\n\tpushq %%r12\n\tpushq %%r13\n\tpushq %%r14\n\tpushq %%r15\n\t"
      "movq %%rsp, (%%rdi)\n\tmovq %%rsi, %%rsp\n\t"
      "popq %%r15\n\tpopq %%r14\n\tpopq %%r13\n\tpopq %%r12\n\tpopq %%rbx\n\tpopq %%rbp\n\tret" ::
          : "memory");
}

/// A place to go on from. swapcontext() would do, but makes a system call for the signal mask each time: a switch
/// between 32 fibers in turn takes 11 ns this way and 355 ns that way (a Xeon).
class StackPlace {
 public:
  /// The next switch to this context calls entry(), which never returns. `top`: of the stack, a multiple of 16.
  void start(unsigned char* top, std::size_t, void (*entry)()) {
    auto* words = reinterpret_cast<void**>(top) - 2;  // the ABI: entry() begins 8 bytes below a multiple of 16
    words[1] = nullptr;                               // where a debugger's backtrace ends
    words[0] = reinterpret_cast<void*>(entry);
    stack_ = words - kSavedRegisters;
    for (int i = 0; i < kSavedRegisters; ++i) words[-1 - i] = nullptr;
  }
  /// `last`: is done last.
  template <class Last>
  [[gnu::always_inline]] void switch_to(StackPlace& next, Last&& last) {
    void** const from = &stack_;
    void* const to = next.stack_;
    last();
    switch_stacks(from, to);
  }

 private:
  static constexpr int kSavedRegisters = 6;
  void* stack_ = nullptr;
};
#else
/// A place to go on from.
class StackPlace {
 public:
  /// The next switch to this context calls entry(), which never returns. The stack: `bytes` below `top`.
  void start(unsigned char* top, std::size_t bytes, void (*entry)()) {
    getcontext(&context_);
    context_.uc_stack.ss_sp = top - bytes;
    context_.uc_stack.ss_size = bytes;
    context_.uc_link = nullptr;
    makecontext(&context_, entry, 0);
  }
  template <class Last>
  [[gnu::always_inline]] void switch_to(StackPlace& next, Last&& last) {
    last();
    swapcontext(&context_, &next.context_);
  }

 private:
  ucontext_t context_{};
};
#endif

/// What ThreadSanitizer takes for a thread. To it fibers are threads: nothing but what they say orders their accesses.
class WatchedThread {
 public:
#ifdef __SANITIZE_THREAD__
  WatchedThread() = default;
  ~WatchedThread() {
    if (thread_) __tsan_destroy_fiber(thread_);
  }
  WatchedThread(const WatchedThread&) = delete;
  WatchedThread& operator=(const WatchedThread&) = delete;

  /// To create one costs some hundred page faults, so one that has ended is used again: all that it did before happened before
  /// what it does now.
  void start() {
    if (!thread_) thread_ = __tsan_create_fiber(0);
  }
  /// It was left in the middle of something, and cannot be ended.
  void forget() { thread_ = nullptr; }
  /// Null before start().
  void* get() const { return thread_; }
  static void* current() { return __tsan_get_current_fiber(); }
  /// The caller goes on as that one. Inline: no function may begin as one and end as the other.
  [[gnu::always_inline]] static void become(void* thread) { __tsan_switch_to_fiber(thread, __tsan_switch_to_fiber_no_sync); }
  /// Takes the function that runs off the caller's stack of calls: it does not return, and all that it has called has.
  [[gnu::always_inline]] static void end_call() { __tsan_func_exit(); }

 private:
  void* thread_ = nullptr;
#else
  void start() {}
  void forget() {}
  void* get() const { return nullptr; }
  static void* current() { return nullptr; }
  static void become(void*) {}
  static void end_call() {}
#endif
};

/// A place to go on from, and its stack. AddressSanitizer wants to know of each switch: else it takes an exception that
/// is thrown on a fiber for one on the thread's own stack.
class FiberContext {
 public:
  FiberContext() = default;
  ~FiberContext() {
    if (!is_over_) thread_->forget();
  }
  /// As StackPlace::start(); entry() begins with arrived(). `thread` outlives the context.
  void start(unsigned char* top, std::size_t bytes, void (*entry)(), WatchedThread& thread) {
    bottom_ = top - bytes;
    bytes_ = bytes;
    if (!std::exchange(is_over_, false)) thread_->forget();
    thread_ = &thread;
    thread.start();
    at_ = thread.get();
    place_.start(top, bytes, entry);
  }
  FLYWHEEL_UNWATCHED void switch_to(FiberContext& next) { switch_to(next, []() __attribute__((always_inline)){}); }
  /// `last`: is done last before the switch.
  template <class Last>
  [[gnu::always_inline]] void switch_to(FiberContext& next, Last&& last) {
    left_ = this;
    if (!at_) at_ = WatchedThread::current();
    void* const own = at_;
    void* const to = next.at_;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&fake_stack_, next.bottom_, next.bytes_);
#endif
    place_.switch_to(
        next.place_, [&]() __attribute__((always_inline)) {
          last();
          if (to != own) WatchedThread::become(to);
        });
    arrived(fake_stack_);
  }
  /// For good, by entry() itself. `last`: is done last of all that this one still does.
  template <class Last>
  [[gnu::always_inline]] void end_with(FiberContext& next, Last&& last) {
    is_over_ = true;
    switch_to(
        next, [&]() __attribute__((always_inline)) {
          last();
          WatchedThread::end_call();
        });
  }
  FLYWHEEL_UNWATCHED_INLINE static void arrived([[maybe_unused]] void* fake_stack = nullptr) {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake_stack, &left_->bottom_, &left_->bytes_);
#endif
  }

 private:
  static inline thread_local FiberContext* left_ = nullptr;  // by the last switch
  StackPlace place_;
  WatchedThread* thread_ = nullptr;
  bool is_over_ = true;  // or was not started
  void* at_ = nullptr;   // *thread_, or who was never started here
  const void* bottom_ = nullptr;
  std::size_t bytes_ = 0;
  void* fake_stack_ = nullptr;  // AddressSanitizer's
};

}  // namespace flywheel::testing
