#include "abuse/journal.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace flywheel::abuse {

Journal journals[kMostThreads];

namespace {
char command[256] = "";
}

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

void Journal::begin(std::uint64_t number, const char* name) {
  const std::uint64_t at = count_.load(std::memory_order_relaxed);
  std::snprintf(lines_[at % kKept], kWidth, "%llu %s", static_cast<unsigned long long>(number), name);
  // Relaxed: the watchdog reads lines only when the program is about to end.
  count_.store(at + 1, std::memory_order_relaxed);
  began_ns_.store(now_ns(), std::memory_order_relaxed);
}

void Journal::note(const char* format, ...) {
  char* const line = lines_[(count_.load(std::memory_order_relaxed) + kKept - 1) % kKept];
  const std::size_t used = std::strlen(line);
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line + used, kWidth - used, format, arguments);
  va_end(arguments);
}

std::int64_t Journal::busy_ns() const {
  const std::int64_t began = began_ns_.load(std::memory_order_relaxed);
  return began ? now_ns() - began : 0;
}

void Journal::waits_on(std::shared_ptr<Fate> fate) {
  std::scoped_lock lock(mutex_);
  fate_.swap(fate);
}

std::shared_ptr<Fate> Journal::waits_on() {
  std::scoped_lock lock(mutex_);
  return fate_;
}

void Journal::print(const char* thread) const {
  const std::uint64_t end = count_.load(std::memory_order_relaxed), begin = end > kKept ? end - kKept : 0;
  if (!end) return;
  std::printf("%s, its last operations%s:\n", thread, busy_ns() ? "" : " (it is between two)");
  for (std::uint64_t i = begin; i < end; ++i) std::printf("  %s\n", lines_[i % kKept]);
}

void set_command(const std::string& text) { std::snprintf(command, sizeof(command), "%s", text.c_str()); }

void print_journals() {
  std::printf("to repeat: %s\n", command);
  for (std::uint32_t t = 0; t < kMostThreads; ++t) journals[t].print(("thread " + std::to_string(t)).c_str());
  std::fflush(stdout);
}

void finding(const std::string& what) {
  static std::mutex mutex;
  mutex.lock();  // the first thread prints, and ends the program
  std::printf("FINDING: %s\n", what.c_str());
  print_journals();
  std::abort();
}

}  // namespace flywheel::abuse
