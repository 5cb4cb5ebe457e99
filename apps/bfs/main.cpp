// bfs: breadth-first search of a grid and of an RMAT graph, and shortest paths, with exact distances; and how long they take,
// beside a CUDA graph with a kernel a level.
#include <exception>
#include <filesystem>
#include <iostream>
#include <stdexcept>

#include "apps/bfs/published.hpp"
#include "apps/bfs/trial.hpp"
#include "apps/measure/limits.hpp"

namespace bfs {
namespace {

namespace fs = std::filesystem;

/// Nothing is written if a search was wrong.
int show(const TrialResult& result, const std::string& folder, const std::string& gpu) {
  measure::Report report;
  for (const measure::Row& row : result.rows) report.add(row);
  report.print(std::cout);
  for (const measure::Row& row : result.rows) std::cout << row.name << ": " << row.numbers.front().second << " GTEPS\n";
  for (const char* one : kPublishedManyLevels) std::cout << "published, many levels: " << one << '\n';
  for (const char* one : kPublishedLargeLevels) std::cout << "published, large levels: " << one << '\n';
  for (const std::string& failure : result.failures) std::cerr << "bfs: " << failure << '\n';
  if (!folder.empty() && result.failures.empty()) std::cout << "Written to " << report.write(folder, gpu).string() << '\n';
  if (!std::cout.flush()) throw std::runtime_error("cannot write all of the output: free some space, or send it elsewhere");
  return result.failures.empty() ? 0 : 1;
}

int run(const Options& options, const measure::Gpu& gpu) {
  const std::string folder = measure::results_folder("bfs", options.out, options.quick);
  const measure::Stamp stamp{
      .gpu = measure::slug(gpu.name), .driver = gpu.driver, .date = measure::today(), .commit = options.commit};
  if (!folder.empty()) measure::prepare_results(fs::path(folder) / (stamp.gpu + ".json"));
  const auto engine = start_engine(gpu.present, options.workers);
  std::cout << engine->device() << '\n';
  TrialResult all;
  for (const Subject& subject : subjects_of(options)) {
    const TrialResult one = run_trial(*engine, subject, options, stamp, gpu.present, std::cout);
    all.rows.insert(all.rows.end(), one.rows.begin(), one.rows.end());
    all.failures.insert(all.failures.end(), one.failures.begin(), one.failures.end());
  }
  return show(all, folder, stamp.gpu);
}

}  // namespace
}  // namespace bfs

int main(int argc, char** argv) {
  bfs::Options options;
  CLI::App app("Searches graphs level by level and by weights, and compares every distance with a search on the host.", "bfs");
  bfs::describe(app, options);
  CLI11_PARSE(app, argc, argv);
  try {
    measure::Gpu gpu;
    if (!options.cpu) gpu = measure::find_gpu();
    if (!gpu.present) bfs::make_small(app, options);
    return bfs::run(options, gpu);
  } catch (const std::exception& error) {
    std::cerr << "bfs: " << error.what() << '\n';
    return 1;
  }
}
