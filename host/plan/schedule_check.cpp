// Proves that a plan is right. It shares no code with make_schedule().
//
// The proof simulates the plan: a worker's next task runs as soon as its counters are full. Within a pass counters only
// rise, so a task that can start stays able to start whatever the other workers do. Therefore every timing gets as far
// as this one, and if this one completes, no timing gets stuck. Vector clocks record which tasks have certainly ended
// when a task starts, from waits and orders alone. A wait is for a full counter, so the clocks are the same for every
// timing.
//
// Tasks of a gang wait for each other while they run. So none of them counts as started until all of them are next in
// their workers' orders with full counters; from then on each runs to its end.
#include <algorithm>

#include "schedule.hpp"
#include "task_name.hpp"

namespace flywheel::detail {

namespace {

class Proof {
 public:
  Proof(const SchedulePlan& plan, const Graph& graph)
      : plan_(plan),
        graph_(graph),
        signalers_(plan.arrivals.size()),
        waiters_(plan.arrivals.size()),
        next_(plan.order.size()),
        known_(plan.order.size(), Clock(plan.order.size())),
        arrived_(plan.arrivals.size()),
        published_(plan.arrivals.size()) {}

  void check_orders() const {
    if (plan_.tasks.size() != graph_.size())
      fault("it has " + std::to_string(plan_.tasks.size()) + " tasks, and the graph " + std::to_string(graph_.size()));
    std::vector<bool> seen(graph_.size());
    for (std::uint32_t worker = 0; worker < plan_.order.size(); ++worker)
      for (std::uint32_t place = 0; place < plan_.order[worker].size(); ++place) {
        const std::uint32_t task = plan_.order[worker][place];
        if (task >= graph_.size())
          fault("the order of worker " + std::to_string(worker) + " names task " + std::to_string(task) +
                ", and the graph has " + std::to_string(graph_.size()));
        if (seen[task]) fault(name(task) + " stands in two places, one of them with worker " + std::to_string(worker));
        seen[task] = true;
        check_place(task, worker, place);
      }
    for (const auto& gang : graph_.gangs()) check_gang(gang);
    const auto missing = std::find(seen.begin(), seen.end(), false);
    if (missing != seen.end()) fault(name(static_cast<std::uint32_t>(missing - seen.begin())) + " stands in no worker's order");
  }

  void check_counters() {
    for (std::uint32_t task = 0; task < graph_.size(); ++task) {
      const std::uint32_t signal = plan_.tasks[task].signal;
      if (signal != kNoCounter) signalers_[known_counter(task, signal)].push_back(task);
    }
    for (std::uint32_t counter = 0; counter < signalers_.size(); ++counter)
      if (signalers_[counter].size() != plan_.arrivals[counter])
        fault(counter_name(counter) + " gets " + std::to_string(signalers_[counter].size()) + " arrivals in a pass, not " +
              std::to_string(plan_.arrivals[counter]));
    for (std::uint32_t task = 0; task < graph_.size(); ++task)
      for (const CounterWait& wait : plan_.tasks[task].waits) {
        ++waiters_[known_counter(task, wait.counter)];
        if (wait.arrivals != plan_.arrivals[wait.counter])
          fault(name(task) + " waits for " + std::to_string(wait.arrivals) + " arrivals at " + counter_name(wait.counter) +
                ", which gets " + std::to_string(plan_.arrivals[wait.counter]));
      }
  }

  void check_sinks() const {
    std::vector<bool> sink(graph_.size(), true);
    for (const GraphNode& node : graph_.nodes())
      for (const std::uint32_t before : node.predecessors) sink[before] = false;
    const auto sinks = static_cast<std::uint64_t>(std::count(sink.begin(), sink.end(), true));
    if (sinks != plan_.sinks)
      fault("the graph has " + std::to_string(sinks) + " sinks, and the plan " + std::to_string(plan_.sinks));
    for (std::uint32_t task = 0; task < sink.size(); ++task)
      if (sink[task] && plan_.tasks[task].signal != kNoCounter)
        fault(name(task) + " is a sink, and yet arrives at " + counter_name(plan_.tasks[task].signal));
    if (plan_.leader >= plan_.order.size() || std::none_of(plan_.order[plan_.leader].begin(), plan_.order[plan_.leader].end(),
                                                           [&](std::uint32_t task) { return sink[task]; }))
      fault("the leader, worker " + std::to_string(plan_.leader) + ", has no sink");
  }

