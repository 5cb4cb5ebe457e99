// bench: measures what bounds the runtime on this card, what people use instead of it, and the runtime beside
// them.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <flywheel/version.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "apps/bench/runtime_rows.hpp"
#include "apps/measure/limits.hpp"
#include "apps/measure/results.hpp"

namespace bench {
namespace {

using namespace measure;

struct Options {
  std::string rows = "*";
  int rounds = 0;  // 0: five, or two with --quick
  std::string out = {};
  std::string commit = std::string(flywheel::git_commit());
  bool quick = false;
  std::uint64_t soak_tasks = 0;  // 0: 1e9 on a GPU, 1e6 on a CPU, with --quick a tenth
};

void describe(CLI::App& app, Options& options) {
  app.add_option("--rows", options.rows,
                 "Measure only the rows that match this shell pattern, and what they are compared with");
  app.add_option("--rounds", options.rounds, "Rounds in which the rows take turns (default 5, with --quick 2)")
      ->check(CLI::Range(1, 1000));
  app.add_option("--out", options.out, "Folder of the results file (default apps/bench/results; with --quick none)");
  app.add_option("--commit", options.commit, "Commit to write into the results");
  app.add_option("--soak-tasks", options.soak_tasks, "Tasks of the soak row (default 1e9 on a GPU)")
      ->check(CLI::PositiveNumber);
  app.add_flag("--quick", options.quick, "A tenth of the samples, for a first look; writes no file unless --out is given");
}

int rounds_of(const Options& options) {
  if (options.rounds > 0) return options.rounds;
  return options.quick ? 2 : 5;
}

std::vector<Measurement> all_rows(const Effort& effort, bool on_gpu, std::uint64_t soak_tasks) {
  if (!soak_tasks) soak_tasks = (on_gpu ? 1'000'000'000ull : 1'000'000ull) / (effort.quick ? 10 : 1);
  std::vector<Measurement> rows = limit_rows(effort);
  for (Measurement& row : runtime_rows(effort, on_gpu, soak_tasks)) rows.push_back(std::move(row));
  for (Measurement& row : submit_rows(effort, on_gpu)) rows.push_back(std::move(row));
  for (Measurement& row : grain_rows(effort, on_gpu)) rows.push_back(std::move(row));
  for (Measurement& row : uneven_rows(effort, on_gpu)) rows.push_back(std::move(row));
  for (Measurement& row : stream_rows(effort)) rows.push_back(std::move(row));
  for (Measurement& row : gemm_rows(effort)) rows.push_back(std::move(row));
  for (Measurement& row : queue_rows(effort)) rows.push_back(std::move(row));
  for (Measurement& row : phase_rows(effort)) rows.push_back(std::move(row));
  for (Measurement& row : cg_rows(effort)) rows.push_back(std::move(row));
  for (Measurement& row : yield_rows(effort)) rows.push_back(std::move(row));
  return rows;
}

// Names what failed and tells whether anything did.
bool report_failures(const std::vector<Measurement>& measurements, const std::vector<Outcome>& outcomes) {
  bool any = false;
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    if (outcomes[i].error.empty()) continue;
    any = true;
    std::cerr << "bench: row " << measurements[i].name << " failed: " << outcomes[i].error << '\n';
  }
  return any;
}

void show(const Report& report, const std::string& folder, const std::string& gpu) {
  report.print(std::cout);
  if (!folder.empty()) {
    const std::filesystem::path file = report.write(folder, gpu);
    std::cout << "Written to " << file.string() << '\n';
  }
  if (!std::cout.flush()) throw std::runtime_error("cannot write all of the output: free some space, or send it elsewhere");
}

int run(const Options& options) {
  const Gpu gpu = find_gpu();
  if (!gpu.present) std::cout << gpu.why_not << ". Only rows that run on a CPU are measured.\n";
  const Effort effort{.quick = options.quick};
  const std::vector<Measurement> measurements =
      select_rows(all_rows(effort, gpu.present, options.soak_tasks), options.rows, gpu.present);
  if (measurements.empty()) return 0;

  const std::string folder = measure::results_folder("bench", options.out, options.quick);
  if (!folder.empty()) prepare_results(std::filesystem::path(folder) / (slug(gpu.name) + ".json"));
  const auto progress = [](const std::string& name, int round) { std::cerr << "round " << round << "  " << name << '\n'; };
  const std::vector<Outcome> outcomes = interleave(measurements, rounds_of(options), progress);

  const Stamp stamp{.gpu = slug(gpu.name), .driver = gpu.driver, .date = today(), .commit = options.commit};
  Report report;
  for (const Row& row : make_rows(measurements, outcomes, stamp)) report.add(row);
  show(report, folder, stamp.gpu);
  return report_failures(measurements, outcomes) ? 1 : 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Options options;
  CLI::App app("Measures Flywheel beside the limits of this card and beside its peers.", "bench");
  bench::describe(app, options);
  CLI11_PARSE(app, argc, argv);
  try {
    return bench::run(options);
  } catch (const std::exception& error) {
    std::cerr << "bench: " << error.what() << '\n';
    return 1;
  }
}
