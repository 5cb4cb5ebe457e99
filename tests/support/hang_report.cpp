// A test that does not end says where it stands, shortly before ctest ends it: on stderr, the case and the stacks of all
// threads. Under ctest alone, which tells the time limit in FLYWHEEL_TEST_SECONDS.
#include <dirent.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "support/listener.hpp"

using flywheel::testing::Listener;

namespace {

/// What a thread does is told by the thread: its stack is printed where this signal finds it.
int tell_signal() { return SIGRTMIN + 3; }
int time_signal() { return SIGRTMIN + 4; }

char running_case[256];  // written before the timer can go off, or by the thread that it interrupts

// From here to report() nothing takes memory: the thread may have been interrupted in malloc().

template <class... Values>
void say(const char* format, Values... values) {
  char line[384];
  const int size = std::snprintf(line, sizeof line, format, values...);
  if (write(STDERR_FILENO, line, std::min<std::size_t>(size, sizeof line - 1)) < 0) return;
}

void tell(int) {
  say("thread %ld:\n", syscall(SYS_gettid));
  void* frames[48];
  backtrace_symbols_fd(frames, backtrace(frames, 48), STDERR_FILENO);
}

/// Calls visit(thread) for all threads of the process. readdir() would take memory.
template <class Visit>
void for_threads(Visit&& visit) {
  const int tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY);
  alignas(8) char part[4096];
  for (long bytes; (bytes = syscall(SYS_getdents64, tasks, part, sizeof part)) > 0;) {
    for (long at = 0; at < bytes;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(part + at);
      at += entry->d_reclen;
      if (const int thread = std::atoi(entry->d_name)) visit(thread);
    }
  }
  close(tasks);
}

/// One thread after the other, so that the stacks stay apart. ThreadSanitizer puts a signal off until the thread's next
/// atomic access or system call.
void report(int) {
  say("the test takes too long; it is in \"%s\"\n", running_case);
  for_threads([](int thread) {
    syscall(SYS_tgkill, getpid(), thread, tell_signal());
    const timespec moment{0, 200'000'000};
    nanosleep(&moment, nullptr);
  });
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

/// A timer, which a child process does not have.
void report_after(long seconds) {
  void* frame = nullptr;
  backtrace(&frame, 1);  // the first call loads a library, which a signal handler must not
  handle(tell_signal(), tell);
  handle(time_signal(), report);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = time_signal();
  timer_t timer{};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return;
  itimerspec time{};
  time.it_value.tv_sec = seconds;
  timer_settime(timer, 0, &time, nullptr);
}

struct HangReport : Listener {
  using Listener::Listener;
  void testRunStarting(const Catch::TestRunInfo&) override {
    const char* const limit = std::getenv("FLYWHEEL_TEST_SECONDS");
    if (limit) report_after(std::atol(limit) * 4 / 5);
  }
  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    std::snprintf(running_case, sizeof running_case, "%s", info.name.c_str());
  }
};

}  // namespace

CATCH_REGISTER_LISTENER(HangReport)
