// What is measured, and in what order: one case after another; in each first the steps of empty tasks, then each sweep over the
// grains, with all systems in turns.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/measure/results.hpp"
#include "apps/taskbench/system.hpp"

namespace taskbench {

struct Sweep {
  Kernel kernel = Kernel::compute;
  Imbalance imbalance = Imbalance::none;
};

/// A problem, and what is measured of it.
struct Case {
  ShapeOptions shape;
  std::uint32_t graphs = 1;
  bool steps = true;  // the time of a step of empty tasks
  std::vector<Sweep> sweeps = {};
};

struct Plan {
  std::vector<Case> cases;
  std::vector<std::string> systems;  // those that do not take a problem are left out, with a word
  std::vector<double> grains;        // in us, falling; none: no sweeps
  std::uint32_t scratch_bytes = 64u << 10;
  int rounds = 5;
  double turn_us = 20'000;  // of runs of one system, before the next has its turn
  bool on_gpu = false;
  bool plant = false;
};

struct Results {
  std::vector<measure::Row> rows;
  std::vector<std::string> failures;  // a sentence each: what went wrong in which system
  std::vector<std::string> notes;     // what is not there, and why
};

/// Told what is measured next.
using Progress = std::function<void(const std::string& what)>;
/// Systems that fail are named in the results, and the others go on. A system fails, too, if a task finds a wrong input or a
/// cell is not what a serial run leaves.
Results run_plan(Host& host, const Plan& plan, const measure::Stamp& stamp, const Progress& progress);

/// The time of one iteration of the kernel in a task that runs alone, in us. `one_point`: a problem of one task.
double us_of_iteration(System& one_point, Kernel kernel);

}  // namespace taskbench
