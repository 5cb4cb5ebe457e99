// What happens if the workers of a grid task meet unequally often, on CPU workers and on GPUs.
#pragma once

#include <algorithm>

#include "support/expect.hpp"
#include "support/small_tasks.hpp"

namespace flywheel::testing {

/// One worker calls grid_sync() less or more often than the others: the run fails by name, before anybody has gone on alone,
/// and the next one is as always.
inline void check_unequal_meetings(Runtime& runtime, Buffer<std::uint32_t>& words) {
  constexpr std::uint32_t kUsual = 4;
  const std::uint32_t workers = runtime.workers();
  const std::vector<std::uint32_t> zeros(workers + 1);
  Graph good;
  good.add_grid(MeetUnequally{words.data(), kUsual, 0, kUsual});
  const Executable equal = runtime.load(good);
  for (const std::uint32_t own : {0u, 3u, 5u, 7u})
    for (std::uint32_t who = 0; who < workers; who += std::max(1u, workers / 3)) {
      CAPTURE(own, who);
      words.write(zeros);
      Graph graph;
      graph.add_grid(MeetUnequally{words.data(), kUsual, who, own});
      graph.add(Count{words.data() + workers});
      Run run = runtime.submit(runtime.load(graph), repeat(3));
      CHECK(run.status() == Status::grid_sync_missed);
      check_says(error_of<RunError>([&] { run.wait(); }),
                 {"task 0 (", "MeetUnequally", "grid_sync() less often", "equally often"});
      CHECK(runtime.submit(equal).status() == Status::ok);
      std::vector<std::uint32_t> found(workers + 1);
      words.read(found.data(), found.size());
      for (std::uint32_t w = 0; w < workers; ++w) CHECK(found[w] == std::min(own, kUsual) + kUsual);
      CHECK(found[workers] == 0);
    }
}

}  // namespace flywheel::testing
