#include "apps/taskbench/options.hpp"

#include <algorithm>
#include <stdexcept>

#include "apps/taskbench/metg.hpp"
#include "apps/taskbench/rows.hpp"

namespace taskbench {
namespace {

void describe_graphs(CLI::App& app, Arguments& arguments) {
  app.add_option("--patterns", arguments.patterns, "Dependences, as in the paper: stencil_1d,fft (default: all)")
      ->delimiter(',');
  app.add_option("--widths", arguments.widths,
                 "Points of a step (default: one a worker, 16 at least; stencil_1d also four times that)")
      ->delimiter(',');
  app.add_option("--steps", arguments.steps, "Steps of a graph (default 300, on CPU workers 50; all_to_all fewer)")
      ->check(CLI::PositiveNumber);
  app.add_option("--graphs", arguments.graphs, "Graphs side by side, 1 to 4")->check(CLI::Range(1, 4));
  app.add_option("--radix", arguments.radix, "Inputs of nearest, spread and random_nearest")->capture_default_str();
  app.add_option("--period", arguments.period, "Steps after which inputs of spread and random_nearest repeat")
      ->capture_default_str();
  app.add_option("--fraction", arguments.fraction, "random_nearest: the probability of an input")->capture_default_str();
  app.add_option("--seed", arguments.seed, "What random inputs and imbalance follow from")->capture_default_str();
}

void describe_tasks(CLI::App& app, Arguments& arguments) {
  app.add_option("--kernels", arguments.kernels, "Of empty (the time of a step), compute, memory and busy_wait")
      ->delimiter(',');
  app.add_option("--imbalances", arguments.imbalances, "Of none, uniform (0.5 to 1.5) and lognormal (sigma 0.5)")
      ->delimiter(',');
  app.add_option("--grain", arguments.grain, "Time of a task in us: this one alone, so no METG")->check(CLI::Range(0.01, 1e6));
  app.add_option("--largest", arguments.largest, "The sweep goes from this grain in us")->capture_default_str();
  app.add_option("--smallest", arguments.smallest, "...down to this")->capture_default_str();
  app.add_option("--factor", arguments.factor, "...by this factor")->capture_default_str();
  app.add_option("--scratch", arguments.scratch_kb, "KB that a point of the memory kernel copies within")
      ->check(CLI::Range(8, 16384))
      ->capture_default_str();
  app.add_flag("--plant", arguments.plant, "One task writes a wrong cell: all systems have to fail");
}

/// By default a step has a point for each worker, but so many that every pattern has its inputs.
constexpr std::uint32_t kLeastWidth = 16;

/// All patterns in one graph; and for uneven tasks four graphs, where one may go on while another waits.
std::vector<Case> default_cases(std::uint32_t width) {
  std::vector<Case> cases;
  const auto add = [&](Pattern pattern, std::uint32_t points, std::uint32_t graphs, std::vector<Sweep> sweeps) {
    cases.push_back({.shape = {.pattern = pattern, .width = points}, .graphs = graphs, .sweeps = std::move(sweeps)});
  };
  for (const Pattern pattern : all_patterns()) add(pattern, width, 1, {{}});
  add(Pattern::stencil_1d, 4 * width, 1, {{}});
  const std::vector<Sweep> uneven = {{Kernel::compute, Imbalance::uniform}, {Kernel::compute, Imbalance::lognormal}};
  for (const Pattern pattern : {Pattern::stencil_1d, Pattern::random_nearest}) add(pattern, width, 4, uneven);
  return cases;
}

/// What was asked for, each with each.
std::vector<Case> chosen_cases(const Arguments& arguments, std::uint32_t width) {
  std::vector<Case> cases;
  std::vector<Pattern> patterns;
  for (const std::string& name : arguments.patterns) patterns.push_back(pattern_named(name));
  if (patterns.empty()) patterns = all_patterns();
  Case one{.shape = {}, .graphs = std::max(arguments.graphs, 1u), .steps = arguments.kernels.empty()};
  std::vector<std::string> kernels = arguments.kernels, imbalances = arguments.imbalances;
  if (kernels.empty()) kernels = {"compute"};
  if (imbalances.empty()) imbalances = {"none"};
  for (const std::string& kernel : kernels) {
    one.steps = one.steps || kernel == "empty";
    for (const std::string& imbalance : imbalances) {
      const Sweep sweep{kernel_named(kernel), imbalance_named(imbalance)};
      if (sweep.kernel != Kernel::empty) one.sweeps.push_back(sweep);
    }
  }
  for (const Pattern pattern : patterns)
    for (const std::uint32_t points : arguments.widths.empty() ? std::vector{width} : arguments.widths) {
      one.shape.pattern = pattern, one.shape.width = points;
      cases.push_back(one);
    }
  return cases;
}

/// A graph has at most about two million edges, since it is built and loaded several times.
std::uint32_t steps_of(const ShapeOptions& shape, std::uint32_t wanted) {
  if (shape.pattern != Pattern::all_to_all) return wanted;
  const std::uint64_t most = 2'000'000 / std::max<std::uint64_t>(std::uint64_t{shape.width} * shape.width, 1);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(wanted, std::max<std::uint64_t>(most, 10)));
}

std::vector<std::string> systems_of(const Arguments& arguments, bool on_gpu) {
  std::vector<std::string> all = runtime_names();
  if (on_gpu)
    for (const std::string& peer : peer_names()) all.push_back(peer);
  if (arguments.systems.empty()) return all;
  std::string known;
  for (const std::string& name : all) known += (known.empty() ? "" : ", ") + name;
  for (const std::string& name : arguments.systems)
    if (std::ranges::find(all, name) == all.end())
      throw std::invalid_argument("--systems: there is no '" + name + "' here: choose among " + known +
                                  "; peers need CUDA and a GPU");
  return arguments.systems;
}

}  // namespace