  void follow() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t worker = 0; worker < next_.size(); ++worker)
        for (; can_move(worker); moved = true) run(plan_.order[worker][next_[worker]++]);
    }
    for (std::uint32_t worker = 0; worker < next_.size(); ++worker)
      if (next_[worker] < plan_.order[worker].size()) stuck(worker, plan_.order[worker][next_[worker]]);
  }

 private:
  /// The number of tasks of each worker that have certainly ended.
  using Clock = std::vector<std::uint32_t>;

  void check_place(std::uint32_t task, std::uint32_t worker, std::uint32_t place) const {
    const TaskPlan& plan = plan_.tasks[task];
    if (plan.worker != worker || plan.place != place)
      fault(name(task) + " is planned for place " + std::to_string(plan.place) + " of worker " + std::to_string(plan.worker) +
            ", but stands at place " + std::to_string(place) + " of worker " + std::to_string(worker));
    const std::uint32_t wanted = graph_.nodes()[task].worker;
    if (wanted != kAnyWorker && wanted != worker % (plan_.order.size() / std::max(plan_.warps, 1u)))
      fault(name(task) + " stands in the order of worker " + std::to_string(worker) +
            ", but Graph::place() wants it on worker " + std::to_string(wanted));
  }
  void check_gang(const std::vector<std::uint32_t>& gang) const {
    std::vector<std::uint32_t> with(plan_.order.size(), graph_.size());  // of each worker: its task of the gang
    for (const std::uint32_t task : gang) {
      std::uint32_t& other = with[plan_.tasks[task].worker];
      if (other != graph_.size())
        fault(name(other) + " and " + name(task) + " run together, and both stand in the order of worker " +
              std::to_string(plan_.tasks[task].worker));
      other = task;
    }
  }
  std::uint32_t known_counter(std::uint32_t task, std::uint32_t counter) const {
    if (counter >= plan_.arrivals.size())
      fault(name(task) + " names " + counter_name(counter) + ", and there are only " + std::to_string(plan_.arrivals.size()));
    return counter;
  }

  bool can_move(std::uint32_t worker) const {
    if (next_[worker] == plan_.order[worker].size()) return false;
    const std::uint32_t task = plan_.order[worker][next_[worker]], gang = graph_.nodes()[task].gang;
    return has_all(task) && (gang == kNoGang || std::ranges::all_of(graph_.gangs()[gang], [&](auto t) { return is_there(t); }));
  }
  bool has_all(std::uint32_t task) const {
    return std::ranges::all_of(plan_.tasks[task].waits, [&](const CounterWait& wait) { return is_full(wait.counter); });
  }
  /// True if this task of a gang can start, or has started.
  bool is_there(std::uint32_t task) const {
    const TaskPlan& plan = plan_.tasks[task];
    return next_[plan.worker] > plan.place || (next_[plan.worker] == plan.place && has_all(task));
  }
  bool is_full(std::uint32_t counter) const { return arrived_[counter] == plan_.arrivals[counter]; }

  void run(std::uint32_t task) {
    const TaskPlan& plan = plan_.tasks[task];
    Clock& known = known_[plan.worker];
    for (const CounterWait& wait : plan.waits) {
      learn(known, published_[wait.counter]);
      if (--waiters_[wait.counter] == 0) Clock().swap(published_[wait.counter]);
    }
    for (const std::uint32_t before : graph_.nodes()[task].predecessors)
      if (known[plan_.tasks[before].worker] <= plan_.tasks[before].place) broken_edge(before, task);
    known[plan.worker] = plan.place + 1;
    if (plan.signal == kNoCounter) return;
    ++arrived_[plan.signal];
    learn(published_[plan.signal], known);
  }
  static void learn(Clock& known, const Clock& news) {
    known.resize(std::max(known.size(), news.size()));
    for (std::size_t worker = 0; worker < news.size(); ++worker) known[worker] = std::max(known[worker], news[worker]);
  }

  [[noreturn]] void broken_edge(std::uint32_t before, std::uint32_t then) const {
    fault(name(then) + " of worker " + std::to_string(plan_.tasks[then].worker) + " may start before " + name(before) +
          " of worker " + std::to_string(plan_.tasks[before].worker) + " has ended, and there is an edge between them" +
          (plan_.tasks[before].signal == kNoCounter ? " (the latter arrives at no counter)" : ""));
  }
  [[noreturn]] void stuck(std::uint32_t worker, std::uint32_t task) const {
    if (has_all(task)) alone(worker, task);
    const auto& waits = plan_.tasks[task].waits;
    const std::uint32_t counter =
        std::find_if_not(waits.begin(), waits.end(), [&](const CounterWait& wait) { return is_full(wait.counter); })->counter;
    const auto& from = signalers_[counter];
    const std::uint32_t missing = *std::find_if(from.begin(), from.end(), [&](std::uint32_t signaler) {
      return next_[plan_.tasks[signaler].worker] <= plan_.tasks[signaler].place;
    });
    fault("worker " + std::to_string(worker) + " gets stuck at " + name(task) + ": it waits for " + counter_name(counter) +
          ", where " + std::to_string(arrived_[counter]) + " of " + std::to_string(plan_.arrivals[counter]) + " arrive; " +
          name(missing) + " of worker " + std::to_string(plan_.tasks[missing].worker) + " cannot start before that");
  }
  [[noreturn]] void alone(std::uint32_t worker, std::uint32_t task) const {
    const auto& gang = graph_.gangs()[graph_.nodes()[task].gang];
    const std::uint32_t missing = *std::ranges::find_if_not(gang, [&](auto other) { return is_there(other); });
    fault("worker " + std::to_string(worker) + " gets stuck at " + name(task) + ": it runs together with " + name(missing) +
          " of worker " + std::to_string(plan_.tasks[missing].worker) + ", which cannot start before that");
  }
  [[noreturn]] static void fault(const std::string& what) {
    throw GraphError("the schedule is wrong: " + what + ". Compile the graph again with make_schedule().");
  }
  std::string name(std::uint32_t task) const { return name_of(graph_, task); }
  static std::string counter_name(std::uint32_t counter) { return "counter c" + std::to_string(counter); }

  const SchedulePlan& plan_;
  const Graph& graph_;
  std::vector<std::vector<std::uint32_t>> signalers_;  // of each counter: the tasks that arrive at it
  std::vector<std::size_t> waiters_;                   // of each counter: the waits still to come
  std::vector<std::uint32_t> next_;                    // of each worker: the next place in its order
  std::vector<Clock> known_;                           // what each worker knows
  std::vector<std::uint32_t> arrived_;                 // of each counter: the arrivals so far
  std::vector<Clock> published_;                       // what each counter's arrivals make known
};

}  // namespace

void validate_schedule(const SchedulePlan& plan, const Graph& graph) {
  Proof proof(plan, graph);
  proof.check_orders();
  proof.check_counters();
  proof.check_sinks();
  proof.follow();
}

}  // namespace flywheel::detail
