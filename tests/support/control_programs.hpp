// Random programs with choices, joins, loops, spawned tasks and continuations, and an interpreter that says what they leave.
#pragma once

#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include "support/atomics.hpp"
#include "support/seed.hpp"

namespace flywheel::testing {

/// What one program keeps of its steps, by number. Plain memory, but for `extra` and `sprouts`: dependencies alone order it.
struct StepWords {
  std::uint64_t* value;
  std::uint64_t* extra;    // the sum over what its spawned tasks brought
  std::uint32_t* count;    // executions
  std::uint32_t* turns;    // of the loop that it ends, since that last ended
  std::uint32_t* sprouts;  // spawned tasks that have run
};

/// What a step does besides hashing what its predecessors left into its value.
struct StepSpec {
  std::uint32_t id;
  std::uint32_t cases;    // it chooses one of so many, or two, or none; 0: it does not choose
  std::uint32_t turns;    // it ends a loop, and begins it again at most so often; 0: it does not
  std::uint32_t sprouts;  // tasks that it spawns
  std::uint32_t joins;    // 1: a continuation adds up what they bring, and chooses
};

/// The cases that a step chooses, a bit each.
FLYWHEEL_TASK constexpr std::uint32_t chosen_by(const StepSpec& step, std::uint64_t value) {
  if (!step.cases) return 0;
  const std::uint32_t one = static_cast<std::uint32_t>(value >> 8) % (step.cases + 1);  // the last: none
  const std::uint32_t two = (value >> 40) % 4 == 0 ? 1u << (value >> 44) % step.cases : 0;
  return (one < step.cases ? 1u << one : 0) | two;
}
FLYWHEEL_TASK constexpr bool goes_again(const StepSpec& step, std::uint64_t value, std::uint32_t turn) {
  return step.turns && turn < step.turns && (value >> 20) % 4 != 0;
}
FLYWHEEL_TASK constexpr std::uint64_t inherit(std::uint64_t value, std::uint64_t from, std::uint64_t extra) {
  return mix(value, from + 3 * extra);
}
FLYWHEEL_TASK constexpr std::uint64_t joined(std::uint64_t value, std::uint64_t extra) { return mix(value, extra ^ 0x77); }
FLYWHEEL_TASK constexpr std::uint64_t brought(std::uint64_t value, std::uint32_t j) { return mix(value, 1000 + j) >> 8; }
FLYWHEEL_TASK constexpr std::uint32_t children_of(std::uint64_t worth) { return static_cast<std::uint32_t>(worth % 3); }

/// Adds to `extra` of its step; the first ones spawn more.
struct StepSprout {
  StepWords words;
  std::uint64_t worth;
  std::uint32_t id, depth;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (!block.leader()) return;
    work();
    for (std::uint32_t j = 0; depth && j < children_of(worth); ++j)
      if (const StepSprout child = child_of(j); !block.spawn(child)) child.work();
  }
  FLYWHEEL_TASK StepSprout child_of(std::uint32_t j) const { return {words, mix(worth, j) >> 8, id, depth - 1}; }
  FLYWHEEL_TASK void work() const {
    add_to(words.extra[id], worth);
    add_to(words.sprouts[id], 1u);
  }
};

/// The end of a step with a continuation.
struct StepJoin {
  StepWords words;
  StepSpec step;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) decide(block);
  }
  template <class Block>
  FLYWHEEL_TASK void decide(Block& block) const {
    std::uint64_t& value = words.value[step.id];
    if (step.joins) value = joined(value, words.extra[step.id]);
    const std::uint32_t chosen = chosen_by(step, value);
    for (std::uint32_t n = 0; n < step.cases; ++n)
      if (chosen >> n & 1) block.choose(n);
    if (!step.turns) return;
    std::uint32_t& turn = words.turns[step.id];
    const bool again = goes_again(step, value, turn);
    turn = again ? turn + 1 : 0;
    if (again) block.again();
  }
};

