// Turns edges into waits on counters, and removes waits that others imply, with vector clocks (Mattern, "Virtual time
// and global states of distributed systems", 1989).
#include <algorithm>
#include <queue>
#include <unordered_map>

#include "schedule_lists.hpp"

namespace flywheel::detail {

namespace {

constexpr std::uint32_t kMostArrivals = 0xffff;  // failed arrivals are counted in 16 bits, see Schedule::counters

struct ListHash {
  std::size_t operator()(Indices list) const {  // FNV-1a, a word at a time
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const std::uint32_t item : list) hash = (hash ^ item) * 0x100000001b3u;
    return hash ^ (hash >> 32);
  }
};
struct SameList {
  bool operator()(Indices a, Indices b) const { return std::ranges::equal(a, b); }
};

/// Assigns counters to tasks. Tasks with the same successors share a counter, so all tasks that arrive at a counter are
/// predecessors of all tasks that wait for it, and a wait for the full counter delays no task.
struct Counters {
  Lists signalers;                     // of each counter: its tasks, the one that ends last first
  Lists awaited;                       // of each task: the counters to wait for
  std::vector<std::uint32_t> waiters;  // of each counter: the number of tasks that wait for it

  Counters(SchedulePlan& plan, const Lists& after) {
    std::unordered_map<Indices, std::uint32_t, ListHash, SameList> counter_of;
    Lists signals, waiting;  // of each task, of each counter
    for (std::uint32_t task = 0; task < after.size(); ++task) {
      if (!after[task].empty()) {
        std::uint32_t& counter = counter_of.try_emplace(after[task], kNoCounter).first->second;
        if (counter == kNoCounter || plan.arrivals[counter] == kMostArrivals) {
          counter = waiting.size();
          waiting.append(after[task]);
          waiters.push_back(static_cast<std::uint32_t>(after[task].size()));
          plan.arrivals.push_back(0);
        }
        ++plan.arrivals[plan.tasks[task].signal = counter];
      }
      signals.append(after[task].empty() ? Indices{} : Indices{&plan.tasks[task].signal, 1});
    }
    signalers = turned(signals, waiting.size());
    awaited = turned(waiting, after.size());
  }
};

/// Visits the tasks in an order that agrees with edges and workers, and keeps the waits that are needed.
class Pruner {
 public:
  Pruner(SchedulePlan& plan, Counters& counters)
      : plan_(plan),
        counters_(counters),
        known_(plan.order.size(), Clock(plan.order.size())),
        full_(plan.arrivals.size()) {
    const auto ends_later = [&](auto a, auto b) { return plan.tasks[a].end_ns > plan.tasks[b].end_ns; };
    for (std::uint32_t c = 0; c < full_.size(); ++c)
      std::stable_sort(counters.signalers.items.begin() + static_cast<std::ptrdiff_t>(counters.signalers.ends[c]),
                       counters.signalers.items.begin() + static_cast<std::ptrdiff_t>(counters.signalers.ends[c + 1]),
                       ends_later);
  }

  void visit(std::uint32_t task) {
    TaskPlan& plan = plan_.tasks[task];
    Clock& known = known_[plan.worker];
    choose_waits(task, known);
    for (const std::uint32_t c : counters_.awaited[task])
      if (--counters_.waiters[c] == 0) Clock().swap(full_[c]);  // bounds memory: no task needs this clock any more
    known[plan.worker] = plan.place + 1;
    if (plan.signal != kNoCounter) join(full_[plan.signal], known);
  }

 private:
  /// The number of tasks of each worker that are known to have ended.
  using Clock = std::vector<std::uint32_t>;

  /// A counter that the task may have to wait for. Signaler `at` is the first one that is not known to have ended.
  struct Candidate {
    double end_ns;
    std::uint32_t counter;
    std::uint32_t at;
    bool operator<(const Candidate& other) const {
      return end_ns != other.end_ns ? end_ns < other.end_ns : counter > other.counter;
    }
  };

  /// Repeatedly chooses the counter whose latest signaler, among those not known to have ended, ends last. No wait
  /// chosen later can imply this one: all that a later wait makes known has ended before that counter's own signalers
  /// end. So every wait that is kept is needed.
  void choose_waits(std::uint32_t task, Clock& known) {
    for (const std::uint32_t c : counters_.awaited[task]) offer(c, 0, known);
    while (!candidates_.empty()) {
      const Candidate latest = candidates_.top();
      candidates_.pop();
      if (has_ended(latest, known)) {
        offer(latest.counter, latest.at + 1, known);
        continue;
      }
      plan_.tasks[task].waits.push_back({latest.counter, plan_.arrivals[latest.counter]});
      join(known, full_[latest.counter]);
    }
  }
  void offer(std::uint32_t counter, std::uint32_t at, const Clock& known) {
    const Indices signalers = counters_.signalers[counter];
    for (; at < signalers.size(); ++at) {
      const Candidate candidate{plan_.tasks[signalers[at]].end_ns, counter, at};
      if (!has_ended(candidate, known)) return candidates_.push(candidate);
    }
  }
  bool has_ended(const Candidate& candidate, const Clock& known) const {
    const TaskPlan& signaler = plan_.tasks[counters_.signalers[candidate.counter][candidate.at]];
    return known[signaler.worker] > signaler.place;
  }
  static void join(Clock& clock, const Clock& other) {
    clock.resize(other.size());
    for (std::size_t worker = 0; worker < other.size(); ++worker) clock[worker] = std::max(clock[worker], other[worker]);
  }

  SchedulePlan& plan_;
  Counters& counters_;
  std::vector<Clock> known_;  // what each worker knows by now
  std::vector<Clock> full_;   // what each full counter makes known
  std::priority_queue<Candidate> candidates_;
};

/// Removes the counters that no task waits for, and renumbers the others.
void drop_unused_counters(SchedulePlan& plan) {
  std::vector<std::uint32_t> number(plan.arrivals.size(), kNoCounter), arrivals;
  for (const TaskPlan& task : plan.tasks)
    for (const CounterWait& wait : task.waits) number[wait.counter] = 0;
  for (std::uint32_t counter = 0; counter < number.size(); ++counter) {
    if (number[counter] == kNoCounter) continue;
    number[counter] = static_cast<std::uint32_t>(arrivals.size());
    arrivals.push_back(plan.arrivals[counter]);
  }
  plan.arrivals = std::move(arrivals);
  for (TaskPlan& task : plan.tasks) {
    if (task.signal != kNoCounter) task.signal = number[task.signal];
    for (CounterWait& wait : task.waits) wait.counter = number[wait.counter];
    plan.waits += task.waits.size();
  }
}

}  // namespace

void plan_waits(SchedulePlan& plan, const Lists& after, Indices order) {
  Counters counters(plan, after);
  Pruner pruner(plan, counters);
  for (const std::uint32_t task : order) pruner.visit(task);
  drop_unused_counters(plan);
}

}  // namespace flywheel::detail
