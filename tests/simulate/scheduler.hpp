// One scheduler for all threads of a program: each is a fiber, and each atomic access, lock, wait, clock reading and sleep is a
// step, after which a seed decides who goes on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "simulate/decisions.hpp"
#include "simulate/locals.hpp"
#include "simulate/reached.hpp"
#include "support/fiber_switch.hpp"

namespace flywheel::simulate {

/// Which fiber goes on after a step. `random`: any. `pct`: by random priorities that change at a few points (Burckhardt et al.,
/// ASPLOS 2010). `stop`: one fiber stands still for long stretches. `most`: all but one or two do. `jump`: random, and the
/// clock leaps.
enum class Schedule { random, pct, stop, most, jump, any };

enum class Kind : std::uint8_t {
  load,
  store,
  update,
  fence,
  lock,
  unlock,
  wait,
  notify,
  clock,
  sleep,
  yield,
  create,
  join,
  end
};

/// The code at this place orders no more than that (a number as in C++: 0 is relaxed).
struct Weakened {
  std::uintptr_t place;
  int order;
};

struct Settings {
  std::uint64_t seed = 0;
  Schedule schedule = Schedule::any;
  bool weak = true;
  bool large = false;  // the program, and time passes slowly, so that threads that sleep leave many steps to others
  std::uint64_t most_steps = 20'000'000;
  std::vector<Weakened> weakened;
  std::vector<std::uintptr_t> narrowed;  // the code at these places has the next narrower scope
};

/// What a program drew at random, and what it shall have instead. Lies in memory that processes share.
struct Draws {
  static constexpr std::uint32_t kMost = 256;
  std::uint32_t count = 0;
  std::uint32_t drawn[kMost] = {};
  std::uint32_t edits = 0;  // the first so many draws are those of `wanted`
  std::uint32_t wanted[kMost] = {};

  std::uint32_t value(std::uint32_t natural, std::uint32_t n) {
    if (count == kMost) return natural;
    if (count < edits && wanted[count] < n) natural = wanted[count];
    return drawn[count++] = natural;
  }
};

/// Inlined: the scheduler's own draws are no access of the program's, which has the same functions.
struct Random {
  std::uint64_t state;
  Draws* draws = nullptr;
  bool small = false;                                   // of sizes, the smallest of a few
  [[gnu::always_inline]] inline std::uint64_t next() {  // SplitMix64 (Steele, Lea, Flood, OOPSLA 2014)
    std::uint64_t x = state += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  }
  /// A size.
  [[gnu::always_inline]] inline std::uint32_t below(std::uint32_t n) {
    constexpr std::uint32_t kFew = 4;
    std::uint32_t natural = uniform(n);
    if (small && n > kFew) natural = std::min(natural, std::min(uniform(n), uniform(n)));
    return draws ? draws->value(natural, n) : natural;
  }
  /// One of so many kinds, each as likely.
  [[gnu::always_inline]] inline std::uint32_t one_of(std::uint32_t n) {
    const std::uint32_t natural = uniform(n);
    return draws ? draws->value(natural, n) : natural;
  }
  [[gnu::always_inline]] inline bool one_in(std::uint32_t n) { return one_of(n) == 0; }

 private:
  [[gnu::always_inline]] inline std::uint32_t uniform(std::uint32_t n) {
    return static_cast<std::uint32_t>((next() >> 32) * n >> 32);
  }
};

inline constexpr std::uint32_t kMostFibers = 48;
inline constexpr std::uint64_t kNever = ~std::uint64_t{0};

enum class FiberState : std::uint8_t { ready, waiting, over };

/// A thread of the program, or one of an emulated block's.
struct Part {
  int ignored = 0;         // not 0: its plain accesses are the emulator's own
  bool of_block = false;   // its stack is its own
  bool any_scope = false;  // its atomic accesses go with those of any scope
};

/// A thread of the program.
struct Fiber {
  std::uint32_t id = 0;
  FiberState state = FiberState::over;
  const void* key = nullptr;       // what it waits for; null: only time
  std::uint64_t wake_at = kNever;  // waiting: goes on then
  bool timed_out = false;
  bool joined = false;         // or detached: once it is over, its number may be another's
  std::uint64_t priority = 0;  // schedule `pct`
  std::uint32_t serial = 0;    // threads created before
  std::uint64_t point = 0;     // of its decisions, see Decision
  std::uint64_t stayed = 0;    // so often it went on itself
  std::uintptr_t place = 0;    // of its last step, in the program's file
  bool yields = false;
  void* (*routine)(void*) = nullptr;
  void* argument = nullptr;
  Image locals;               // what its thread_local objects hold while another runs
  std::uint8_t device = 0;    // of an emulated block; 0: it is none
  std::vector<Piece> shared;  // its shared memory
  Image shared_image;         // what that holds while another block's is there
  Part whole;
  Part* part = nullptr;    // that runs, or ran last: an emulated block has many
  void* caught = nullptr;  // exceptions it handles
  unsigned uncaught = 0;
  testing::StackPlace stack;
};

class Scheduler {
 public:
  /// Runs main(argument) as fiber 0 until it and all threads have ended.
  void run(const Settings& settings, void* (*main)(void*), void* argument);
  bool on() const { return on_; }
  Fiber& self() { return *fibers_[current_]; }
  std::uint32_t current() const { return current_; }
  /// No thread joins that fiber any more.
  void let_go(std::uint32_t fiber) { fibers_[fiber]->joined = true; }
  std::uint32_t create(void* (*routine)(void*), void* argument);
  const void* fiber(std::uint32_t id) const { return fibers_[id].get(); }
  bool is_over(std::uint32_t fiber) const { return fibers_[fiber]->state == FiberState::over; }

