#include "journey/record.hpp"

#include <algorithm>
#include <atomic>

namespace flywheel::journey {

namespace {

constexpr std::size_t kMost = 4096;

enum class Mode { off, idle, journey };

/// Relaxed wherever it is used: a thread may be a few functions late, and lists are read when their threads rest.
std::atomic<Mode> mode{Mode::off};

struct List {
  const void* functions[kMost];
  std::size_t count = 0;

  bool has(const void* function) const { return std::find(functions, functions + count, function) != functions + count; }
  void add(const void* function) {
    if (count < kMost && !has(function)) functions[count++] = function;
  }
};

List lists[kParts];
const void* first_functions[kParts];

/// Plain data without a destructor: functions are entered until the thread is gone.
struct Thread {
  const void* stack[kMost];
  std::size_t depth;
  List idle;
  Part part;
  bool has_part;
};
thread_local constinit Thread self{};

void take_what_begins_with(const void* function) {
  for (std::size_t part = 0; part < kParts; ++part)
    if (first_functions[part] == function) take(static_cast<Part>(part));
}

void enter(const void* function) {
  if (!self.has_part) take_what_begins_with(function);
  if (self.depth < kMost) self.stack[self.depth] = function;
  ++self.depth;
  const Mode now = mode.load(std::memory_order_relaxed);
  if (now == Mode::off) return;
  if (now == Mode::idle) return self.idle.add(function);
  if (!self.has_part || self.idle.has(function)) return;
  List& list = lists[static_cast<std::size_t>(self.part)];
  for (std::size_t i = 0; i < std::min(self.depth, kMost); ++i) list.add(self.stack[i]);
}

}  // namespace

void watch_idle() { mode.store(Mode::idle, std::memory_order_relaxed); }
void begin() {
  for (List& list : lists) list.count = 0;
  mode.store(Mode::journey, std::memory_order_relaxed);
}
void end() { mode.store(Mode::off, std::memory_order_relaxed); }
void take(Part part) {
  self.part = part;
  self.has_part = true;
}
void begins(Part part, const void* function) { first_functions[static_cast<std::size_t>(part)] = function; }
Entries entries(Part part) {
  const List& list = lists[static_cast<std::size_t>(part)];
  return {list.functions, list.count};
}

}  // namespace flywheel::journey

extern "C" {
void __cyg_profile_func_enter(void* function, void*) { flywheel::journey::enter(function); }
void __cyg_profile_func_exit(void*, void*) { --flywheel::journey::self.depth; }
}
