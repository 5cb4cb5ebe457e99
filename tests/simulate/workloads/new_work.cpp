// Threads that submit tasks without a graph, alone and in batches, while the kernel parks, yields and pauses.
#include "simulate/workloads/new_work.hpp"

namespace flywheel::simulate {

namespace {
/// True if it is to be submitted with an after(), which may name nothing.
bool follows(Random& random, const Followed& before) { return !before.numbers.empty() || random.one_in(8); }
}  // namespace

void NewWork::submit_single(const Followed& before) {
  const auto level = static_cast<Priority>(random_.below(3));
  const bool fails = random_.one_in(6);
  const std::uint32_t number = ledger_.open(1, 1, fails, before);
  if (number == Ledger::kMost) return;
  const Lone task{number_of(level, number), 0, random_work(random_), fails};
  singles_.push_back(
      {follows(random_, before) ? runtime_.submit(task, before.runs, level) : runtime_.submit(task, level), {task}, number});
}

void NewWork::submit_range(const Followed& before) {
  const auto level = static_cast<Priority>(random_.below(3));
  const std::uint32_t count = 1 + random_.below(8);
  const bool fails = random_.one_in(6);
  const std::uint32_t number = ledger_.open(count, 1, fails, before), fails_at = fails ? random_.below(count) : count;
  if (number == Ledger::kMost) return;
  std::vector<Lone> tasks;
  for (std::uint32_t i = 0; i < count; ++i) tasks.push_back({number_of(level, number), i, random_work(random_), i == fails_at});
  batches_.push_back({runtime_.submit(tasks, before.runs, level), tasks, number});
}

void NewWork::add_one(Followed& before) const {
  const auto add = [&](const auto& all) {
    const auto& one = all[random_.below(static_cast<std::uint32_t>(all.size()))];
    before.add(one.handle, one.number);
  };
  if (!singles_.empty() && (batches_.empty() || random_.one_in(2))) add(singles_);
  else if (!batches_.empty()) add(batches_);
}

void NewWork::end_one() {
  if (!singles_.empty() && (batches_.empty() || random_.one_in(2))) end(singles_);
  else if (!batches_.empty()) end(batches_);
}

void NewWork::look() {
  if (!singles_.empty()) look_at(singles_);
  if (!batches_.empty()) look_at(batches_);
}

/// They end by themselves.
void NewWork::drop() {
  if (!singles_.empty()) singles_.pop_back();
  if (!batches_.empty()) batches_.pop_back();
}

void NewWork::check(Future<std::uint64_t>& future, const std::vector<Lone>& tasks) {
  expect(future.get() == tasks[0].result(), "a single task returned what it should not");
}

void NewWork::check(Batch<std::uint64_t>& batch, const std::vector<Lone>& tasks) {
  std::size_t seen = 0;
  batch.for_each([&](std::size_t i, std::uint64_t result) {
    expect(result == tasks[i].result(), "a task of a batch returned what it should not");
    ++seen;
  });
  expect(seen == tasks.size(), "a batch has fewer results than tasks");
}

template <class One>
void NewWork::look_at(std::deque<One>& all) {
  One& one = all[random_.below(static_cast<std::uint32_t>(all.size()))];
  if (random_.one_in(3)) ledger_.at(one.number).cancelled = true, one.handle.cancel();
  const bool done = random_.one_in(2) ? one.handle.done() : one.handle.wait_for(std::chrono::microseconds(random_.below(50)));
  expect(!done || one.handle.done(), "work without a graph that was over is not any more");
}

template <class One>
void NewWork::end(std::deque<One>& all) {
  One one = std::move(all.front());
  all.pop_front();
  const Status status = one.handle.status();
  ledger_.note(one.number, status);
  if (status == Status::ok) check(one.handle, one.tasks);
}

namespace {
/// Up to three of them, once in a while.
Followed some(Random& random, const NewWork& work) {
  Followed before;
  if (random.one_in(4))
    for (std::uint32_t i = 1 + random.below(3); i; --i) work.add_one(before);
  return before;
}

/// One of the program's threads.
void pour(Runtime& runtime, Ledger& ledger, std::uint64_t seed, std::uint32_t acts) {
  Random random = random_of_thread(seed);
  NewWork work(runtime, ledger, random);
  for (std::uint32_t i = 0; i < acts; ++i) {
    switch (random.one_of(12)) {
      case 0:
        work.look();
        break;
      case 1:
        work.drop();
        break;
      case 2:
        std::this_thread::sleep_for(std::chrono::microseconds(random.below(random.one_in(4) ? 20'000 : 200)));
        break;
      case 3:
        runtime.yield();
        break;
      case 4: {
        const Pause guard(runtime);
        break;
      }
      case 5:
      case 6:
        work.end_one();
        break;
      case 7:
        work.submit_range(some(random, work));
        break;
      default:
        work.submit_single(some(random, work));
    }
  }
  while (work.held()) work.end_one();
}
}  // namespace

void run_new_work(Random& random) {
  const Options options = options_of(random, 8);
  const std::uint32_t threads = 1 + random.below(3), acts = 3 + random.below(12);
  run_users(options, random, threads, acts,
            [acts](Runtime& runtime, Ledger& ledger, std::uint64_t seed) { pour(runtime, ledger, seed, acts); });
}

}  // namespace flywheel::simulate
