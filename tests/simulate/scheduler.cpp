#include "simulate/scheduler.hpp"

#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>

#include "simulate/leaks.hpp"
#include "simulate/memory.hpp"

namespace flywheel::simulate {

Scheduler scheduler;

namespace {
constexpr std::size_t kStackBytes = 512u << 10;
constexpr std::uint64_t kStepNs = 40;
constexpr const char* kKinds[] = {"load", "store", "update", "fence", "lock", "unlock", "wait",
                                  "notify", "clock", "sleep", "yield", "create", "join", "end"};

/// The program's own thread_local objects.
struct Locals {
  unsigned char* at = nullptr;
  std::size_t bytes = 0;
  std::unique_ptr<unsigned char[]> fresh;
  const unsigned char* image = nullptr;
};
Locals locals;
std::uintptr_t program_base = 0;

int note_program(dl_phdr_info* info, std::size_t, void*) {
  program_base = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_TLS) continue;
    locals.at = static_cast<unsigned char*>(info->dlpi_tls_data);
    locals.bytes = info->dlpi_phdr[i].p_memsz;
    locals.fresh = std::make_unique<unsigned char[]>(locals.bytes);
    std::memcpy(locals.fresh.get(), reinterpret_cast<void*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
                info->dlpi_phdr[i].p_filesz);
  }
  return 1;  // the program comes first; libraries keep theirs
}

struct Handled {  // __cxa_eh_globals of the Itanium C++ ABI
  void* caught;
  unsigned uncaught;
};
Handled* handled() { return reinterpret_cast<Handled*>(abi::__cxa_get_globals()); }

/// Stacks are kept from run to run, each at the same fiber's.
unsigned char* stack_of(std::uint32_t fiber) {
  static unsigned char* stacks[kMostFibers];
  if (!stacks[fiber])
    stacks[fiber] = static_cast<unsigned char*>(
        mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  return stacks[fiber];
}
}  // namespace

void Scheduler::run(const Settings& settings, void* (*main)(void*), void* argument) {
  if (!program_base) dl_iterate_phdr(note_program, nullptr);
  settings_ = settings;
  random_ = {settings.seed * 2 + 1};
  fibers_.clear();
  stopped_.assign(kMostFibers, false);
  now_ = 1'000'000'000;
  steps_ = in_a_row_ = stopped_until_ = 0;
  hash_ = 0xcbf29ce484222325ull;
  next_wake_ = kNever;
  leapt_ns_ = leaps_ = 0;
  memory::begin_run();
  leaks::begin_run();
  choose_style();
  current_ = create(main, argument);
  on_ = true;
  outside_.switch_to(fibers_[0]->place, [] {});
  on_ = false;
  leaks::check();
}

