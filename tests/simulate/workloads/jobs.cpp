#include "simulate/workloads/jobs.hpp"

#include <algorithm>

namespace flywheel::simulate {

namespace {
constexpr Priority kPriority[] = {Priority::inherit, Priority::high, Priority::normal, Priority::low};

void add_dynamic(Random& random, Graph& graph, Param<std::uint32_t> number, std::uint32_t count, std::uint32_t fails_at,
                 bool own) {
  std::vector<TaskRef<>> tasks;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Priority level = own ? kPriority[random.below(4)] : Priority::inherit;
    tasks.push_back(graph.add(Job{number, i, level, random_work(random), i == fails_at}, level));
    for (std::uint32_t e = 0; i && e < random.below(3); ++e) graph.edge(tasks[random.below(i)], tasks[i]);
  }
}

void add_phases(Random& random, Graph& graph, Param<std::uint32_t> number, std::uint32_t count, std::uint32_t fails_at) {
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i == 0 || random.one_in(3)) graph.phase();
    graph.add(Job{number, i, Priority::inherit, random_work(random), i == fails_at});
  }
}
}  // namespace

Work random_work(Random& random) {
  if (random.one_in(2)) return {Work::none, 0};
  if (random.one_in(6)) return {Work::sleeps, 1 + random.below(60)};
  return {Work::looks, 1 + random.below(30)};
}

Jobs random_jobs(Random& random, Runtime& runtime, std::uint32_t most_tasks) {
  Graph graph;
  Jobs jobs;
  jobs.number = graph.param<std::uint32_t>();
  const std::uint32_t count = 1 + random.below(most_tasks), kind = random.below(6);
  jobs.fails = random.one_in(5);
  jobs.of_all = kind <= 1;
  const std::uint32_t fails_at = jobs.fails ? random.below(count) : count;
  if (kind == 0) add_phases(random, graph, jobs.number, count, fails_at);
  else add_dynamic(random, graph, jobs.number, count, fails_at, kind != 1 && random.one_in(3));
  jobs.executable = kind == 1 ? runtime.load(graph, compiled) : runtime.load(graph);
  return jobs;
}

std::uint32_t Ledger::open(const Jobs& jobs, std::uint32_t passes, const Followed& before) {
  return open(jobs.executable.size(), passes, jobs.fails, before);
}

std::uint32_t Ledger::open(std::uint32_t tasks, std::uint32_t passes, bool fails, const Followed& before) {
  const std::uint32_t number = count_.fetch_add(1);
  if (number >= kMost) return kMost;
  owed_[number].tasks = tasks;
  owed_[number].passes = passes;
  owed_[number].fails = fails;
  owed_[number].after = before.numbers;
  return number;
}

/// True if something that it follows need not end well.
bool Ledger::may_be_skipped(const Owed& owed) const {
  return std::ranges::any_of(owed.after, [&](std::uint32_t number) {
    const Owed& one = owed_[number];
    return one.fails || one.cancelled || may_be_skipped(one);
  });
}

void Ledger::note(std::uint32_t number, Status status) {
  Owed& owed = owed_[number];
  const bool good = status == Status::ok || (status == Status::cancelled && owed.cancelled) ||
                    (status == Status::task_failed && owed.fails) ||
                    (status == Status::predecessor_failed && may_be_skipped(owed));
  if (!good) wrong(std::string("a run ended for no reason that it was given: ") + describe(status).what);
  expect(status != Status::ok || !owed.fails, "a run whose task failed ended well");
  owed.ended_well = status == Status::ok;
  owed.known = true;
}

/// A task of the run begins: what the run follows must be over and have ended well.
void Ledger::check_order(std::uint32_t number, const Counts& counts) const {
  for (const std::uint32_t before : owed_[number].after) {
    const Owed& one = owed_[before];
    expect(!one.fails && (!one.known || one.ended_well), "a task ran though what it follows had not ended well");
    for (const std::uint32_t count : counts[before]) expect(count == one.passes, "a task ran before what it follows had ended");
  }
}

void Ledger::check() const {
  Counts counts(kMost);
  for (std::uint32_t number = 0; number < kMost; ++number) counts[number].resize(owed_[number].tasks);
  for (std::size_t i = 0; i < journal::size(); ++i) {
    const journal::Entry& entry = journal::at(i);
    const std::uint32_t number = entry.run & 0xffffff;
    expect(entry.task < counts[number].size(), "a task ran though its run was never submitted");
    check_order(number, counts);
    ++counts[number][entry.task];
  }
  for (std::uint32_t number = 0; number < kMost; ++number) {
    const Owed& owed = owed_[number];
    const bool all = owed.known ? owed.ended_well.load() : !owed.cancelled && !owed.fails && !may_be_skipped(owed);
    for (const std::uint32_t count : counts[number])
      expect(all ? count == owed.passes : count <= owed.passes, "a task did not run once in each pass");
  }
}

}  // namespace flywheel::simulate