void describe(CLI::App& app, Arguments& arguments) {
  describe_graphs(app, arguments);
  describe_tasks(app, arguments);
  app.add_option("--systems", arguments.systems,
                 "dynamic, compiled, unplaced, stamped, warps, and on a GPU peers (default: all)")
      ->delimiter(',');
  app.add_option("--workers", arguments.workers, "Workers of the runtime (default: each SM, or each hardware thread)")
      ->check(CLI::Range(1, 4096));
  app.add_flag("--cpu", arguments.cpu, "CPU workers, also where there is a GPU; without peers");
  app.add_option("--rounds", arguments.rounds, "Rounds in which the systems take turns (default 5, with --quick 2)")
      ->check(CLI::Range(1, 1000));
  app.add_option("--out", arguments.out, "Folder of the results file (default apps/taskbench/results; with --quick none)");
  app.add_option("--commit", arguments.commit, "Commit to write into the results")->capture_default_str();
  app.add_flag("--quick", arguments.quick, "Short turns, for a first look; writes no file unless --out is given");
}

Plan plan_of(const Arguments& arguments, bool on_gpu, std::uint32_t workers) {
  const std::uint32_t width = std::max(workers, kLeastWidth);
  const bool chosen = !arguments.patterns.empty() || !arguments.widths.empty() || !arguments.kernels.empty() ||
                      !arguments.imbalances.empty() || arguments.graphs != 0;
  Plan plan;
  plan.cases = chosen ? chosen_cases(arguments, width) : default_cases(width);
  for (Case& one : plan.cases) {
    ShapeOptions& shape = one.shape;
    shape.radix = arguments.radix, shape.period = arguments.period;
    shape.fraction = arguments.fraction, shape.seed = arguments.seed;
    shape.steps = steps_of(shape, arguments.steps ? arguments.steps : on_gpu ? 300 : 50);
    make_problem(shape, one.graphs, arguments.scratch_kb << 10);  // says what cannot be before anything is measured
  }
  plan.systems = systems_of(arguments, on_gpu);
  plan.grains = arguments.grain > 0 ? std::vector{arguments.grain}
                                    : geometric_grains(arguments.largest, arguments.smallest, arguments.factor);
  plan.scratch_bytes = arguments.scratch_kb << 10;
  plan.rounds = arguments.rounds ? arguments.rounds : arguments.quick ? 2 : 5;
  if (arguments.quick) plan.turn_us = 2'000;
  plan.on_gpu = on_gpu;
  plan.plant = arguments.plant;
  return plan;
}

}  // namespace taskbench