struct Step {
  StepWords words;
  const std::uint32_t* before;
  StepSpec step;
  std::uint32_t before_count;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (!block.leader()) return;
    std::uint64_t value = mix(words.value[step.id], step.id);
    for (std::uint32_t i = 0; i < before_count; ++i) value = inherit(value, words.value[before[i]], words.extra[before[i]]);
    words.value[step.id] = value;
    ++words.count[step.id];
    const StepJoin join{words, step};
    const bool later = step.joins && block.then(join);
    if (step.joins && !later) return alone(block, value);  // the pool is full
    for (std::uint32_t j = 0; j < step.sprouts; ++j) plant(block, {words, brought(value, j), step.id, 1});
    if (!later) join.decide(block);
  }

 private:
  template <class Block>
  FLYWHEEL_TASK void plant(Block& block, const StepSprout& sprout) const {
    if (block.spawn(sprout)) return;
    work_all(sprout);
  }
  template <class Block>
  FLYWHEEL_TASK void alone(Block& block, std::uint64_t value) const {
    for (std::uint32_t j = 0; j < step.sprouts; ++j) work_all({words, brought(value, j), step.id, 1});
    StepJoin{words, step}.decide(block);
  }
  FLYWHEEL_TASK static void work_all(const StepSprout& sprout) {
    sprout.work();
    for (std::uint32_t j = 0; j < children_of(sprout.worth); ++j) sprout.child_of(j).work();
  }
};

/// What a step waits for.
struct StepWait {
  std::uint32_t id;
  std::uint32_t number;  // of a case, or kNoCase
  static constexpr std::uint32_t kNoCase = ~0u;
};
struct StepNode {
  StepSpec step;
  std::vector<StepWait> waits;
  bool any = false;
  std::uint32_t first = 0;  // with `step.turns`: of the loop
};

/// A random program: a sequence of steps, forks, choices and loops, each of which has sequences in it.
class ControlProgram {
 public:
  ControlProgram(std::uint64_t seed, std::uint32_t most) : random_(seed), most_(most) {
    Waits start;
    sequence(start, 3);
  }
  const std::vector<StepNode>& steps() const { return steps_; }

 private:
  struct Waits {
    std::vector<StepWait> list;
    bool any = false;
  };

  void sequence(Waits& at, int depth) {
    const std::uint32_t parts = pick(random_, 1, 4);
    for (std::uint32_t p = 0; p < parts && steps_.size() < most_; ++p) part(at, depth);
    if (at.list.size() != 1) single(at);
  }
  void part(Waits& at, int depth) {
    switch (depth ? pick(random_, 0, 5) : 0) {
      case 1:
        return fork(at);
      case 2:
      case 3:
        return choice(at, depth);
      case 4:
        return loop(at, depth);
      default:
        return single(at);
    }
  }
  std::uint32_t add(const Waits& at, StepSpec step = {}) {
    step.id = static_cast<std::uint32_t>(steps_.size());
    if (pick(random_, 0, 3) == 0) step.sprouts = pick(random_, 1, 3);
    step.joins = pick(random_, 0, 2) == 0;
    StepNode node{step, at.list, at.any};
    steps_.push_back(node);
    return step.id;
  }
  void single(Waits& at) { at = {{{add(at), StepWait::kNoCase}}}; }
  void fork(Waits& at) {
    Waits after;
    for (std::uint32_t i = pick(random_, 2, 5); i-- > 0;) after.list.push_back({add(at), StepWait::kNoCase});
    at = after;
  }
  void choice(Waits& at, int depth) {
    StepSpec step{};
    step.cases = pick(random_, 1, 4);
    const std::uint32_t chooser = add(at, step);
    Waits after;
    after.any = pick(random_, 0, 3) != 0;
    if (pick(random_, 0, 1)) after.list.push_back({chooser, StepWait::kNoCase});
    for (std::uint32_t n = 0; n < step.cases; ++n) {
      if (pick(random_, 0, 4) == 0) continue;
      Waits branch{{{chooser, n}}};
      if (pick(random_, 0, 4) == 0 && n) branch.list.push_back({chooser, n - 1});
      sequence(branch, depth - 1);
      after.list.push_back(branch.list[0]);
    }
    if (after.list.empty()) after.list.push_back({chooser, StepWait::kNoCase});
    at = after;
  }
  void loop(Waits& at, int depth) {
    single(at);
    const std::uint32_t first = at.list[0].id;
    if (pick(random_, 0, 2)) sequence(at, depth - 1);
    StepSpec step{};
    step.turns = pick(random_, 1, 3);
    const std::uint32_t last = add(at, step);
    steps_[last].first = pick(random_, 0, 3) ? first : last;
    at = {{{last, StepWait::kNoCase}}};
  }

  Random random_;
  std::uint32_t most_;
  std::vector<StepNode> steps_;
};

