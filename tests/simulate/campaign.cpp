#include "simulate/campaign.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>

namespace flywheel::simulate {

Progress* progress = nullptr;
Request request;

namespace {

using Long = unsigned long long;             // what printf() takes
constexpr std::uint64_t kCheckedTwice = 50;  // one in so many seeds

Progress* of_jobs = nullptr;
std::atomic<std::uint64_t>* next_seed = nullptr;  // shared by the jobs: all before it are taken

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void run_seed(std::uint64_t seed) {
  Settings settings = request.settings;
  settings.seed = seed;
  settings.large = is_large(seed);
  const auto run = [](void*) -> void* {
    run_program(scheduler.settings().seed);
    return nullptr;
  };
  scheduler.run(settings, run, nullptr);
}

/// The shape that the run had: its text begins with the name.
template <std::size_t N>
void count_shape(const std::string& text, const char* const (&names)[N], std::uint64_t* counts) {
  for (std::size_t shape = 0; shape + 1 < N; ++shape)
    if (text.compare(0, text.find(':'), names[shape]) == 0) ++counts[shape];
}

void run_first(std::uint64_t seed) {
  run_seed(seed);
  progress->hash = scheduler.hash();
  const std::uint64_t steps = scheduler.steps();
  if (steps < kFewestSteps) {
    ++progress->short_runs;
    return;
  }
  ++progress->runs;
  progress->steps += steps;
  if (steps > progress->most_steps) progress->most_steps = steps;
  ++progress->of_size[63 - __builtin_clzll(steps)];
  ++progress->of_schedule[static_cast<int>(scheduler.style())];
  if (is_emulated(seed)) count_shape(program_text(seed), emulated::kShapeNames, progress->of_emulated);
  else count_shape(program_text(seed), kShapeNames, progress->of_shape);
}

void run_again(std::uint64_t seed) {
  run_seed(seed);
  if (progress->hash != scheduler.hash()) finding("two runs of one seed take different steps");
}

void died(int signal) {
  std::fprintf(stderr, "signal %d\n", signal);
  finding("the program died of a signal");
}

void catch_signals() {
  static unsigned char stack[1 << 16];
  const stack_t other{stack, 0, sizeof(stack)};
  sigaltstack(&other, nullptr);
  struct sigaction action {};
  action.sa_handler = died;
  action.sa_flags = SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) sigaction(signal, &action, nullptr);
}

std::uint64_t all_findings() {
  std::uint64_t sum = 0;
  for (std::uint64_t job = 0; job < request.jobs; ++job) sum += of_jobs[job].findings;
  return sum;
}

/// One after the other, those that no other job takes.
void take_seeds(std::uint64_t job, double end) {
  progress = of_jobs + job;
  scheduler.note_reached(&progress->reached);
  scheduler.locals().find();
  if (request.sites && !job) note_sites(progress->sites);
  const std::uint64_t last = request.count ? request.settings.seed + request.count : ~std::uint64_t{0};
  while ((!end || now() < end) && all_findings() < request.findings) {
    const std::uint64_t seed = next_seed->fetch_add(1, std::memory_order_relaxed);
    if (seed >= last) return;
    if (run_child(run_first, seed) && (seed % kCheckedTwice != 0 || run_child(run_again, seed))) continue;
    if (progress->findings < std::size(progress->found_by)) progress->found_by[progress->findings] = seed;
    ++progress->findings;
  }
}

/// The last of the names stands for any of the others.
template <std::size_t N>
void print_histogram(const char* what, const char* const (&names)[N], const std::uint64_t* counts) {
  if (std::all_of(counts, counts + N - 1, [](std::uint64_t count) { return count == 0; })) return;
  std::printf("  by %s:", what);
  for (std::size_t i = 0; i + 1 < N; ++i)
    if (counts[i]) std::printf(" %s %llu", names[i], static_cast<Long>(counts[i]));
  std::printf("\n");
}

/// Steps that half of the runs do not exceed, taken evenly between the powers of two.
std::uint64_t median_steps(const Progress& p) {
  std::uint64_t before = 0;
  for (int i = 0; i < 64; before += p.of_size[i++])
    if (2 * (before + p.of_size[i]) > p.runs) return (1ull << i) + (p.runs / 2 - before) * (1ull << i) / p.of_size[i];
  return 0;
}

/// In one line.
void print_outcome(std::uint64_t end) {
  const Progress& p = *of_jobs;
  const std::uint64_t first = request.settings.seed;
  std::printf(
      "simulate: %s, seeds %llu to %llu: %llu schedules of %llu steps or more, median about %llu; %llu shorter ones not "
      "counted; %llu findings",
      p.findings ? "FAILED" : "ok", static_cast<Long>(first), static_cast<Long>(end - 1), static_cast<Long>(p.runs),
      static_cast<Long>(kFewestSteps), static_cast<Long>(median_steps(p)), static_cast<Long>(p.short_runs),
      static_cast<Long>(p.findings));
  for (std::size_t i = 0; i < std::min<std::size_t>(p.findings, std::size(p.found_by)); ++i)
    std::printf("%s %llu", i ? "," : ": seeds", static_cast<Long>(p.found_by[i]));
  std::printf("\n");
}

void print_summary(double seconds) {
  const Progress& p = *of_jobs;
  std::printf("%llu runs, %llu steps (most %llu in one) in %.1f s: %.0f runs/s, %.2f million steps/s, %llu findings\n",
              static_cast<Long>(p.runs), static_cast<Long>(p.steps), static_cast<Long>(p.most_steps), seconds,
              static_cast<double>(p.runs) / seconds, static_cast<double>(p.steps) / seconds / 1e6,
              static_cast<Long>(p.findings));
  for (int i = 0; i < 64; ++i)
    if (p.of_size[i]) std::printf("  %10llu steps or more: %llu runs\n", 1ull << i, static_cast<Long>(p.of_size[i]));
  std::printf("  not counted, with less than %llu steps: %llu runs\n", static_cast<Long>(kFewestSteps),
              static_cast<Long>(p.short_runs));
  print_histogram("shape", kShapeNames, p.of_shape);
  print_histogram("shape", emulated::kShapeNames, p.of_emulated);
  print_histogram("schedule", kScheduleNames, p.of_schedule);
  std::printf("  reached: %.4g states (places at which all threads stand), %.4g switches (from a place, to a place)\n",
              p.reached.states(), p.reached.switches());
}

}  // namespace

