// What the trials come to: rows of the results file, and a table for a person.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "apps/measure/results.hpp"
#include "apps/serve_bench/sustainable.hpp"

namespace serve {

/// One trial of a service. `step` says which: "x0.50" for half of the sustainable load.
struct Measured {
  std::string workload, service, step;
  double fraction;  // of the sustainable load
  double offered_per_second;
  Trial trial;
};

/// The sustainable load of a service.
struct Capacity {
  Workload workload;
  std::string service;
  Sustainable load;
  std::uint32_t workers;  // 0: unknown
};

/// The names of rows begin with this: "serve.task.20us.flywheel".
std::string name_of(const std::string& workload, const std::string& service);

/// The row "<name>.sustainable" in M/s, with the first peer beside it, and with what the workers could do at most.
std::vector<measure::Row> capacity_rows(const std::vector<Capacity>& all, const measure::Stamp& stamp);
/// The rows "<name>.<step>.high" and "<name>.<step>.normal" in us; none for a priority without requests.
std::vector<measure::Row> latency_rows(const Measured& measured, const measure::Stamp& stamp);
/// The rows "<name>.high_excess": p99 in us of high priority at the largest overload above what it is alone on the idle
/// service. None for a service that lacks one of the two.
std::vector<measure::Row> excess_rows(const std::vector<Measured>& all, const measure::Stamp& stamp);

/// A line for each trial: loads, percentiles of both priorities in us, growth of resident memory in MiB.
void print(std::ostream& out, const std::vector<Measured>& all);

}  // namespace serve
