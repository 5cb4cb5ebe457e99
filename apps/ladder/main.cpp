// ladder: one product C = A B, rung after rung, and what each rung has bought; cuBLAS beside them.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <flywheel/version.hpp>
#include <iostream>
#include <stdexcept>
#include <string>

#include "apps/ladder/rows.hpp"
#include "apps/measure/limits.hpp"
#include "apps/measure/results.hpp"

namespace ladder {
namespace {

constexpr int kNoGpu = 77;

struct Options {
  int size = 4096;
  std::string rows = "*";
  int rounds = 5;
  std::string out = {};
  std::string commit = std::string(flywheel::git_commit());
  bool quick = false;
};

void describe(CLI::App& app, Options& options) {
  app.add_option("--size", options.size, "Rows and columns of the matrices")->capture_default_str();
  app.add_option("--rows", options.rows, "Only the rows that match this shell pattern, and what they are compared with");
  app.add_option("--rounds", options.rounds, "Rounds in which the rungs take turns")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--out", options.out, "Folder of the results file (default apps/ladder/results; with --quick none)");
  app.add_option("--commit", options.commit, "Commit to write into the results");
  app.add_flag("--quick", options.quick, "A tenth of the samples; writes no file unless --out is given");
}

std::string with_digits(double value, const char* format) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// A line a rung: what it is, how fast, how many times the rung before, and how much of cuBLAS.
void print(const std::vector<Step>& all, const std::vector<measure::Measurement>& measured,
           const std::vector<measure::Outcome>& outcomes, int n) {
  measure::TextTable lines = {{"rung", "idea", "ms", "TFLOP/s", "of the one before", "of cuBLAS"}};
  const std::vector<measure::Row> rows = measure::make_rows(measured, outcomes, {});
  double before = 0;
  for (const measure::Row& row : rows) {
    const auto step = std::find_if(all.begin(), all.end(), [&](const Step& one) { return one.row.name == row.name; });
    lines.push_back({row.name, step->idea, with_digits(2e-9 * n * n * n / row.value, "%.3f"), with_digits(row.value, "%.1f"),
                     before > 0 ? with_digits(row.value / before, "%.2fx") : "",
                     row.peer_value ? with_digits(100 * row.value / *row.peer_value, "%.0f%%") : ""});
    before = row.peer_value ? row.value : 0;  // a rung of floats
  }
  measure::print_aligned(std::cout, lines, {0, 1});
}

int report(const std::vector<measure::Measurement>& measured, const std::vector<measure::Outcome>& outcomes) {
  int failed = 0;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    if (outcomes[i].error.empty()) continue;
    std::cerr << "ladder: " << measured[i].name << " failed: " << outcomes[i].error << '\n';
    failed = 1;
  }
  return failed;
}

int run(const Options& options) {
  check_size(options.size);
  const measure::Gpu gpu = measure::find_gpu();
  if (!gpu.present) {
    std::cout << gpu.why_not << ". The ladder's rungs are kernels: they need one.\n";
    return kNoGpu;
  }
  const std::vector<Step> all = steps({.quick = options.quick}, options.size);
  std::vector<measure::Measurement> rows;
  for (const Step& step : all) rows.push_back(step.row);
  const std::vector<measure::Measurement> chosen = measure::select_rows(rows, options.rows, true);
  const std::string folder = measure::results_folder("ladder", options.out, options.quick);
  if (!folder.empty()) measure::prepare_results(std::filesystem::path(folder) / (measure::slug(gpu.name) + ".json"));
  const auto progress = [](const std::string& name, int round) { std::cerr << "round " << round << "  " << name << '\n'; };
  const std::vector<measure::Outcome> outcomes = measure::interleave(chosen, options.quick ? 2 : options.rounds, progress);
  print(all, chosen, outcomes, options.size);
  if (!folder.empty()) {
    const measure::Stamp stamp{
        .gpu = measure::slug(gpu.name), .driver = gpu.driver, .date = measure::today(), .commit = options.commit};
    measure::Report results;
    for (const measure::Row& row : measure::make_rows(chosen, outcomes, stamp)) results.add(row);
    std::cout << "Written to " << results.write(folder, stamp.gpu).string() << '\n';
  }
  if (!std::cout.flush()) throw std::runtime_error("cannot write all of the output: free some space, or send it elsewhere");
  return report(chosen, outcomes);
}

}  // namespace
}  // namespace ladder

int main(int argc, char** argv) {
  ladder::Options options;
  CLI::App app("Multiplies two matrices rung after rung, and prints what each has bought.", "ladder");
  ladder::describe(app, options);
  CLI11_PARSE(app, argc, argv);
  try {
    return ladder::run(options);
  } catch (const std::exception& error) {
    std::cerr << "ladder: " << error.what() << '\n';
    return 1;
  }
}
