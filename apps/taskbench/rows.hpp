// The names of rows, and what is computed from the samples of all systems.
#pragma once

#include <string>
#include <vector>

#include "apps/taskbench/metg.hpp"
#include "apps/taskbench/plan.hpp"

namespace taskbench {

/// Our executions are compared with this peer.
inline constexpr const char* kPeer = "levels";

/// "grain.stencil_132", "grain.fft_33.x4" for four graphs. In rows stencil_1d is "stencil", and likewise the periodic one.
std::string prefix_of(const Case& one);
/// The same with what differs from a sweep of balanced compute-bound tasks: "grain.stencil_132.busy_wait.uniform".
std::string prefix_of(const Case& one, const Sweep& sweep);
/// "grain.stencil_132.compiled.step"
std::string row_name(const std::string& prefix, const std::string& system, const std::string& what);
/// "at_8us"
std::string at_grain(double grain_us);

std::string name_of(Kernel kernel);
std::string name_of(Imbalance imbalance);
/// Errors: std::invalid_argument naming the option.
Kernel kernel_named(const std::string& name);
Imbalance imbalance_named(const std::string& name);

/// A system's curve.
struct Curve {
  std::string system;
  std::vector<GrainPoint> points;
};
/// The rows of METG(50%). A system that has none gets a note instead.
std::vector<measure::Row> metg_rows(const std::string& prefix, const std::vector<Curve>& curves, const measure::Stamp& stamp,
                                    std::vector<std::string>& notes);

}  // namespace taskbench