/// What the steps leave behind: the words of StepWords, and which ran last.
struct StepAccount {
  std::vector<std::uint64_t> value, extra;
  std::vector<std::uint32_t> count, turns, sprouts;
  std::vector<bool> ran;
  explicit StepAccount(std::size_t n) : value(n), extra(n), count(n), turns(n), sprouts(n), ran(n) {}
};

/// Runs a program once, a step at a time: in the order of their numbers, and back at the end of a loop.
class StepInterpreter {
 public:
  StepInterpreter(const ControlProgram& program, StepAccount& account) : steps_(program.steps()), now_(account) {}
  void operator()() {
    for (std::uint32_t id = 0; id < steps_.size(); ++id)
      while (run(id)) id = steps_[id].first;
  }

 private:
  /// True if a loop begins again.
  bool run(std::uint32_t id) {
    const StepNode& node = steps_[id];
    now_.ran[id] = is_due(node);
    if (!now_.ran[id]) return false;
    std::uint64_t value = mix(now_.value[id], id);
    for (const std::uint32_t before : predecessors(node)) value = inherit(value, now_.value[before], now_.extra[before]);
    for (std::uint32_t j = 0; j < node.step.sprouts; ++j) grow(id, brought(value, j), 1);
    if (node.step.joins) value = joined(value, now_.extra[id]);
    now_.value[id] = value;
    ++now_.count[id];
    if (!node.step.turns) return false;
    const bool again = goes_again(node.step, value, now_.turns[id]);
    now_.turns[id] = again ? now_.turns[id] + 1 : 0;
    return again;
  }
  void grow(std::uint32_t id, std::uint64_t worth, std::uint32_t depth) {
    now_.extra[id] += worth;
    ++now_.sprouts[id];
    for (std::uint32_t j = 0; depth && j < children_of(worth); ++j) grow(id, mix(worth, j) >> 8, depth - 1);
  }
  bool is_due(const StepNode& node) const {
    bool all = true, any = node.waits.empty();
    for (const std::uint32_t before : predecessors(node)) {
      const bool lets = now_.ran[before] && is_chosen(node, before);
      all &= lets;
      any |= lets;
    }
    return node.any ? any : all;
  }
  bool is_chosen(const StepNode& node, std::uint32_t before) const {
    std::uint32_t cases = 0;
    for (const StepWait& wait : node.waits)
      if (wait.id == before && wait.number != StepWait::kNoCase) cases |= 1u << wait.number;
    return !cases || chosen_by(steps_[before].step, now_.value[before]) & cases;
  }

 public:
  /// Each once, in the order in which they are named.
  static std::vector<std::uint32_t> predecessors(const StepNode& node) {
    std::vector<std::uint32_t> all;
    for (const StepWait& wait : node.waits)
      if (std::find(all.begin(), all.end(), wait.id) == all.end()) all.push_back(wait.id);
    return all;
  }

 private:
  const std::vector<StepNode>& steps_;
  StepAccount& now_;
};

/// A program on a runtime, with its memory.
class LoadedProgram {
 public:
  LoadedProgram(Runtime& runtime, const ControlProgram& program)
      : program_(program),
        want_(size()),
        value_(runtime.allocate<std::uint64_t>(size())),
        extra_(runtime.allocate<std::uint64_t>(size())),
        count_(runtime.allocate<std::uint32_t>(size())),
        turns_(runtime.allocate<std::uint32_t>(size())),
        sprouts_(runtime.allocate<std::uint32_t>(size())),
        before_(runtime.allocate<std::uint32_t>(size_of_lists())) {
    Graph graph;
    std::vector<std::uint32_t> lists;
    std::vector<TaskRef<>> tasks;
    for (const StepNode& node : program_.steps()) {
      const auto before = StepInterpreter::predecessors(node);
      After waits;
      waits.any = node.any;
      for (const StepWait& wait : node.waits) {
        if (wait.number == StepWait::kNoCase) waits.add(tasks[wait.id]);
        else waits.add(when(tasks[wait.id], wait.number));
      }
      tasks.push_back(
          graph.add(Step{words(), before_.data() + lists.size(), node.step, static_cast<std::uint32_t>(before.size())}, waits));
      lists.insert(lists.end(), before.begin(), before.end());
      if (node.step.turns) graph.loop(tasks[node.first], tasks.back());
    }
    before_.write(lists);
    executable_ = runtime.load(graph);
  }

