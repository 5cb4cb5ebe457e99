// The arguments of the program.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "apps/serve_bench/plan.hpp"

namespace serve {

struct Arguments {
  std::vector<std::string> workloads = {"task:20", "task:2", "batch:20", "graph:20"};
  std::vector<std::string> services = {};  // empty: all there are
  std::vector<double> fractions = {};      // empty: as Plan says
  std::vector<double> busy_fractions = {};
  double overload = 2;
  double seconds = 0;         // 0: 2, or 0.5 with --quick
  double search_seconds = 0;  // 0: a quarter of that
  std::uint32_t threads = 0;  // 0: half of the hardware threads, at most 8; on CPU workers a quarter
  std::uint32_t workers = 0;  // 0: all SMs, or half of the hardware threads
  std::uint32_t window = 0;   // 0: 512, on CPU workers 64
  bool no_busy = false;
  bool quick = false;
  std::string out = {};
  std::string commit = {};
};

void describe(CLI::App& app, Arguments& arguments);

/// Errors: std::invalid_argument naming the argument and the remedy.
Plan plan_of(const Arguments& arguments, bool on_gpu);
/// "task:20" is one task of 20 us a request. Errors: std::invalid_argument.
Workload parse_workload(const std::string& text);

}  // namespace serve
