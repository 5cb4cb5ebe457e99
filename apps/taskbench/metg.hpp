// The minimum effective task granularity, METG(50%): the least time of a task at which a system still reaches half of its best
// rate (Slaughter et al., "Task Bench", SC 2020). Pure arithmetic.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace taskbench {

/// A system at one grain.
struct GrainPoint {
  double grain_us = 0;  // what a task is to take, by itself
  double task_us = 0;   // what it took: wall time x places / tasks, with as many places as tasks that can run at once
  double rate = 0;      // work in a us of wall time: iterations of the kernel
  double efficiency = 0;
};

/// Fills in the efficiencies: the rate over the best rate of all points.
std::vector<GrainPoint> with_efficiency(std::vector<GrainPoint> points);

/// The least task time whose efficiency is `share` or more, between two points by interpolation: linear in the efficiency and
/// the logarithm of the time. Nothing if no point falls below `share`, so that smaller grains have to be measured, or if fewer
/// than two points are given.
std::optional<double> metg(const std::vector<GrainPoint>& points, double share = 0.5);

/// Grains in us from `largest` down to `smallest`, each the one before divided by `factor`. Errors: std::invalid_argument
/// naming the option.
std::vector<double> geometric_grains(double largest, double smallest, double factor);

}  // namespace taskbench
