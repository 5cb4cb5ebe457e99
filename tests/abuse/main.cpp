// abuse [--seed N] [--operations K | --seconds S] [--threads T] [--no-fork] [--log]: see README.md.
#include <execinfo.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "abuse/child.hpp"
#include "abuse/operations.hpp"

extern "C" {
int __lsan_is_turned_off() { return flywheel::abuse::in_child(); }
/// Sizes that no GPU has are tried on purpose.
const char* __asan_default_options() { return "allocator_may_return_null=1:log_path=stdout:detect_stack_use_after_return=0"; }
const char* __ubsan_default_options() { return "log_path=stdout:print_stacktrace=1"; }
/// A runtime that is kept for ever keeps its threads, too; what is lost is AddressSanitizer's to find.
const char* __tsan_default_options() {
  return "allocator_may_return_null=1:log_path=stdout:halt_on_error=1:second_deadlock_stack=1:report_thread_leaks=0";
}
[[gnu::weak]] void __sanitizer_set_death_callback(void (*callback)());
}

namespace flywheel::abuse {

namespace {
constexpr std::int64_t kMercyNs = 4'000'000, kLongestNs = 60'000'000'000;

/// Declared before the stage, so that it goes after: then all memory must have come back.
struct Ending {
  ~Ending() {
    if (in_child()) return;
    const auto left = [] { return pieces().left([](std::uint32_t runtime) { return may_leave_memory(runtime); }); };
    const std::int64_t end = now_ns() + 20'000'000'000;  // a thread may yet take a runtime apart
    while (!left().empty() && now_ns() < end) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::string of;
    for (const auto& [runtime, count] : left())
      of += " " + std::to_string(count) + " of runtime " + std::to_string(runtime) + ", " + describe_fate(runtime) + ";";
    if (!of.empty()) finding("memory was not given back:" + of);
    std::printf("all memory came back\n");
    std::fflush(stdout);
  }
};

TaskSlot& stage() {
  static Ending ending;
  static TaskSlot one;
  return one;
}

/// Ends what only looks endless, and what is.
class Warden {
 public:
  Warden() : thread_([this] { watch(); }) {}
  ~Warden() {
    over_.store(true);
    thread_.join();
  }

 private:
  void watch() {
    for (; !over_.load(); std::this_thread::sleep_for(std::chrono::milliseconds(2)))
      for (std::uint32_t t = 0; t < kMostThreads; ++t) look_at(journals[t], t);
  }
  static void look_at(Journal& journal, std::uint32_t thread) {
    const std::int64_t busy = journal.busy_ns();
    if (busy > kLongestNs) finding("an operation of thread " + std::to_string(thread) + " does not end");
    const auto fate = busy > kMercyNs ? journal.waits_on() : nullptr;
    if (!fate) return;
    fate->grant_mercy();
    if (fate->frailty) fate->frailty->never_starts = fate->frailty->blocks_in_launch = false;
  }

  std::atomic<bool> over_{false};
  std::thread thread_;
};

/// Operations of one thread; true at the end of all.
void act(const Settings& settings, std::uint32_t thread, std::atomic<std::uint64_t>& done) {
  const std::int64_t end = settings.seconds > 0 ? now_ns() + static_cast<std::int64_t>(settings.seconds * 1e9) : 0;
  for (std::uint64_t i = 0; end ? now_ns() < end : i < settings.operations / settings.threads; ++i) {
    Actor actor{stage(), settings, journals[thread], Dice(settings.seed, thread, i)};
    act_once(actor, i);
    done.fetch_add(1, std::memory_order_relaxed);
  }
}

void run_all(const Settings& settings) {
  const std::int64_t begin = now_ns();
  std::atomic<std::uint64_t> done{0};
  {
    const Warden warden;
    std::vector<std::thread> threads;
    for (std::uint32_t t = 1; t < settings.threads; ++t) threads.emplace_back([&, t] { act(settings, t, done); });
    act(settings, 0, done);
    for (std::thread& thread : threads) thread.join();
  }
  grant_mercy_to_all();
  const double seconds = static_cast<double>(now_ns() - begin) * 1e-9;
  print_counts();
  std::printf("seed %llu: %llu operations of %u threads in %.1f s, %.0f a second, no finding\n",
              static_cast<unsigned long long>(settings.seed), static_cast<unsigned long long>(done.load()), settings.threads,
              seconds, static_cast<double>(done.load()) / seconds);
  std::fflush(stdout);
}

void died(int number) {
  std::printf("FINDING: signal %d\n", number);
  print_journals();
  signal(number, SIG_DFL);
  raise(number);
}

Settings parse(int argc, char** argv) {
  Settings settings;
  settings.operations = 10'000;
  std::string command;
  for (int i = 0; i < argc; ++i) command += (i ? " " : "") + std::string(argv[i]);
  set_command(command);
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto value = [&] { return i + 1 < argc ? argv[++i] : ""; };
    if (flag == "--seed") settings.seed = std::strtoull(value(), nullptr, 10);
    else if (flag == "--operations") settings.operations = std::strtoull(value(), nullptr, 10);
    else if (flag == "--seconds") settings.seconds = std::strtod(value(), nullptr);
    else if (flag == "--threads") settings.threads = static_cast<std::uint32_t>(std::strtoul(value(), nullptr, 10));
    else if (flag == "--no-fork") settings.forks = false;
    else if (flag == "--log") settings.shows_log = true;
    else std::printf("unknown option %s: see tests/abuse/README.md\n", argv[i]), std::exit(2);
  }
  settings.threads = std::min(std::max(settings.threads, 1u), kMostThreads);
  return settings;
}
}  // namespace

}  // namespace flywheel::abuse

int main(int argc, char** argv) {
  using namespace flywheel::abuse;
  const Settings settings = parse(argc, argv);
  if (!settings.shows_log && !std::freopen("/dev/null", "w", stderr)) return 2;
  if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(print_journals);
  else
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) signal(number, died);
  handle_signals();
  void* frame = nullptr;
  backtrace(&frame, 1);  // what it loads at its first call is there in children
  run_all(settings);
  return 0;
}