  Run submit(Runtime& runtime, std::uint32_t passes) {
    for (std::uint32_t pass = 0; pass < passes; ++pass) StepInterpreter(program_, want_)();
    return runtime.submit(executable_, repeat(passes));
  }
  /// Empty, or what differs from what the interpreter says.
  std::string check() const {
    std::string wrong;
    const auto compare = [&](const char* what, const auto& want, const auto& buffer) {
      auto got = want;
      buffer.read(got.data(), got.size());
      for (std::size_t id = 0; id < want.size(); ++id)
        if (want[id] != got[id] && wrong.size() < 500)
          wrong += "step " + std::to_string(id) + ": " + what + " " + std::to_string(got[id]) + " for " +
                   std::to_string(want[id]) + "\n";
    };
    compare("executions", want_.count, count_);
    compare("spawned", want_.sprouts, sprouts_);
    compare("value", want_.value, value_);
    compare("extra", want_.extra, extra_);
    return wrong;
  }

 private:
  std::size_t size() const { return program_.steps().size(); }
  std::size_t size_of_lists() const {
    std::size_t all = 1;
    for (const StepNode& node : program_.steps()) all += node.waits.size();
    return all;
  }
  StepWords words() const { return {value_.data(), extra_.data(), count_.data(), turns_.data(), sprouts_.data()}; }

  ControlProgram program_;
  StepAccount want_;
  Buffer<std::uint64_t> value_, extra_;
  Buffer<std::uint32_t> count_, turns_, sprouts_, before_;
  Executable executable_;
};

/// `count` programs of at most some `most` steps, each submitted three times, several of them in flight together.
inline void check_programs(Runtime& runtime, std::uint64_t seed, std::uint32_t count, std::uint32_t most) {
  constexpr std::uint32_t kTogether = 6;
  Random random(seed);
  for (std::uint32_t begin = 0; begin < count; begin += kTogether) {
    std::vector<std::unique_ptr<LoadedProgram>> programs;
    for (std::uint32_t i = begin; i < std::min(count, begin + kTogether); ++i)
      programs.push_back(std::make_unique<LoadedProgram>(runtime, ControlProgram(random(), pick(random, 1, most))));
    for (int round = 0; round < 3; ++round) {
      std::vector<Run> runs;
      for (const auto& program : programs) runs.push_back(program->submit(runtime, pick(random, 1, 3)));
      for (Run& run : runs) run.wait();
    }
    for (std::size_t i = 0; i < programs.size(); ++i) {
      CAPTURE(begin + i);
      CHECK(programs[i]->check() == "");
    }
  }
}

/// fib(n) by continuations: each call leaves its result in a cell of its own, and its continuation adds up those of two calls.
struct FibSum {
  std::uint64_t* cells;
  std::uint64_t cell;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) cells[cell] = cells[2 * cell] + cells[2 * cell + 1];
  }
};
struct FibCall {
  std::uint64_t* cells;
  std::uint64_t cell;  // 1: the root; those of the calls that cell c makes are 2c and 2c + 1
  std::uint32_t n;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (block.leader()) call(block);
  }

 private:
  template <class Block>
  FLYWHEEL_TASK void call(Block& block) const {
    if (n < 2 || !block.then(FibSum{cells, cell})) {
      cells[cell] = alone();
      return;
    }
    for (std::uint32_t i = 0; i < 2; ++i)
      if (const FibCall below{cells, 2 * cell + i, n - 1 - i}; !block.spawn(below)) cells[2 * cell + i] = below.alone();
  }
  FLYWHEEL_TASK std::uint64_t alone() const {
    std::uint64_t a = 0, b = 1;
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint64_t c = a + b;
      a = b;
      b = c;
    }
    return a;
  }
};

/// Whether fib(0) to fib(most) come out right, and a task behind the call sees the result. 2^most cells.
inline void check_fib(Runtime& runtime, std::uint32_t most) {
  Buffer<std::uint64_t> cells = runtime.allocate<std::uint64_t>(std::size_t{1} << (most + 1));
  std::uint64_t a = 0, b = 1;
  for (std::uint32_t n = 0; n <= most; ++n) {
    Graph graph;
    const TaskRef<> root = graph.add(FibCall{cells.data(), 1, n});
    graph.add(FibSum{cells.data(), 0}, after(root));  // cell 0: what was in cell 0 and in cell 1
    cells.write(std::vector<std::uint64_t>{0, 0});
    runtime.submit(runtime.load(graph)).wait();
    std::uint64_t got[2];
    cells.read(got, 2);
    CAPTURE(n);
    CHECK(got[1] == a);
    CHECK(got[0] == a);
    a = std::exchange(b, a + b);
  }
}

}  // namespace flywheel::testing
