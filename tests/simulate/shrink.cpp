// Shrinking: a smaller program and fewer decisions that lead to the same finding. First the program's draws become smaller,
// each tried with some schedules; then the decisions of the run that is left are dropped in chunks (delta debugging: Zeller and
// Hildebrandt 2002), and the rest of the run does the obvious.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "simulate/campaign.hpp"

namespace flywheel::simulate {

namespace {

using Long = unsigned long long;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kSchedulesTried = 20;  // for each smaller program
constexpr std::chrono::seconds kForProgram{30}, kForDecisions{60};

/// Nothing here lies in the heap, which the children inherit: where they put things must not depend on it.
struct Shrinker {
  DecisionList *taken, *kept, *tried;
  std::uint64_t program, schedule;
  char wanted[1024];
  bool quiet;
};
Shrinker s;

/// The text without its numbers: addresses, fibers and counts may change.
void plain_text(const char* from, char* to) {
  const auto is_part_of_number = [](char c) { return std::strchr("0123456789abcdefx+", c) != nullptr; };
  for (; *from; ++from)
    if (*from >= '0' && *from <= '9') {
      while (from[1] && is_part_of_number(from[1])) ++from;
    } else if (*from != '+') {
      *to++ = *from;
    }
  *to = 0;
}

void run_here(std::uint64_t schedule) {
  if (s.quiet) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDERR_FILENO);
  }
  Settings settings = request.settings;
  settings.seed = schedule;
  settings.large = is_large(s.program);
  const auto run = [](void*) -> void* {
    run_program(s.program);
    return nullptr;
  };
  scheduler.run(settings, run, nullptr);
}

/// Whether that run ends with the finding that is wanted.
bool fails(std::uint64_t schedule, DecisionList* plan) {
  progress->draws.count = 0;
  progress->found[0] = 0;
  scheduler.decisions().use(s.taken, plan);
  if (run_child(run_here, schedule)) return false;
  char found[sizeof(progress->found)];
  plain_text(progress->found, found);
  return !s.wanted[0] || !std::strcmp(found, s.wanted);
}

bool fails_with_some_schedule() {
  for (std::uint64_t i = 0; i < kSchedulesTried; ++i)
    if (fails(s.schedule + i, nullptr)) {
      s.schedule += i;
      return true;
    }
  return false;
}

/// Draws that are as they are now, up to `at`, and then `value`.
bool fails_with_draw(const Draws& now, std::uint32_t at, std::uint32_t value) {
  Draws& draws = progress->draws;
  std::copy_n(now.drawn, at, draws.wanted);
  draws.wanted[at] = value;
  draws.edits = at + 1;
  // What comes behind keeps its value, as long as the program draws the same.
  for (std::uint32_t i = at + 1; i < now.count; ++i) draws.wanted[draws.edits++] = now.drawn[i];
  return fails_with_some_schedule();
}

void shrink_program() {
  const auto end = Clock::now() + kForProgram;
  Draws now = progress->draws;
  for (std::uint32_t at = 0; at < now.count && Clock::now() < end; ++at)
    for (std::uint32_t value = 0; value < now.drawn[at]; value = value + (now.drawn[at] - value + 1) / 2)
      if (fails_with_draw(now, at, value)) {
        now = progress->draws;
        break;
      } else if (Clock::now() >= end) {
        break;
      }
  Draws& draws = progress->draws;
  std::copy_n(now.drawn, now.count, draws.wanted);
  draws.edits = now.count;
}

void copy(DecisionList& to, const DecisionList& from) {
  std::copy_n(from.at, from.count, to.at);
  to.count = from.count;
}

bool fails_without(std::uint64_t first, std::uint64_t count) {
  copy(*s.tried, *s.kept);
  std::copy(s.kept->at + first + count, s.kept->at + s.kept->count, s.tried->at + first);
  s.tried->count -= count;
  if (!fails(s.schedule, s.tried)) return false;
  copy(*s.kept, *s.taken);  // those that played a part
  return true;
}

void shrink_decisions() {
  const auto end = Clock::now() + kForDecisions;
  for (std::uint64_t chunk = std::max<std::uint64_t>(1, s.kept->count); chunk; chunk /= 2)
    for (std::uint64_t at = 0; at < s.kept->count && Clock::now() < end;) {
      const std::uint64_t part = std::min(chunk, s.kept->count - at);
      if (!fails_without(at, part)) at += part;
    }
}

void print_decision(const Decision& d) {
  char program[256] = {}, command[400];
  if (readlink("/proc/self/exe", program, sizeof(program) - 1) < 0) return;
  std::printf("  thread %u, choice %llu: ", d.thread, static_cast<Long>(d.point));
  if (d.choice == Choice::next && d.value == kMostFibers) std::printf("time passes");
  else if (d.choice == Choice::next) std::printf("fiber %u goes on", d.value);
  else if (d.choice == Choice::stale) std::printf("a load misses the newest %u stores, or a store comes before them", d.value);
  else if (d.choice == Choice::wakes) std::printf("wakes for no reason");
  else std::printf("the clock leaps by %u ns", d.value);
  std::printf("; +0x%llx ", static_cast<Long>(d.where));
  std::fflush(stdout);
  std::snprintf(command, sizeof(command),
                "addr2line -ie '%s' 0x%llx | grep -m1 -oE '(runtime|host|tests)/[^/]*:[0-9]*$' || echo", program,
                static_cast<Long>(d.where - 1));
  if (std::system(command)) std::printf("\n");
}

}  // namespace

int shrink(std::uint64_t seed) {
  progress = static_cast<Progress*>(share_memory(sizeof(Progress)));
  for (DecisionList** list : {&s.taken, &s.kept, &s.tried})
    *list = static_cast<DecisionList*>(share_memory(sizeof(DecisionList)));
  s.program = s.schedule = seed;
  if (is_emulated(seed)) request.emulated = request.emulated.value_or(emulated::Shape::any);
  request.all = false;
  scheduler.note_draws(&progress->draws);
  if (!fails(seed, nullptr)) {
    std::printf("seed %llu finds nothing\n", static_cast<Long>(seed));
    return 1;
  }
  plain_text(progress->found, s.wanted);
  s.quiet = true;
  shrink_program();
  const bool found = fails(s.schedule, nullptr);
  const std::uint64_t before = s.taken->count;
  copy(*s.kept, *s.taken);
  if (found && fails(s.schedule, s.kept)) shrink_decisions();
  s.quiet = false;
  std::fprintf(stderr, "\nSHRUNK: program %llu with smaller draws, schedule %llu, %llu of %llu decisions\n",
               static_cast<Long>(s.program), static_cast<Long>(s.schedule), static_cast<Long>(s.kept->count),
               static_cast<Long>(before));
  const bool again = fails(s.schedule, s.kept);
  for (std::uint64_t i = 0; i < s.kept->count; ++i) print_decision(s.kept->at[i]);
  return again ? 0 : 1;
}

}  // namespace flywheel::simulate
