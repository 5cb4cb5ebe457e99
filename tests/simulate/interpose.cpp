// What the C library offers threads, as steps of the scheduler. The program's definitions come before the libraries', also for
// libstdc++. Outside a run there is one thread, and locks do nothing.
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdarg>

#include "simulate/memory.hpp"
#include "simulate/scheduler.hpp"

using flywheel::simulate::Choice;
using flywheel::simulate::finding;
using flywheel::simulate::Kind;
using flywheel::simulate::kMostFibers;
using flywheel::simulate::kNever;
using flywheel::simulate::scheduler;
namespace memory = flywheel::simulate::memory;

#define FLYWHEEL_CALLER __builtin_return_address(0)

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
std::uint64_t ns_of(const timespec& t) {
  return static_cast<std::uint64_t>(t.tv_sec) * kSecond + static_cast<std::uint64_t>(t.tv_nsec);
}

/// A mutex's own first word: 0 is free, else the owner's number + 1.
int& owner_of(pthread_mutex_t* mutex) { return *reinterpret_cast<int*>(mutex); }

bool try_lock(pthread_mutex_t* mutex) {
  if (owner_of(mutex)) return false;
  owner_of(mutex) = static_cast<int>(scheduler.current()) + 1;
  memory::acquire(mutex);
  return true;
}
void lock(pthread_mutex_t* mutex) {
  if (owner_of(mutex) == static_cast<int>(scheduler.current()) + 1) finding("a thread locks a mutex that it holds");
  while (!try_lock(mutex)) scheduler.wait(mutex, kNever);
}
void unlock(pthread_mutex_t* mutex) {
  if (owner_of(mutex) != static_cast<int>(scheduler.current()) + 1) finding("a thread unlocks a mutex that it does not hold");
  memory::release(mutex);
  owner_of(mutex) = 0;
  scheduler.wake(mutex, kMostFibers);
}

int wait_on(pthread_cond_t* condition, pthread_mutex_t* mutex, std::uint64_t limit, const void* where) {
  scheduler.step(Kind::wait, where);
  unlock(mutex);
  const bool wakes =
      scheduler.decide(Choice::wakes, 0, [] { return scheduler.random().one_in(500) ? 1u : 0u; });  // for no reason
  const bool late = wakes ? false : scheduler.wait(condition, limit);
  lock(mutex);
  return late ? ETIMEDOUT : 0;
}

void sleep_until(std::uint64_t limit, const void* where) {
  scheduler.step(Kind::sleep, where);
  if (limit > scheduler.now()) scheduler.wait(nullptr, limit);
}

using SystemCall = long (*)(long, ...);
SystemCall found_syscall = nullptr;
SystemCall real_syscall() {
  if (!found_syscall) found_syscall = reinterpret_cast<SystemCall>(dlsym(RTLD_NEXT, "syscall"));
  return found_syscall;
}

int real_clock(clockid_t clock, timespec* time) { return static_cast<int>(real_syscall()(SYS_clock_gettime, clock, time)); }

/// What std::atomic::wait() and std::latch call.
long futex(int* word, int operation, int value, const void* where) {
  if ((operation & FUTEX_CMD_MASK) == FUTEX_WAKE) {
    scheduler.step(Kind::notify, where);
    scheduler.wake(word, static_cast<std::uint32_t>(value));
  } else {
    scheduler.step(Kind::wait, where);
    if (*word == value) scheduler.wait(word, kNever);
  }
  return 0;
}

}  // namespace

extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t*, void* (*routine)(void*), void* argument) {
  scheduler.step(Kind::create, FLYWHEEL_CALLER);
  *thread = scheduler.create(routine, argument) + 1;
  return 0;
}
int pthread_join(pthread_t thread, void**) {
  scheduler.step(Kind::join, FLYWHEEL_CALLER);
  const auto fiber = static_cast<std::uint32_t>(thread - 1);
  while (!scheduler.is_over(fiber)) scheduler.wait(scheduler.fiber(fiber), kNever);
  memory::thread_joined(fiber);
  scheduler.let_go(fiber);
  return 0;
}
int pthread_detach(pthread_t thread) {
  scheduler.let_go(static_cast<std::uint32_t>(thread - 1));
  return 0;
}
pthread_t pthread_self() { return scheduler.on() ? scheduler.current() + 1 : kMostFibers + 1; }

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  if (!scheduler.on()) return 0;
  scheduler.step(Kind::lock, FLYWHEEL_CALLER);
  lock(mutex);
  return 0;
}
int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  if (!scheduler.on()) return 0;
  scheduler.step(Kind::lock, FLYWHEEL_CALLER);
  return try_lock(mutex) ? 0 : EBUSY;
}
int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  if (!scheduler.on()) return 0;
  unlock(mutex);
  scheduler.step(Kind::unlock, FLYWHEEL_CALLER);
  return 0;
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  return wait_on(condition, mutex, kNever, FLYWHEEL_CALLER);
}
int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* limit) {
  return wait_on(condition, mutex, ns_of(*limit), FLYWHEEL_CALLER);
}
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t, const timespec* limit) {
  return wait_on(condition, mutex, ns_of(*limit), FLYWHEEL_CALLER);
}
int pthread_cond_signal(pthread_cond_t* condition) {
  if (!scheduler.on()) return 0;
  scheduler.step(Kind::notify, FLYWHEEL_CALLER);
  scheduler.wake(condition, 1);
  return 0;
}
int pthread_cond_broadcast(pthread_cond_t* condition) {
  if (!scheduler.on()) return 0;
  scheduler.step(Kind::notify, FLYWHEEL_CALLER);
  scheduler.wake(condition, kMostFibers);
  return 0;
}
int pthread_cond_destroy(pthread_cond_t*) { return 0; }
int pthread_mutex_destroy(pthread_mutex_t*) { return 0; }

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (!scheduler.on()) return real_clock(clock, time);
  scheduler.step(Kind::clock, FLYWHEEL_CALLER);
  const std::uint64_t now = scheduler.now();
  *time = {static_cast<time_t>(now / kSecond), static_cast<long>(now % kSecond)};
  return 0;
}
int nanosleep(const timespec* time, timespec*) {
  sleep_until(scheduler.now() + ns_of(*time), FLYWHEEL_CALLER);
  return 0;
}
int clock_nanosleep(clockid_t, int flags, const timespec* time, timespec*) {
  sleep_until(flags & TIMER_ABSTIME ? ns_of(*time) : scheduler.now() + ns_of(*time), FLYWHEEL_CALLER);
  return 0;
}
int usleep(useconds_t us) {
  sleep_until(scheduler.now() + std::uint64_t{us} * 1000, FLYWHEEL_CALLER);
  return 0;
}
long syscall(long number, ...) noexcept {
  long a[6];
  std::va_list list;
  va_start(list, number);
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  if (number != SYS_futex || !scheduler.on()) return real_syscall()(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  return futex(reinterpret_cast<int*>(a[0]), static_cast<int>(a[1]), static_cast<int>(a[2]), FLYWHEEL_CALLER);
}
int sched_yield() noexcept {
  scheduler.yield(FLYWHEEL_CALLER);
  return 0;
}

// Objects that a function makes at its first call. First byte: whether it is made; second: whether a thread is making it.
int __cxa_guard_acquire(unsigned char* guard) {
  while (scheduler.on() && guard[1]) scheduler.wait(guard, kNever);
  if (guard[0]) {
    memory::acquire(guard);
    return 0;
  }
  guard[1] = 1;
  return 1;
}
void __cxa_guard_release(unsigned char* guard) {
  memory::release(guard);
  // The compiler puts an acquire load of the first byte before the call: a thread that finds it set sees the object, too.
  if (scheduler.on())
    memory::store(guard, 1, guard[0], 1, {flywheel::simulate::kRelease, flywheel::simulate::kSystem, FLYWHEEL_CALLER});
  guard[0] = 1;
  guard[1] = 0;
  if (scheduler.on()) scheduler.wake(guard, kMostFibers);
}
void __cxa_guard_abort(unsigned char* guard) {
  guard[1] = 0;
  if (scheduler.on()) scheduler.wake(guard, kMostFibers);
}

}  // extern "C"
