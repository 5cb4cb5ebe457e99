#include "simulate/scheduler.hpp"

#include <sys/mman.h>

#include <cxxabi.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "simulate/clocks.hpp"
#include "simulate/leaks.hpp"
#include "simulate/memory.hpp"

namespace flywheel::simulate {

Scheduler scheduler;

namespace {
constexpr std::size_t kStackBytes = 512u << 10;
constexpr std::uint64_t kStepNs = 40, kStepNsOfSmall = 1000;
constexpr const char* kKinds[] = {"load",   "store", "update", "fence", "lock",   "unlock", "wait",
                                  "notify", "clock", "sleep",  "yield", "create", "join",   "end"};

struct Handled {  // __cxa_eh_globals of the Itanium C++ ABI
  void* caught;
  unsigned uncaught;
};
Handled* handled() {
  static Handled* const all = reinterpret_cast<Handled*>(abi::__cxa_get_globals());  // of the one thread of the system
  return all;
}

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
  locals_.find();
  settings_ = settings;
  random_ = {settings.seed * 2 + 1};
  fibers_.clear();
  shared_owner_ = nullptr;
  devices_.clear();
  stopped_.assign(kMostFibers + 1, false);
  now_ = 1'000'000'000;
  steps_ = in_a_row_ = stopped_until_ = 0;
  hash_ = 0xcbf29ce484222325ull;
  next_wake_ = kNever;
  created_ = 0;
  state_ = 0;
  decisions_.begin_run();
  leapt_ns_ = leaps_ = 0;
  memory::begin_run();
  leaks::begin_run();
  choose_style();
  current_ = create(main, argument);
  part_ = &fibers_[0]->whole;
  on_ = true;
  outside_.switch_to(fibers_[0]->stack, [] {});
  on_ = false;
  leaks::check();
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
  fiber->serial = created_++;
  fiber->state = FiberState::ready;
  fiber->priority = lowest_ + 1 + random_.below(1u << 30);
  fiber->routine = routine;
  fiber->argument = argument;
  fiber->locals = locals_.fresh();
  fiber->part = &fiber->whole;
  unsigned char* const stack = stack_of(id);
  memory::forget(stack, kStackBytes);
  fiber->stack.start(stack + kStackBytes, kStackBytes, &Scheduler::enter);
  fibers_[id] = std::move(fiber);
  widen_clocks(id + 1);
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
  note_place(self(), offset_of(where));
  hash_ = (hash_ ^ (offset_of(where) << 12 ^ current_ << 4 ^ static_cast<std::uint64_t>(kind))) * 0x100000001b3ull;
  shown_[steps_ % kShown] = {current_, kind, where, now_};
  ++of_kind_[static_cast<int>(kind)];
  now_ += settings_.large ? kStepNs : kStepNsOfSmall;
  if (++steps_ > settings_.most_steps) finding("the run takes more steps than it may: nothing gets on");
  const std::uint32_t ns = decide(Choice::leap, 0, [&]() -> std::uint32_t {
    if (style_ != Schedule::jump || !jumps_left_ || !random_.one_in(long_ / 8)) return 0;
    --jumps_left_;
    return 1000u << random_.below(16);
  });
  if (ns) leap(ns);
  self().yields = kind == Kind::yield;
  go_on();
}

void Scheduler::note_place(Fiber& fiber, std::uintptr_t place) {
  if (reached_) {
    state_ += Reached::mix(place) - Reached::mix(fiber.place);
    reached_->note_state(state_);
  }
  fiber.place = place;
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

/// Leaves the running fiber for the next, perhaps itself.
void Scheduler::go_on() {
  if (now_ >= next_wake_) time_passes();
  if (stays()) {
    ++in_a_row_;
    return;
  }
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
    const std::uint32_t next = count ? choose(count) : kMostFibers;
    if (next != kMostFibers) return switch_to(next);
    if (next_wake_ == kNever) finding("deadlock: every thread waits for another");
    now_ = std::max(now_, next_wake_);
    time_passes();
  }
}

void Scheduler::switch_to(std::uint32_t next) {
  if (next == current_) {
    ++in_a_row_;
    return;
  }
  in_a_row_ = 0;
  Fiber& from = self();
  Fiber& to = *fibers_[next];
  if (reached_) reached_->note_switch(from.place, to.place);
  locals_.save(from.locals.get());
  from.part = part_;
  from.caught = handled()->caught;
  from.uncaught = handled()->uncaught;
  current_ = next;
  locals_.load(to.locals.get());
  if (!to.shared.empty() && shared_owner_ != &to) own_shared(to);
  part_ = to.part;
  *handled() = {to.caught, to.uncaught};
  from.stack.switch_to(to.stack, [] {});
}

/// What block `to` has in shared memory takes the place of what another has there.
void Scheduler::own_shared(Fiber& to) {
  const leaks::OurOwn here;
  if (shared_owner_) save(shared_owner_->shared, shared_owner_->shared_image.get());
  if (to.shared_image) load(to.shared, to.shared_image.get());
  else to.shared_image = std::make_unique_for_overwrite<unsigned char[]>(size_of(to.shared));
  shared_owner_ = &to;
}

void Scheduler::block_begins(const void* device) {
  const auto known = std::find(devices_.begin(), devices_.end(), device);
  self().device = static_cast<std::uint8_t>(known - devices_.begin() + 1);
  const leaks::OurOwn here;
  if (known == devices_.end()) devices_.push_back(device);
  own_shared(self());
}

void Scheduler::block_ends() {
  self().device = 0;
  self().shared.clear();
  shared_owner_ = nullptr;
}

void Scheduler::show_steps() const {
  const std::uint64_t count = std::min<std::uint64_t>(steps_, 60);
  for (std::uint64_t i = steps_ - count; i < steps_; ++i) {
    const Step& s = shown_[i % kShown];
    std::fprintf(stderr, "  step %llu  fiber %u  %-6s at +0x%llx  %llu ns\n", static_cast<unsigned long long>(i), s.fiber,
                 kKinds[static_cast<int>(s.kind)], static_cast<unsigned long long>(offset_of(s.where)),
                 static_cast<unsigned long long>(s.now));
  }
}

}  // namespace flywheel::simulate
