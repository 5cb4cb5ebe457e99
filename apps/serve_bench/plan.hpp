// Which trials there are, and in what order: first the sustainable load of each service, then the services in turns at each
// part of it, so that clocks and temperature touch all of them alike.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/serve_bench/rows.hpp"

namespace serve {

struct Plan {
  std::vector<Workload> workloads;
  std::vector<std::string> services;
  std::vector<double> fractions = {0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0};  // of the sustainable load
  std::vector<double> busy_fractions = {0.1, 0.5, 0.9};                        // with all host cores busy
  double overload = 2;                                                         // 0: none
  double seconds = 2;                                                          // of a trial
  double search_seconds = 0.5;  // of each trial of the search for the sustainable load
  double high_share = 0.1;
  ServiceOptions options = {};  // all but the workload
};

struct Step {
  std::string name;  // "alone.x0.05", "x0.50", "busy.x0.50"
  double fraction;
  double high_share;
  bool busy_cores;
};
/// The steps of a plan. The first has requests of high priority alone, on an idle service.
std::vector<Step> steps_of(const Plan& plan);

struct Results {
  std::vector<Capacity> capacities;
  std::vector<Measured> measured;
  std::vector<std::string> failures;  // a sentence each: what went wrong in which service
};

/// Told what is measured next.
using Progress = std::function<void(const std::string& what)>;
using StartService = std::function<std::unique_ptr<Service>(const std::string& name, const ServiceOptions& options)>;
/// Services that fail are named in the results, and the others go on. A service fails, too, if it loses a request, answers
/// wrongly or its tasks do not run exactly once each.
Results run_plan(const Plan& plan, const Progress& progress, const StartService& start = start_service);

}  // namespace serve
