#include "apps/taskbench/rows.hpp"

#include <cstdio>
#include <stdexcept>

namespace taskbench {
namespace {

constexpr const char* kKernels[] = {"empty", "compute", "memory", "busy_wait"};
constexpr const char* kImbalances[] = {"none", "uniform", "lognormal"};

template <class Value, std::size_t n>
Value named(const std::string& name, const char* const (&names)[n], const char* option) {
  std::string known;
  for (std::size_t i = 0; i < n; ++i) {
    if (name == names[i]) return static_cast<Value>(i);
    known += (i ? ", " : "") + std::string(names[i]);
  }
  throw std::invalid_argument(std::string(option) + ": '" + name + "' is none: choose among " + known);
}

std::string short_name(Pattern pattern) {
  if (pattern == Pattern::stencil_1d) return "stencil";
  if (pattern == Pattern::stencil_1d_periodic) return "stencil_periodic";
  return name_of(pattern);
}

std::optional<double> metg_of(const std::vector<Curve>& curves, const std::string& system) {
  for (const Curve& curve : curves)
    if (curve.system == system) return metg(curve.points);
  return std::nullopt;
}

}  // namespace

std::string prefix_of(const Case& one) {
  const std::string name = "grain." + short_name(one.shape.pattern) + "_" + std::to_string(one.shape.width);
  return one.graphs == 1 ? name : name + ".x" + std::to_string(one.graphs);
}

std::string prefix_of(const Case& one, const Sweep& sweep) {
  std::string name = prefix_of(one);
  if (sweep.kernel != Kernel::compute) name += "." + name_of(sweep.kernel);
  if (sweep.imbalance != Imbalance::none) name += "." + name_of(sweep.imbalance);
  return name;
}

std::string row_name(const std::string& prefix, const std::string& system, const std::string& what) {
  return prefix + "." + system + "." + what;
}

std::string at_grain(double grain_us) {
  char text[32];
  std::snprintf(text, sizeof text, "at_%.4gus", grain_us);
  return text;
}

std::string name_of(Kernel kernel) { return kKernels[static_cast<int>(kernel)]; }
std::string name_of(Imbalance imbalance) { return kImbalances[static_cast<int>(imbalance)]; }
Kernel kernel_named(const std::string& name) { return named<Kernel>(name, kKernels, "--kernels"); }
Imbalance imbalance_named(const std::string& name) { return named<Imbalance>(name, kImbalances, "--imbalances"); }

std::vector<measure::Row> metg_rows(const std::string& prefix, const std::vector<Curve>& curves, const measure::Stamp& stamp,
                                    std::vector<std::string>& notes) {
  std::vector<measure::Row> rows;
  for (const Curve& curve : curves) {
    const std::string name = row_name(prefix, curve.system, "metg");
    const std::optional<double> found = metg(curve.points);
    if (!found) {
      notes.push_back(name + ": none, since no grain is below half of the best rate; lower --smallest");
      continue;
    }
    const double value = measure::five_digits(*found);
    measure::Row row{.name = name, .value = value, .unit = "us", .p50 = value, .p99 = value, .gpu = stamp.gpu};
    row.driver = stamp.driver, row.date = stamp.date, row.commit = stamp.commit;
    const std::optional<double> peer = is_peer(curve.system) ? std::nullopt : metg_of(curves, kPeer);
    if (peer) row.peer = row_name(prefix, kPeer, "metg"), row.peer_value = measure::five_digits(*peer);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace taskbench
