// simulate [--seed N] [--count K | --seconds S] [--schedule NAME] [--shape NAME] [--strong] [--steps K] [--weaken PLACE] [--narrow PLACE]
// [--sites]: see README.md.
#include <signal.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/single_threaded.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "simulate/emulated.hpp"
#include "simulate/memory.hpp"
#include "simulate/scheduler.hpp"
#include "simulate/sites.hpp"
#include "simulate/workloads.hpp"

namespace flywheel::simulate {

namespace {

constexpr const char* kSchedules[] = {"random", "pct", "stop", "most", "jump", "any"};
constexpr std::uint64_t kCheckedTwice = 50;  // one in so many seeds

struct Request {
  Settings settings;
  Shape shape = Shape::any;
  std::optional<emulated::Shape> emulated;
  std::uint64_t count = 1000;
  double seconds = 0;
  bool sites = false;
};

/// What the parent reads of its children.
struct Progress {
  std::uint64_t seed, hash;
  std::uint64_t runs, steps, most_steps, findings;
  std::uint64_t of_size[32];  // runs by the logarithm of their steps
  Site sites[kMostSites];
};
Progress* progress = nullptr;
Request request;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void* run_main(void*) {
  const std::uint64_t seed = scheduler.settings().seed;
  if (request.emulated) emulated::run_workload(seed, *request.emulated);
  else run_workload(seed, request.shape);
  return nullptr;
}

std::uint64_t run_seed(std::uint64_t seed) {
  Settings settings = request.settings;
  settings.seed = seed;
  scheduler.run(settings, run_main, nullptr);
  return scheduler.hash();
}

void run_here(std::uint64_t seed, bool again) {
  const std::uint64_t hash = run_seed(seed);
  if (again && progress->hash != hash) finding("two runs of one seed take different steps");
  progress->hash = hash;
  if (again) return;
  const std::uint64_t steps = scheduler.steps();
  ++progress->runs;
  progress->steps += steps;
  if (steps > progress->most_steps) progress->most_steps = steps;
  ++progress->of_size[63 - __builtin_clzll(steps | 1)];
}

void died(int signal) {
  std::fprintf(stderr, "signal %d\n", signal);
  finding("the program died of a signal");
}

/// Each run has a process of its own: a finding ends it, and no run depends on those before it. True if nothing was found.
bool run_child(std::uint64_t seed, bool again) {
  const pid_t child = fork();
  if (!child) {
    static unsigned char stack[1 << 16];
    const stack_t other{stack, 0, sizeof(stack)};
    sigaltstack(&other, nullptr);
    struct sigaction action {};
    action.sa_handler = died;
    action.sa_flags = SA_ONSTACK;
    for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) sigaction(signal, &action, nullptr);
    run_here(seed, again);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0;
}

void print_summary(double seconds) {
  std::printf("%llu runs, %llu steps (most %llu in one) in %.1f s: %.0f runs/s, %.2f million steps/s, %llu findings\n",
              static_cast<unsigned long long>(progress->runs), static_cast<unsigned long long>(progress->steps),
              static_cast<unsigned long long>(progress->most_steps), seconds, static_cast<double>(progress->runs) / seconds,
              static_cast<double>(progress->steps) / seconds / 1e6, static_cast<unsigned long long>(progress->findings));
  for (int i = 0; i < 32; ++i)
    if (progress->of_size[i])
      std::printf("  %10llu steps or more: %llu runs\n", 1ull << i, static_cast<unsigned long long>(progress->of_size[i]));
}

int run_all() {
  progress = static_cast<Progress*>(mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (request.sites) note_sites(progress->sites);
  const double start = now(), end = request.seconds ? start + request.seconds : 0;
  const std::uint64_t first = request.settings.seed, last = end ? ~std::uint64_t{0} : first + request.count;
  for (std::uint64_t seed = first; seed < last && (!end || now() < end) && progress->findings < 5; ++seed) {
    progress->seed = seed;
    if (!run_child(seed, false) || (seed % kCheckedTwice == 0 && !run_child(seed, true))) ++progress->findings;
  }
  print_summary(now() - start);
  if (request.sites) print_sites(progress->sites);
  return progress->findings ? 1 : 0;
}

template <class Enum, std::size_t N>
Enum named(const char* const (&names)[N], const char* name) {
  for (std::size_t i = 0; i < N; ++i)
    if (!std::strcmp(names[i], name)) return static_cast<Enum>(i);
  std::fprintf(stderr, "'%s' is none of:", name);
  for (const char* known : names) std::fprintf(stderr, " %s", known);
  std::fprintf(stderr, "\n");
  std::exit(2);
}

void parse(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--strong" || flag == "--sites") {
      (flag == "--strong" ? request.settings.weak : request.sites) = flag == "--sites";
      continue;
    }
    const char* const value = i + 1 < argc ? argv[++i] : "";
    if (flag == "--seed") request.settings.seed = std::strtoull(value, nullptr, 10), request.count = 1;
    else if (flag == "--count") request.count = std::strtoull(value, nullptr, 10);
    else if (flag == "--seconds") request.seconds = std::strtod(value, nullptr);
    else if (flag == "--steps") request.settings.most_steps = std::strtoull(value, nullptr, 10);
    else if (flag == "--weaken") request.settings.weakened = std::strtoull(value, nullptr, 16);
    else if (flag == "--narrow") request.settings.narrowed = std::strtoull(value, nullptr, 16);
    else if (flag == "--schedule") request.settings.schedule = named<Schedule>(kSchedules, value);
    else if (flag == "--shape" && !std::strncmp(value, "gpu", 3)) request.emulated = named<emulated::Shape>(emulated::kShapeNames, value);
    else if (flag == "--shape") request.shape = named<Shape>(kShapeNames, value);
    else std::fprintf(stderr, "unknown option %s: see tests/simulate/README.md\n", flag.c_str()), std::exit(2);
  }
}

}  // namespace

void finding(const char* what) {
  std::fprintf(stderr, "FINDING seed %llu: %s\n  schedule %s, %s\n", static_cast<unsigned long long>(progress->seed), what,
               kSchedules[static_cast<int>(scheduler.style())], (request.emulated ? emulated::workload_text() : workload_text()).c_str());
  scheduler.show_steps();
  std::fflush(stderr);
  _exit(1);
}

}  // namespace flywheel::simulate

int main(int argc, char** argv) {
  const int before = personality(0xffffffff);
  if (!(before & ADDR_NO_RANDOMIZE) && personality(static_cast<unsigned long>(before) | ADDR_NO_RANDOMIZE) != -1)
    execv("/proc/self/exe", argv);  // addresses that are the same each time: a seed is a run
  __libc_single_threaded = 0;  // else libstdc++ counts references without atomics
  flywheel::simulate::parse(argc, argv);
  return flywheel::simulate::run_all();
}
