// What each thread has done last, and how a finding is told: the seed, the last operations of each thread, abort().
#pragma once

#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace flywheel::abuse {

struct Fate;

class Journal {
 public:
  static constexpr std::uint32_t kKept = 50, kWidth = 160;

  /// Of the thread that calls: operation `number` begins.
  void begin(std::uint64_t number, const char* name);
  /// More about it.
  void note(const char* format, ...) __attribute__((format(printf, 2, 3)));
  void end() { began_ns_.store(0, std::memory_order_relaxed); }

  void print(const char* thread) const;
  /// How long the operation under way has taken; 0 if there is none.
  std::int64_t busy_ns() const;

  /// The runtime that the operation under way may have to wait for; null for none.
  void waits_on(std::shared_ptr<Fate> fate);
  std::shared_ptr<Fate> waits_on();

 private:
  char lines_[kKept][kWidth] = {};
  std::atomic<std::uint64_t> count_{0};
  std::atomic<std::int64_t> began_ns_{0};
  std::mutex mutex_;
  std::shared_ptr<Fate> fate_;
};

/// As long as it lives, its operation waits for this runtime. Operations within operations lie in each other.
class WaitsOn {
 public:
  WaitsOn(Journal& journal, std::shared_ptr<Fate> fate) : journal_(journal), before_(journal.waits_on()) {
    journal.waits_on(std::move(fate));
  }
  ~WaitsOn() { journal_.waits_on(std::move(before_)); }
  WaitsOn(const WaitsOn&) = delete;
  WaitsOn& operator=(const WaitsOn&) = delete;

 private:
  Journal& journal_;
  std::shared_ptr<Fate> before_;
};

inline constexpr std::uint32_t kMostThreads = 16;
extern Journal journals[kMostThreads];

/// The command that repeats this run.
void set_command(const std::string& command);
void print_journals();
[[noreturn]] void finding(const std::string& what);
std::int64_t now_ns();

}  // namespace flywheel::abuse
