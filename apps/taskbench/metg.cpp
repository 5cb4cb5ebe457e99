#include "apps/taskbench/metg.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace taskbench {

std::vector<GrainPoint> with_efficiency(std::vector<GrainPoint> points) {
  double best = 0;
  for (const GrainPoint& point : points) best = std::max(best, point.rate);
  for (GrainPoint& point : points) point.efficiency = best > 0 ? point.rate / best : 0;
  return points;
}

std::optional<double> metg(const std::vector<GrainPoint>& points, double share) {
  std::vector<GrainPoint> sorted = with_efficiency(points);
  std::ranges::sort(sorted, {}, &GrainPoint::task_us);
  const auto reaches = [share](const GrainPoint& point) { return point.efficiency >= share; };
  const auto first = std::ranges::find_if(sorted, reaches);
  if (first == sorted.begin() || first == sorted.end()) return std::nullopt;
  const GrainPoint &below = first[-1], &above = *first;
  const double part = (share - below.efficiency) / (above.efficiency - below.efficiency);
  return below.task_us * std::pow(above.task_us / below.task_us, part);
}

std::vector<double> geometric_grains(double largest, double smallest, double factor) {
  if (!(smallest > 0))
    throw std::invalid_argument("--smallest " + std::to_string(smallest) + ": a task takes some time; try 0.25");
  if (!(largest >= smallest)) throw std::invalid_argument("--largest " + std::to_string(largest) + " is below --smallest");
  if (!(factor > 1.01)) throw std::invalid_argument("--factor " + std::to_string(factor) + ": grains shrink by more than 1.01");
  std::vector<double> grains;
  // The margin keeps the last grain where the divisions have rounded.
  for (double grain = largest; grain >= smallest * (1 - 1e-9); grain /= factor) grains.push_back(grain);
  return grains;
}

}  // namespace taskbench
