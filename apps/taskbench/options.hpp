// The arguments of the program.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "apps/taskbench/plan.hpp"

namespace taskbench {

struct Arguments {
  std::vector<std::string> patterns = {};  // these five empty: as default_cases() says
  std::vector<std::uint32_t> widths = {};
  std::vector<std::string> kernels = {};
  std::vector<std::string> imbalances = {};
  std::uint32_t graphs = 0;
  std::vector<std::string> systems = {};  // empty: all there are
  std::uint32_t steps = 0;                // 0: 300 on a GPU, 50 on CPU workers
  std::uint32_t radix = 5, period = 3;
  double fraction = 0.25;
  std::uint32_t seed = 1;
  double grain = 0;  // 0: from `largest` to `smallest`
  double largest = 64, smallest = 0.25, factor = 2;
  std::uint32_t scratch_kb = 64;
  std::uint32_t workers = 0;
  int rounds = 0;  // 0: five, or two with --quick
  bool cpu = false, quick = false, plant = false;
  std::string out = {};
  std::string commit = {};
};

void describe(CLI::App& app, Arguments& arguments);

/// Errors: std::invalid_argument that names the option and the remedy. `workers`: of the host that will run it.
Plan plan_of(const Arguments& arguments, bool on_gpu, std::uint32_t workers);

}  // namespace taskbench