void Scheduler::choose_style() {
  style_ = settings_.schedule;
  if (style_ == Schedule::any) style_ = static_cast<Schedule>(random_.below(static_cast<std::uint32_t>(Schedule::any)));
  constexpr std::uint32_t kOneIn[] = {1, 2, 4, 16, 64};
  switch_one_in_ = kOneIn[random_.below(5)];
  lowest_ = std::uint64_t{1} << 32;
  next_change_ = random_.below(20'000);
  jumps_left_ = 20;
}

std::uint32_t Scheduler::free_number() {
  for (const auto& fiber : fibers_)
    if (fiber->state == FiberState::over && fiber->joined) return fiber->id;
  if (fibers_.size() == kMostFibers) finding("the run has more threads than the simulator has room for");
  fibers_.emplace_back();
  return static_cast<std::uint32_t>(fibers_.size() - 1);
}

std::uint32_t Scheduler::create(void* (*routine)(void*), void* argument) {
  const leaks::OurOwn here;
  const std::uint32_t id = free_number();
  auto fiber = std::make_unique<Fiber>();
  fiber->id = id;
  fiber->state = FiberState::ready;
  fiber->priority = lowest_ + 1 + random_.below(1u << 30);
  fiber->routine = routine;
  fiber->argument = argument;
  fiber->locals = std::make_unique<unsigned char[]>(locals.bytes);
  if (locals.bytes) std::memcpy(fiber->locals.get(), locals.fresh.get(), locals.bytes);
  unsigned char* const stack = stack_of(id);
  memory::forget(stack, kStackBytes);
  fiber->place.start(stack + kStackBytes, kStackBytes, &Scheduler::enter);
  fibers_[id] = std::move(fiber);
  memory::thread_begins(id, id ? current_ : 0);
  return id;
}

void Scheduler::enter() {
  Fiber& fiber = scheduler.self();
  fiber.routine(fiber.argument);
  scheduler.step(Kind::end, nullptr);
  scheduler.self().state = FiberState::over;
  scheduler.wake(&fiber, kMostFibers);
  scheduler.go_on();
  std::abort();
}

void Scheduler::step(Kind kind, const void* where) {
  hash_ = (hash_ ^ (offset_of(where) << 12 ^ current_ << 4 ^ static_cast<std::uint64_t>(kind))) * 0x100000001b3ull;
  shown_[steps_ % kShown] = {current_, kind, where, now_};
  ++of_kind_[static_cast<int>(kind)];
  now_ += kStepNs;
  if (++steps_ > settings_.most_steps) finding("the run takes more steps than it may: nothing gets on");
  if (style_ == Schedule::jump && jumps_left_ && random_.one_in(5000)) {
    --jumps_left_;
    leap(std::uint64_t{1000} << random_.below(16));
  }
  go_on();
}

void Scheduler::yield(const void* where) {
  if (style_ == Schedule::pct) self().priority = --lowest_;
  step(Kind::yield, where);
}

bool Scheduler::wait(const void* key, std::uint64_t limit) {
  Fiber& fiber = self();
  fiber.key = key;
  fiber.wake_at = limit;
  fiber.timed_out = false;
  fiber.state = FiberState::waiting;
  next_wake_ = std::min(next_wake_, limit);
  go_on();
  return fiber.timed_out;
}

void Scheduler::wake(const void* key, std::uint32_t most) {
  for (auto& fiber : fibers_) {
    if (!most) return;
    if (fiber->state != FiberState::waiting || fiber->key != key) continue;
    fiber->state = FiberState::ready;
    --most;
  }
}

void Scheduler::time_passes() {
  next_wake_ = kNever;
  for (auto& fiber : fibers_) {
    if (fiber->state != FiberState::waiting || fiber->wake_at == kNever) continue;
    if (fiber->wake_at > now_) {
      next_wake_ = std::min(next_wake_, fiber->wake_at);
      continue;
    }
    fiber->state = FiberState::ready;
    fiber->timed_out = true;
  }
}

/// Leaves the running fiber for whoever is next, perhaps itself.
void Scheduler::go_on() {
  if (now_ >= next_wake_) time_passes();
  for (;;) {
    std::uint32_t count = 0;
    bool all_over = true;
    for (auto& fiber : fibers_) {
      if (fiber->state == FiberState::ready) ready_[count++] = fiber->id;
      all_over = all_over && fiber->state == FiberState::over;
    }
    if (all_over) {
      testing::StackPlace nowhere;
      nowhere.switch_to(outside_, [] {});
    }
    const std::uint32_t next = count ? pick(count) : kMostFibers;
    if (next != kMostFibers) return switch_to(next);
    if (next_wake_ == kNever) finding("deadlock: every thread waits for another");
    now_ = std::max(now_, next_wake_);
    time_passes();
  }
}

/// One of ready_[0 .. count), or kMostFibers: time has to pass first.
std::uint32_t Scheduler::pick(std::uint32_t count) {
  if (style_ == Schedule::pct) {
    if (steps_ >= next_change_ || in_a_row_ > 20'000) {
      self().priority = --lowest_;
      in_a_row_ = 0;
      if (steps_ >= next_change_) next_change_ = steps_ + 1 + random_.below(20'000);
    }
    return *std::max_element(ready_, ready_ + count,
                             [&](std::uint32_t a, std::uint32_t b) { return fibers_[a]->priority < fibers_[b]->priority; });
  }
  if (style_ == Schedule::stop || style_ == Schedule::most) return pick_moving(count);
  if (self().state == FiberState::ready && switch_one_in_ > 1 && !random_.one_in(switch_one_in_)) return current_;
  return ready_[random_.below(count)];
}

std::uint32_t Scheduler::pick_moving(std::uint32_t count) {
  if (steps_ >= stopped_until_) stop_somebody();
  std::uint32_t moving = 0;
  for (std::uint32_t i = 0; i < count; ++i)
    if (!stopped_[ready_[i]]) ready_[moving++] = ready_[i];
  if (!moving) {
    if (next_wake_ != kNever) return kMostFibers;
    stopped_until_ = 0;  // only they can go on
    return ready_[random_.below(count)];
  }
  if (self().state == FiberState::ready && !stopped_[current_] && !random_.one_in(switch_one_in_)) return current_;
  return ready_[random_.below(moving)];
}

void Scheduler::stop_somebody() {
  const auto fibers = static_cast<std::uint32_t>(fibers_.size());
  const bool most = style_ == Schedule::most;
  std::fill(stopped_.begin(), stopped_.end(), false);
  stopped_until_ = steps_ + 1 + random_.below(random_.one_in(4) ? 40'000 : 4'000);
  if (random_.one_in(4)) return;  // nobody this time
  for (std::uint32_t i = 0; i < fibers; ++i) stopped_[i] = most && i && !random_.one_in(fibers);
  if (most) stopped_[1 + random_.below(fibers)] = false;
  else stopped_[random_.below(fibers)] = true;
}

void Scheduler::switch_to(std::uint32_t next) {
  if (next == current_) {
    ++in_a_row_;
    return;
  }
  in_a_row_ = 0;
  Fiber& from = self();
  Fiber& to = *fibers_[next];
  if (locals.bytes) std::memcpy(from.locals.get(), locals.at, locals.bytes);
  from.caught = handled()->caught;
  from.uncaught = handled()->uncaught;
  current_ = next;
  if (locals.bytes) std::memcpy(locals.at, to.locals.get(), locals.bytes);
  *handled() = {to.caught, to.uncaught};
  from.place.switch_to(to.place, [] {});
}

std::uintptr_t Scheduler::offset_of(const void* where) const {
  return where ? reinterpret_cast<std::uintptr_t>(where) - program_base : 0;
}

bool Scheduler::is_local(const void* at) const {
  return at >= locals.at && at < locals.at + locals.bytes;
}

void Scheduler::show_steps() const {
  const std::uint64_t count = std::min<std::uint64_t>(steps_, 60);
  for (std::uint64_t i = steps_ - count; i < steps_; ++i) {
    const Step& s = shown_[i % kShown];
    std::fprintf(stderr, "  step %llu  fiber %u  %-6s at +0x%llx  %llu ns\n", static_cast<unsigned long long>(i), s.fiber,
                 kKinds[static_cast<int>(s.kind)],
                 static_cast<unsigned long long>(offset_of(s.where)),
                 static_cast<unsigned long long>(s.now));
  }
}

}  // namespace flywheel::simulate
