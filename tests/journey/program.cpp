// Takes one task from submit() to get() on one CPU worker, and prints which functions it comes through, part by part: a line
// "<part> <address>" for each. The program is built with -finstrument-functions, and tests/journey/check reads the addresses.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <chrono>
#include <cstdio>
#include <thread>

#include "host/submit/completion.hpp"
#include "journey/record.hpp"
#include "runtime/cpu/entry.hpp"
#include "support/internals.hpp"

namespace flywheel::journey {

namespace {

struct Answer {
  template <class Block>
  FLYWHEEL_TASK int operator()(Block&) const {
    return 42;
  }
};

bool contains(Entries entries, const void* function) {
  for (std::size_t i = 0; i < entries.count; ++i)
    if (entries.functions[i] == function) return true;
  return false;
}

/// True if nobody was ahead of the task at the dispatcher, and the thread that waits for its result was the first to see it.
bool travel(Runtime& runtime, const Executable& executable, TaskRef<int> answer) {
  const std::uint64_t direct = runtime.stats().direct;
  watch_idle();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  begin();
  take(Part::submit);
  Run run = runtime.submit(executable);
  take(Part::get);
  const int value = run.get(answer);
  end();
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return value == 42 && runtime.stats().direct == direct + 1 &&
         contains(entries(Part::get), reinterpret_cast<const void*>(&collect));
}

void print(const char* part, Entries entries) {
  for (std::size_t i = 0; i < entries.count; ++i) std::printf("%s %p\n", part, entries.functions[i]);
}

int run() {
  Options options;
  options.target = Target::cpu;
  options.mode = Mode::resident;
  options.workers = 1;
  options.park_after = std::chrono::hours(1);
  begins(Part::poller, reinterpret_cast<const void*>(&cpu_poller<CpuPlatform>));
  begins(Part::worker, reinterpret_cast<const void*>(&cpu_worker<CpuPlatform>));
  Runtime runtime(kernel_entry<Answer>(), options);
  Graph graph;
  const TaskRef<int> answer = graph.add(Answer{});
  const Executable executable = runtime.load(graph);
  runtime.submit(executable).wait();  // launches the kernel
  for (int attempt = 0; attempt < 200; ++attempt) {
    if (!travel(runtime, executable, answer)) continue;
    print("submit", entries(Part::submit));
    print("poller", entries(Part::poller));
    print("worker", entries(Part::worker));
    print("get", entries(Part::get));
    return 0;
  }
  std::fprintf(stderr,
               "in 200 attempts another thread was always ahead of the task: run the program on a machine with less load\n");
  return 1;
}

}  // namespace

}  // namespace flywheel::journey

int main() { return flywheel::journey::run(); }
