// A gang: tasks that run at the same time, each on a worker of its own, and wait for each other's values while they run.
//
// Many values are drawn to the mean of all of them, in steps, and each step needs the mean anew. Plainly a step is a stage of
// tasks, which begins when all of the one before have ended; values and sums go through memory. As a gang the tasks stay
// for all steps: each keeps its values, tells the others its sum, and looks for theirs.
#include <flywheel/flywheel.hpp>
#include <flywheel/task.cuh>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

#include "apps/measure/in_turns.hpp"

namespace means {

using flywheel::Stamped;

constexpr int kValues = 1024, kSteps = 16, kMostMembers = 32;  // values of a member

FLYWHEEL_TASK inline int drawn(int value, int mean) { return value + (mean - value) / 4; }
struct Add {
  FLYWHEEL_TASK long long operator()(long long a, long long b) const { return a + b; }
};

/// One member's part in one step.
struct Step {
  int* values;
  const long long* sums_before;  // of all members
  long long* sum;
  int members;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    long long all = 0;
    block.for_each(members, [&](int member) { all += sums_before[member]; });
    const int mean = static_cast<int>(block.reduce(all, Add{}) / (members * kValues));
    long long mine = 0;
    block.for_each(kValues, [&](int i) { mine += values[i] = drawn(values[i], mean); });
    mine = block.reduce(mine, Add{});
    if (block.leader()) *sum = mine;
  }
};

/// One member's part in all steps.
struct Member {
  int* values;
  Stamped* sums;  // [kSteps][members], each with the number of its pass (runtime/base/stamped.hpp)
  int member, members;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    int* const mine = block.template scratch<int>(kValues);
    if (!mine) return;
    block.for_each(kValues, [&](int i) { mine[i] = values[i]; });  // the same thread has value i all the time
    for (int step = 0; step < kSteps; ++step) {
      const int mean = mean_of_all(block, mine, sums + step * members);
      block.for_each(kValues, [&](int i) { mine[i] = drawn(mine[i], mean); });
    }
    block.for_each(kValues, [&](int i) { values[i] = mine[i]; });
  }

 private:
  template <class Block>
  FLYWHEEL_TASK int mean_of_all(Block& block, const int* mine, Stamped* told) const {
    long long sum = 0;
    block.for_each(kValues, [&](int i) { sum += mine[i]; });
    sum = block.reduce(sum, Add{});
    if (block.leader()) flywheel::put_stamped(told[member], static_cast<std::uint32_t>(sum), block.stamp());
    long long all = 0;
    block.for_each(members, [&](int other) { all += sum_from(block, told[other]); });
    return static_cast<int>(block.reduce(all, Add{}) / (members * kValues));
  }
  /// Waits for another member's sum. If that one fails or the run is cancelled, it never comes, and block.cancelled() is true.
  /// A wait keeps its worker busy: CPU workers of which some have no processor free for them take turns, which is slow.
  template <class Block>
  FLYWHEEL_TASK static std::uint32_t sum_from(Block& block, const Stamped& at) {
    Stamped word = flywheel::look_at(at);
    for (int looks = 1; word.stamp() != block.stamp(); word = flywheel::look_at(at), ++looks)
      if (looks % 64 == 0 && block.cancelled()) break;  // all threads go on: they meet in reduce()
    return word.bits();
  }
};

flywheel::Executable load_steps(flywheel::Runtime& rt, int members, int* values, long long* sums) {
  flywheel::Graph g;
  std::vector<flywheel::TaskRef<>> before, now;
  for (int step = 0; step < kSteps; ++step, before = now, now.clear())
    for (int m = 0; m < members; ++m) {  // the first step reads what the last step of the pass before has left
      const long long* sums_before = sums + (step + kSteps - 1) % kSteps * members;
      now.push_back(g.add(Step{values + m * kValues, sums_before, sums + step * members + m, members}, after(before)));
      g.place(now.back(), static_cast<std::uint32_t>(m));
    }
  return rt.load(g, flywheel::compiled);
}
flywheel::Executable load_gang(flywheel::Runtime& rt, int members, int* values, Stamped* sums) {
  flywheel::Graph g;
  std::vector<flywheel::TaskRef<>> gang;
  for (int m = 0; m < members; ++m) gang.push_back(g.add(Member{values + m * kValues, sums, m, members}));
  g.together(gang);
  return rt.load(g, flywheel::compiled);
}

std::vector<int> plain_loop(std::vector<int> values) {
  for (int step = 0; step < kSteps; ++step) {
    const long long mean = std::accumulate(values.begin(), values.end(), 0ll) / static_cast<long long>(values.size());
    for (int& value : values) value = drawn(value, static_cast<int>(mean));
  }
  return values;
}

}  // namespace means

int main() {
  using namespace means;
  flywheel::Runtime rt = flywheel::start<Step, Member>();
  const int members = static_cast<int>(std::min<std::uint32_t>(rt.workers(), kMostMembers));
  std::vector<int> start(static_cast<std::size_t>(members) * kValues);
  for (std::size_t i = 0; i < start.size(); ++i) start[i] = static_cast<int>(i * i % 100'003);
  std::vector<long long> first_sums(static_cast<std::size_t>(kSteps * members));  // of them the last step's are read first
  for (std::size_t i = 0; i < start.size(); ++i) first_sums[(kSteps - 1) * members + i / kValues] += start[i];

  const auto values = rt.upload(start), gang_values = rt.upload(start);
  const auto sums = rt.upload(first_sums);
  const auto words = rt.allocate<Stamped>(first_sums.size());
  const flywheel::Executable plain = load_steps(rt, members, values.data(), sums.data()),
                             gang = load_gang(rt, members, gang_values.data(), words.data());
  rt.submit(plain).wait();
  rt.submit(gang).wait();
  const std::vector<int> wanted = plain_loop(start);
  if (values.read() != wanted || gang_values.read() != wanted) return 1;
  measure::print_gain(rt, "a gang", measure::time_in_turns(rt, plain, gang));
  return 0;
}
