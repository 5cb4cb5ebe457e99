// Random programs with choices, joins, loops, spawned tasks and continuations, and an interpreter that says what they leave.
#pragma once

#include <flywheel/flywheel.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "support/control_steps.hpp"

namespace flywheel::testing {

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

/// A random program: strands, each a sequence of steps, forks, choices and loops, which have sequences in them.
class ControlProgram {
 public:
  /// Draws a number in [low, high].
  using Pick = std::function<std::uint32_t(std::uint32_t low, std::uint32_t high)>;

  /// Of at most some `most` steps.
  ControlProgram(Pick pick, std::uint32_t most) : pick_(std::move(pick)), most_(most) {
    const std::uint32_t kind = pick_(0, 3), strands = kind < 2 ? 1 : pick_(2, 8);
    for (std::uint32_t s = 0; s < strands; ++s) {
      Waits start;
      if (kind == 3) single(start);
      else sequence(start, kind < 2 ? 3 : 1);
    }
    pick_ = {};  // what it refers to may end before the program
  }
  const std::vector<StepNode>& steps() const { return steps_; }

 private:
  struct Waits {
    std::vector<StepWait> list;
    bool any = false;
  };

  void sequence(Waits& at, int depth) {
    const std::uint32_t parts = pick_(1, 4);
    for (std::uint32_t p = 0; p < parts && steps_.size() < most_; ++p) part(at, depth);
    if (at.list.size() != 1) single(at);
  }
  void part(Waits& at, int depth) {
    switch (depth ? pick_(0, 5) : 0) {
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
    if (pick_(0, 3) == 0) step.sprouts = pick_(1, 3);
    step.joins = pick_(0, 2) == 0;
    StepNode node{step, at.list, at.any};
    steps_.push_back(node);
    return step.id;
  }
  void single(Waits& at) { at = {{{add(at), StepWait::kNoCase}}}; }
  void fork(Waits& at) {
    Waits after;
    for (std::uint32_t i = pick_(2, 5); i-- > 0;) after.list.push_back({add(at), StepWait::kNoCase});
    at = after;
  }
  void choice(Waits& at, int depth) {
    StepSpec step{};
    step.cases = pick_(1, 4);
    const std::uint32_t chooser = add(at, step);
    Waits after;
    after.any = pick_(0, 3) != 0;
    if (pick_(0, 1)) after.list.push_back({chooser, StepWait::kNoCase});
    for (std::uint32_t n = 0; n < step.cases; ++n) {
      if (pick_(0, 4) == 0) continue;
      Waits branch{{{chooser, n}}};
      if (pick_(0, 4) == 0 && n) branch.list.push_back({chooser, n - 1});
      sequence(branch, depth - 1);
      after.list.push_back(branch.list[0]);
    }
    if (after.list.empty()) after.list.push_back({chooser, StepWait::kNoCase});
    at = after;
  }
  void loop(Waits& at, int depth) {
    single(at);
    const std::uint32_t first = at.list[0].id;
    if (pick_(0, 2)) sequence(at, depth - 1);
    StepSpec step{};
    step.turns = pick_(1, 3);
    const std::uint32_t last = add(at, step);
    steps_[last].first = pick_(0, 3) ? first : last;
    at = {{{last, StepWait::kNoCase}}};
  }

  Pick pick_;
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
    for (std::uint32_t j = 0; j < sprouts_of(node.step, value); ++j) grow(id, brought(value, j), 1);
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
  LoadedProgram(Runtime& runtime, ControlProgram program)
      : program_(std::move(program)),
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
      ConditionalAfter waits;
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

  const Executable& executable() const { return executable_; }
  /// What runs so far take at most: steps, their continuations and what they spawn.
  std::uint64_t executions() const {
    std::uint64_t all = 0;
    for (std::size_t id = 0; id < size(); ++id) all += 2 * want_.count[id] + want_.sprouts[id];
    return all;
  }

  Run submit(Runtime& runtime, std::uint32_t passes) {
    for (std::uint32_t pass = 0; pass < passes; ++pass) StepInterpreter(program_, want_)();
    return runtime.submit(executable_, repeat(passes));
  }
  /// After a run that was cut short: the interpreter goes on from what it has left.
  void take_over() {
    value_.read(want_.value.data(), size());
    extra_.read(want_.extra.data(), size());
    count_.read(want_.count.data(), size());
    turns_.read(want_.turns.data(), size());
    sprouts_.read(want_.sprouts.data(), size());
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

}  // namespace flywheel::testing