  /// The running fiber is about to do this, called from `where`.
  void step(Kind kind, const void* where);
  /// The running fiber waits until wake(key), or until `limit`; true if that came first.
  bool wait(const void* key, std::uint64_t limit);
  void wake(const void* key, std::uint32_t most);
  /// The running fiber lets others go first.
  void yield(const void* where);

  /// The clock leaps by so much, and nobody takes a step.
  void leap(std::uint64_t ns) { now_ += ns, leapt_ns_ += ns, ++leaps_; }
  std::uint64_t leapt_ns() const { return leapt_ns_; }
  std::uint32_t leaps() const { return leaps_; }

  std::uint64_t now() const { return now_; }
  std::uint64_t steps() const { return steps_; }
  std::uint64_t hash() const { return hash_; }
  const Settings& settings() const { return settings_; }
  Schedule style() const { return style_; }
  Random& random() { return random_; }
  Decisions& decisions() { return decisions_; }
  /// What the program of the next run draws goes there, and its edits come from there; null: nowhere.
  void note_draws(Draws* draws) { draws_ = draws; }
  Draws* draws() const { return draws_; }
  /// A choice of the running fiber, see Decision.
  template <class Draw>
  std::uint32_t decide(Choice choice, std::uint32_t obvious, Draw&& draw) {
    const Fiber& fiber = self();
    return decisions_.decide(choice, fiber.serial, fiber.point, fiber.place, obvious, draw);
  }
  /// From the next run on what is reached is noted there.
  void note_reached(Reached* reached) { reached_ = reached; }
  const std::uint64_t* of_kind() const { return of_kind_; }
  /// Where in the program's file this code is.
  std::uintptr_t offset_of(const void* where) const {
    return where ? reinterpret_cast<std::uintptr_t>(where) - locals_.base() : 0;
  }
  /// Whether a thread_local object of the program is there: all threads have theirs at one address, in turn.
  bool is_local(const void* at) const { return locals_.holds(at); }
  Locals& locals() { return locals_; }
  /// The running fiber is a block; self().shared is its shared memory.
  void block_begins(const void* device);
  void block_ends();
  /// Which part of the running fiber runs.
  Part& part() { return *part_; }
  void become(Part& part) { part_ = &part; }
  /// The last steps, to stderr.
  void show_steps() const;

 private:
  static void enter();
  std::uint32_t free_number();
  void choose_style();
  void go_on();
  bool stays();
  void switch_to(std::uint32_t next);
  void note_place(Fiber& fiber, std::uintptr_t place);
  void own_shared(Fiber& to);
  void time_passes();
  std::uint32_t choose(std::uint32_t count);
  std::uint32_t obvious_next(std::uint32_t count) const;
  bool can_go_on(std::uint32_t next) const;
  std::uint32_t pick(std::uint32_t count);
  std::uint32_t pick_moving(std::uint32_t count);
  void stop_somebody();

  struct Step {
    std::uint32_t fiber;
    Kind kind;
    const void* where;
    std::uint64_t now;
  };
  static constexpr std::uint32_t kShown = 64;

  Settings settings_;
  Schedule style_ = Schedule::random;
  Random random_{0};
  std::vector<std::unique_ptr<Fiber>> fibers_;
  Locals locals_;
  Fiber* shared_owner_ = nullptr;  // whose shared memory is there
  std::vector<const void*> devices_;
  Part* part_ = nullptr;
  testing::StackPlace outside_;
  std::uint32_t current_ = 0, switch_one_in_ = 1, created_ = 0;
  std::uint32_t long_ = 0;  // in steps: for how long the schedule leaves a thread alone, or goes on with it, at most
  bool on_ = false;
  bool outcome_ = false;  // stays() has drawn whether the running fiber goes on
  std::uint64_t now_ = 0, steps_ = 0, hash_ = 0, next_wake_ = kNever, in_a_row_ = 0;
  std::uint64_t lowest_ = 0, next_change_ = kNever;  // schedule `pct`
  std::uint64_t stopped_until_ = 0;                  // schedules `stop` and `most`
  std::vector<bool> stopped_;
  std::uint32_t jumps_left_ = 0, leaps_ = 0;
  std::uint64_t leapt_ns_ = 0;
  std::uint32_t ready_[kMostFibers] = {};
  std::uint64_t of_kind_[static_cast<int>(Kind::end) + 1] = {};
  Step shown_[kShown] = {};
  Decisions decisions_;
  Draws* draws_ = nullptr;
  Reached* reached_ = nullptr;
  std::uint64_t state_ = 0;  // the sum of what Reached::mix() makes of each fiber's place
};

extern Scheduler scheduler;

/// Ends the process: the run did what it must not do.
[[noreturn]] void finding(const char* what);

}  // namespace flywheel::simulate
