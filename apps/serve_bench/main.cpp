// serve_bench: requests that arrive at random, whether or not the service keeps up; latency against offered load, of the
// runtime and of what people use instead of it.
#include <stdlib.h>

#include <exception>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>

#include "apps/measure/limits.hpp"
#include "apps/measure/results.hpp"
#include "apps/serve_bench/options.hpp"

namespace serve {
namespace {

namespace fs = std::filesystem;

measure::Report report_of(const Results& results, const measure::Stamp& stamp) {
  measure::Report report;
  for (measure::Row& row : capacity_rows(results.capacities, stamp)) report.add(std::move(row));
  for (const Measured& measured : results.measured)
    for (measure::Row& row : latency_rows(measured, stamp)) report.add(std::move(row));
  for (measure::Row& row : excess_rows(results.measured, stamp)) report.add(std::move(row));
  return report;
}

void show(const Results& results, const measure::Stamp& stamp) {
  measure::Report summary;
  for (measure::Row& row : capacity_rows(results.capacities, stamp)) summary.add(std::move(row));
  for (measure::Row& row : excess_rows(results.measured, stamp)) summary.add(std::move(row));
  summary.print(std::cout);
  std::cout << '\n';
  print(std::cout, results.measured);
}

int run(const Arguments& arguments) {
  // Before the first CUDA call, for the peers: as many hardware queues for their streams as there are.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  const measure::Gpu gpu = measure::find_gpu();
  if (!gpu.present) std::cout << gpu.why_not << ". The runtime serves on CPU workers, without peers.\n";
  const Plan plan = plan_of(arguments, gpu.present);
  const std::string folder = measure::results_folder("serve_bench", arguments.out, arguments.quick);
  const measure::Stamp stamp{
      .gpu = measure::slug(gpu.name), .driver = gpu.driver, .date = measure::today(), .commit = arguments.commit};
  if (!folder.empty()) measure::prepare_results(fs::path(folder) / (stamp.gpu + ".json"));

  const Results results = run_plan(plan, [](const std::string& what) { std::cerr << what << '\n'; });
  show(results, stamp);
  for (const std::string& failure : results.failures) std::cerr << "serve_bench: " << failure << '\n';
  if (!folder.empty() && results.failures.empty())
    std::cout << "Written to " << report_of(results, stamp).write(folder, stamp.gpu).string() << '\n';
  if (!std::cout.flush()) throw std::runtime_error("cannot write all of the output: free some space, or send it elsewhere");
  return results.failures.empty() ? 0 : 1;
}

}  // namespace
}  // namespace serve

int main(int argc, char** argv) {
  serve::Arguments arguments;
  arguments.commit = std::string(flywheel::git_commit());
  CLI::App app("Measures latency against offered load, of Flywheel and of launches and CUDA graphs.", "serve_bench");
  serve::describe(app, arguments);
  CLI11_PARSE(app, argc, argv);
  try {
    return serve::run(arguments);
  } catch (const std::exception& error) {
    std::cerr << "serve_bench: " << error.what() << '\n';
    return 1;
  }
}