void Progress::add(const Progress& other) {
  runs += other.runs;
  short_runs += other.short_runs;
  steps += other.steps;
  most_steps = std::max(most_steps, other.most_steps);
  for (std::size_t i = 0; i < other.findings && findings + i < std::size(found_by); ++i)
    found_by[findings + i] = other.found_by[i];
  findings += other.findings;
  for (std::size_t i = 0; i < std::size(of_size); ++i) of_size[i] += other.of_size[i];
  for (std::size_t i = 0; i < std::size(of_schedule); ++i) of_schedule[i] += other.of_schedule[i];
  for (std::size_t i = 0; i < std::size(of_shape); ++i) of_shape[i] += other.of_shape[i];
  for (std::size_t i = 0; i < std::size(of_emulated); ++i) of_emulated[i] += other.of_emulated[i];
  reached.add(other.reached);
}

void* share_memory(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return memory;
}

bool is_emulated(std::uint64_t seed) {
  return request.emulated || (request.all && Reached::mix(2 * seed + 1) % kEmulatedOneIn == 0);
}
bool is_large(std::uint64_t seed) { return Reached::mix(2 * seed) % kLargeOneIn == 0; }
void run_program(std::uint64_t seed) {
  if (is_emulated(seed)) emulated::run_workload(seed, request.emulated.value_or(emulated::Shape::any));
  else run_workload(seed, request.shape);
}
const std::string& program_text(std::uint64_t seed) { return is_emulated(seed) ? emulated::workload_text() : workload_text(); }

// A finding ends the child, and no run depends on those before it.
bool run_child(void (*run)(std::uint64_t seed), std::uint64_t seed) {
  progress->seed = seed;
  const pid_t child = fork();
  if (!child) {
    catch_signals();
    progress->reached.touch();
    run(seed);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0;
}

int run_campaign() {
  of_jobs = static_cast<Progress*>(share_memory(request.jobs * sizeof(Progress)));
  next_seed = new (share_memory(sizeof(*next_seed))) std::atomic<std::uint64_t>(request.settings.seed);
  const double start = now(), end = request.seconds ? start + request.seconds : 0;
  for (std::uint64_t job = 1; job < request.jobs; ++job)
    if (!fork()) {
      take_seeds(job, end);
      _exit(0);
    }
  take_seeds(0, end);
  while (wait(nullptr) > 0) {}
  for (std::uint64_t job = 1; job < request.jobs; ++job) of_jobs->add(of_jobs[job]);
  print_summary(now() - start);
  if (request.sites) print_sites(of_jobs->sites);
  print_outcome(std::min(next_seed->load(), request.count ? request.settings.seed + request.count : ~std::uint64_t{0}));
  return of_jobs->findings ? 1 : 0;
}

void finding(const char* what) {
  std::snprintf(progress->found, sizeof(progress->found), "%s", what);
  std::fprintf(stderr, "FINDING seed %llu: %s\n  schedule %s, %s\n", static_cast<Long>(progress->seed), what,
               kScheduleNames[static_cast<int>(scheduler.style())], program_text(progress->seed).c_str());
  scheduler.show_steps();
  std::fflush(stderr);
  _exit(1);
}

}  // namespace flywheel::simulate
