// Several runtimes at once, that end in any order; what belongs to them lives longer.
#include <optional>

#include "simulate/workloads/jobs.hpp"

namespace flywheel::simulate {

namespace {

/// A runtime and what a program has of it.
struct House {
  std::optional<Runtime> runtime;
  std::optional<Jobs> jobs;
  std::optional<Buffer<std::uint32_t>> memory;
  std::vector<Run> runs;
  std::vector<std::uint32_t> numbers;
};

void furnish(House& house, Ledger& ledger, std::uint64_t seed) {
  Random random = random_of_thread(seed);
  Options options = options_of(random, 6);
  options.workers = 1 + random.below(3);
  house.runtime.emplace(start_runtime(options));
  owe(options, 10, 10);
  house.memory = house.runtime->allocate<std::uint32_t>(8);
  house.jobs = random_jobs(random, *house.runtime, 6);
  const std::uint32_t count = 1 + random.below(6);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t passes = 1 + random.below(3), number = ledger.open(*house.jobs, passes);
    const auto level = static_cast<Priority>(random.below(3));
    house.runs.push_back(house.runtime->submit(house.jobs->executable, level, repeat(passes),
                                               set(house.jobs->number, number_of(level, number))));
    owe(options, passes * 6, 8);
    house.numbers.push_back(number);
    if (random.one_in(4)) ledger.at(number).cancelled = true, house.runs.back().cancel();
  }
}

/// The runs of a runtime that has ended are over, and its memory can be read.
void check_runs(House& house, Ledger& ledger) {
  for (std::size_t i = 0; i < house.runs.size(); ++i) {
    if (!house.runtime) expect(house.runs[i].done(), "a run is not over though its runtime is");
    ledger.note(house.numbers[i], house.runs[i].status());
  }
  house.runs.clear();
}

void take_something(House& house, Ledger& ledger, Random& random) {
  switch (random.below(4)) {
    case 0:
      return house.runtime.reset();
    case 1:
      return house.jobs.reset();
    case 2:
      if (house.memory) expect(house.memory->read().size() == 8, "a buffer lost its size");
      return house.memory.reset();
    default:
      return check_runs(house, ledger);
  }
}

void live(House& house, Ledger& ledger, std::uint64_t seed) {
  Random random = random_of_thread(seed);
  furnish(house, ledger, random.next());
  for (std::uint32_t i = 0; i < 4; ++i) take_something(house, ledger, random);
}

}  // namespace

void run_runtimes(Random& random) {
  const std::uint32_t count = 1 + random.below(3);
  const bool threads = random.one_in(2);
  begin_text("runtimes: " + std::to_string(count) + (threads ? ", each with a thread" : ", one thread"));
  const auto ledger = std::make_unique<Ledger>();
  std::vector<House> houses(count);
  std::vector<std::thread> all;
  for (House& house : houses) {
    if (threads) all.emplace_back([&, seed = random.next()] { live(house, *ledger, seed); });
    else furnish(house, *ledger, random.next());
  }
  for (std::thread& thread : all) thread.join();
  for (std::uint32_t i = 0; i < 6; ++i) take_something(houses[random.below(count)], *ledger, random);
  for (House& house : houses) check_runs(house, *ledger);
  houses.clear();
  ledger->check();
}

}  // namespace flywheel::simulate
