// taskbench: the patterns of Task Bench, as the runtime executes them and as one would without it. The time of a step of empty
// tasks, and how small tasks may be: METG(50%).
#include <exception>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>

#include "apps/measure/limits.hpp"
#include "apps/measure/results.hpp"
#include "apps/taskbench/options.hpp"

namespace taskbench {
namespace {

namespace fs = std::filesystem;

/// Nothing is written if a system has failed.
int show(const Results& results, const std::string& folder, const std::string& gpu) {
  measure::Report report;
  for (const measure::Row& row : results.rows) report.add(row);
  report.print(std::cout);
  for (const std::string& note : results.notes) std::cout << note << '\n';
  for (const std::string& failure : results.failures) std::cerr << "taskbench: " << failure << '\n';
  if (!folder.empty() && results.failures.empty()) std::cout << "Written to " << report.write(folder, gpu).string() << '\n';
  if (!std::cout.flush()) throw std::runtime_error("cannot write all of the output: free some space, or send it elsewhere");
  return results.failures.empty() ? 0 : 1;
}

int run(const Arguments& arguments) {
  measure::Gpu gpu;
  if (!arguments.cpu) gpu = measure::find_gpu();
  if (!gpu.present && !arguments.cpu) std::cout << gpu.why_not << ". The tasks run on CPU workers, without peers.\n";
  const std::string folder = measure::results_folder("taskbench", arguments.out, arguments.quick);
  const measure::Stamp stamp{
      .gpu = measure::slug(gpu.name), .driver = gpu.driver, .date = measure::today(), .commit = arguments.commit};
  if (!folder.empty()) measure::prepare_results(fs::path(folder) / (stamp.gpu + ".json"));
  const auto host = start_host(gpu.present, arguments.workers);
  const Plan plan = plan_of(arguments, gpu.present, host->workers());
  return show(run_plan(*host, plan, stamp, [](const std::string& what) { std::cerr << what << '\n'; }), folder, stamp.gpu);
}

}  // namespace
}  // namespace taskbench

int main(int argc, char** argv) {
  taskbench::Arguments arguments;
  arguments.commit = std::string(flywheel::git_commit());
  CLI::App app("Measures the patterns of Task Bench, of Flywheel and of what one would use instead.", "taskbench");
  taskbench::describe(app, arguments);
  CLI11_PARSE(app, argc, argv);
  try {
    return taskbench::run(arguments);
  } catch (const std::exception& error) {
    std::cerr << "taskbench: " << error.what() << '\n';
    return 1;
  }
}
