// Random programs with control: what those on CPU workers and on an emulated GPU share.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "support/control_graph.hpp"

namespace flywheel::simulate {

/// Programs of at most some `most` steps each, drawn before there is a runtime, which is to have room for them.
template <class Random>
std::vector<testing::ControlProgram> draw_programs(Random& random, std::uint32_t most) {
  const auto pick = [&](std::uint32_t low, std::uint32_t high) { return low + random.one_of(high - low + 1); };
  std::vector<testing::ControlProgram> programs;
  for (std::uint32_t n = 1 + random.below(2); n > 0; --n) programs.emplace_back(pick, 1 + random.below(most));
  return programs;
}

/// Gives the options room for the programs, one after the other in the queues.
template <class Random>
void make_room(Random& random, const std::vector<testing::ControlProgram>& programs, Options& options) {
  std::uint32_t most = 1;
  for (const testing::ControlProgram& program : programs)
    most = std::max(most, static_cast<std::uint32_t>(program.steps().size()));
  options.spawn_capacity = 1u << random.below(5);
  while (options.queue_capacity < most + options.spawn_capacity) options.queue_capacity *= 2;
  options.heap_bytes = 1 << 15;
  options.max_tasks = 256;
  options.max_edges = 1024;
}

/// Submits each program some times, several of them in flight together. Some runs are cancelled: the next of that program goes
/// on from what they leave. `owe` takes how many tasks and runs there are to do, `expect` what has to hold and its text, and
/// `wrong` the text of what does not. Returns a program's graph.
template <class Random, class Owe, class Expect, class Wrong>
Executable run_programs(Random& random, Runtime& runtime, std::vector<testing::ControlProgram> programs, const Owe& owe,
                        const Expect& expect, const Wrong& wrong) {
  std::vector<std::unique_ptr<testing::LoadedProgram>> loaded;
  for (testing::ControlProgram& program : programs)
    loaded.push_back(std::make_unique<testing::LoadedProgram>(runtime, std::move(program)));
  const bool cancels = random.one_in(4);
  for (std::uint32_t round = 1 + random.below(2); round > 0; --round) {
    std::vector<Run> runs;
    std::vector<bool> cancelled;
    for (const auto& program : loaded) {
      const std::uint64_t before = program->executions();
      runs.push_back(program->submit(runtime, 1 + random.below(2)));
      owe(program->executions() - before, 1);
      cancelled.push_back(cancels && random.one_in(2));
      if (cancelled.back() && random.one_in(2)) std::this_thread::sleep_for(std::chrono::microseconds(random.below(200)));
      if (cancelled.back()) runs.back().cancel();
    }
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const Status status = runs[i].status();
      if (status == Status::cancelled) {
        expect(cancelled[i], "a run was cancelled that nobody cancelled");
        loaded[i]->take_over();
        continue;
      }
      expect(status == Status::ok, "a run with control did not end well");
      if (const std::string differs = loaded[i]->check(); !differs.empty()) wrong("a program with control: " + differs);
    }
  }
  return loaded[0]->executable();
}

}  // namespace flywheel::simulate
