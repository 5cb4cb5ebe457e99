#include "apps/serve_bench/options.hpp"

#include <algorithm>
#include <stdexcept>
#include <thread>

namespace serve {

void describe(CLI::App& app, Arguments& arguments) {
  const auto share = CLI::Range(0.001, 100.0);
  app.add_option(
         "--workloads", arguments.workloads,
         "What requests are, and the us of each task: task:20 (one task), batch:20 (16 tasks), graph:20 (a diamond of 4)")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--services", arguments.services, "flywheel, and on a GPU its peers launch and cuda_graph (default: all)")
      ->delimiter(',');
  app.add_option("--fractions", arguments.fractions, "Offered loads, as parts of the sustainable one")
      ->delimiter(',')
      ->check(share);
  app.add_option("--busy-fractions", arguments.busy_fractions, "The same for the trials with all host cores busy")
      ->delimiter(',')
      ->check(share);
  app.add_option("--overload", arguments.overload, "The overload, as a multiple of the sustainable load; 0: none")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  app.add_option("--seconds", arguments.seconds, "Arrivals of one trial (default 2, with --quick 0.5)")
      ->check(CLI::Range(0.05, 600.0));
  app.add_option("--search-seconds", arguments.search_seconds,
                 "Arrivals of one trial of the search for the sustainable load (default a quarter of --seconds)")
      ->check(CLI::Range(0.02, 600.0));
  app.add_option("--threads", arguments.threads, "Threads that send requests (default 8 at most)")->check(CLI::Range(1, 256));
  app.add_option("--workers", arguments.workers, "Workers of the runtime (default: each SM, or half of the hardware threads)")
      ->check(CLI::Range(1, 4096));
  app.add_option(
         "--window", arguments.window,
         "Most requests of normal priority in flight, of all threads; of high a quarter more (default 512, on CPU workers 64)")
      ->check(CLI::Range(4, 1 << 14));
  app.add_flag("--no-busy", arguments.no_busy, "No trials with all host cores busy");
  app.add_option("--out", arguments.out, "Folder of the results file (default apps/serve_bench/results; with --quick none)");
  app.add_option("--commit", arguments.commit, "Commit to write into the results")->capture_default_str();
  app.add_flag("--quick", arguments.quick, "Short trials at few loads, for a first look; writes no file unless --out is given");
}

Workload parse_workload(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon), us = colon == std::string::npos ? "20" : text.substr(colon + 1);
  Workload workload;
  if (kind == "task") workload.kind = Kind::task;
  else if (kind == "batch") workload.kind = Kind::batch;
  else if (kind == "graph") workload.kind = Kind::graph;
  else throw std::invalid_argument("--workloads: '" + text + "' is none: write task:20, batch:20 or graph:20");
  try {
    std::size_t end = 0;
    workload.task_us = std::stod(us, &end);
    if (end == us.size() && workload.task_us >= 0.1 && workload.task_us <= 1e6) return workload;
  } catch (const std::logic_error&) {  // no number, or one out of range: told below
  }
  throw std::invalid_argument("--workloads: '" + text + "': a task takes 0.1 to 1000000 us, as in task:20");
}

Plan plan_of(const Arguments& arguments, bool on_gpu) {
  Plan plan;
  const unsigned cores = std::max(std::thread::hardware_concurrency(), 1u);
  for (const std::string& text : arguments.workloads) plan.workloads.push_back(parse_workload(text));
  plan.services = arguments.services.empty() ? service_names(on_gpu) : arguments.services;
  for (const std::string& name : plan.services)
    if (std::ranges::count(service_names(on_gpu), name) == 0)
      throw std::invalid_argument("--services: there is no '" + name +
                                  "' here: write flywheel; with CUDA and a GPU also launch and cuda_graph");
  if (arguments.quick) plan.fractions = {0.25, 0.5, 0.9}, plan.busy_fractions = {0.5};
  if (!arguments.fractions.empty()) plan.fractions = arguments.fractions;
  if (!arguments.busy_fractions.empty()) plan.busy_fractions = arguments.busy_fractions;
  if (arguments.no_busy) plan.busy_fractions.clear();
  plan.overload = arguments.overload;
  plan.seconds = arguments.seconds > 0 ? arguments.seconds : arguments.quick ? 0.5 : 2;
  plan.search_seconds = arguments.search_seconds > 0 ? arguments.search_seconds : plan.seconds / 4;
  plan.options.on_gpu = on_gpu;
  plan.options.clients = arguments.threads ? arguments.threads : std::clamp(cores / (on_gpu ? 2 : 4), 1u, 8u);
  plan.options.workers = arguments.workers || on_gpu ? arguments.workers : std::max(cores / 2, 1u);
  plan.options.window = arguments.window ? arguments.window : on_gpu ? 512 : 64;
  return plan;
}

}  // namespace serve
