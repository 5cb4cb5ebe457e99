// What a person chooses on the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <flywheel/version.hpp>
#include <string>

namespace bfs {

struct Options {
  std::uint32_t scale = 22;   // of the RMAT graph, 0: without it
  std::uint32_t grid = 2048;  // side of the grid, 0: without it
  std::uint32_t seed = 1;
  std::uint32_t roots = 4;    // of the RMAT graph
  std::uint32_t repeat = 9;   // searches of a system in a row, from each root
  std::uint32_t delta = 128;  // of delta stepping
  int rounds = 3;
  std::uint32_t workers = 0;
  bool cpu = false;
  bool quick = false;  // writes no file unless `out` is given
  std::string out = {};
  std::string commit = std::string(flywheel::git_commit());
};

/// Fills the options when the application parses its arguments.
void describe(CLI::App& app, Options& options);
/// Where the graphs' sizes were not asked for, CPU workers get small ones.
void make_small(const CLI::App& app, Options& options);

}  // namespace bfs
