#include "apps/taskbench/plan.hpp"

#include <algorithm>
#include <cmath>
#include <exception>

#include "apps/measure/limits.hpp"
#include "apps/taskbench/rows.hpp"

namespace taskbench {
namespace {

using measure::Measurement;
using measure::Outcome;

struct Subject {
  std::string name;
  std::unique_ptr<System> system;
};

/// A grain, and the work of all tasks with it, in iterations of the kernel.
struct Grain {
  double us;
  RunSettings settings;
  double work;
};

/// The systems of one case, in turns.
class CaseTurns {
 public:
  CaseTurns(Host& host, const Plan& plan, const Case& one, const measure::Stamp& stamp, Results& results,
            const Progress& progress)
      : host_(host),
        plan_(plan),
        case_(one),
        stamp_(stamp),
        results_(results),
        progress_(progress),
        problem_(make_problem(one.shape, one.graphs, plan.scratch_bytes)),
        places_(std::min<double>(host.workers(), 1.0 * problem_.width() * one.graphs)) {
    problem_.plant = plan.plant;
  }

  void run() {
    for (const std::string& name : plan_.systems) start(name);
    if (case_.steps) measure_steps();
    for (const Sweep& sweep : case_.sweeps)
      if (!plan_.grains.empty() && !subjects_.empty()) measure_sweep(sweep);
  }

 private:
  using Quiet = std::shared_ptr<void>;
  /// Peers need the GPU to themselves.
  Quiet quiet_for(const std::string& system) const { return is_peer(system) ? host_.pause() : nullptr; }

  void start(const std::string& name) {
    const std::string whole = prefix_of(case_) + "." + name;
    const std::string reason = is_peer(name) ? why_not(name, problem_) : "";
    if (!reason.empty()) return results_.notes.push_back(whole + ": left out, " + reason);
    progress_(whole + ": making it ready");
    try {
      const Quiet quiet = quiet_for(name);
      subjects_.push_back({name, is_peer(name) ? make_peer(name, problem_) : host_.make(name, problem_)});
    } catch (const std::exception& error) {
      results_.failures.push_back(whole + ": " + error.what());
    }
  }

  /// Runs a system for its turn, and checks what it has left. us of a run.
  measure::Samples take_turn(const Subject& subject, RunSettings settings) {
    const Quiet quiet = quiet_for(subject.name);
    const auto next = [&] {
      settings.run = static_cast<std::uint16_t>(runs_ % 65'535 + 1);
      ++runs_;
      return subject.system->run(settings);
    };
    constexpr std::size_t kLeast = 3, kMost = 50;
    measure::Samples times;
    next();
    for (double spent = 0; times.size() < kLeast || (times.size() < kMost && spent < plan_.turn_us); spent += times.back())
      times.push_back(next());
    check(*subject.system, problem_, settings);
    return times;
  }

  /// A row of one system whose samples are run times, times `scale`.
  Measurement row_of(const std::string& prefix, const std::string& what, const Subject& subject, const RunSettings& settings,
                     double scale) {
    return {.name = row_name(prefix, subject.name, what),
            .unit = "us",
            .peer = is_peer(subject.name) ? "" : row_name(prefix, kPeer, what),
            .round = [this, &subject, settings, scale] {
              measure::Samples times = take_turn(subject, settings);
              for (double& time : times) time *= scale;
              return times;
            }};
  }

  std::vector<Outcome> interleave(const std::vector<Measurement>& rows) {
    return measure::interleave(rows, plan_.rounds, [&](const std::string& name, int round) {
      progress_("round " + std::to_string(round) + "  " + name);
    });
  }

  /// The rows that succeeded, without peers that are not there. Says what failed.
  std::vector<measure::Row> keep(std::vector<Measurement> rows, const std::vector<Outcome>& outcomes) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (!outcomes[i].error.empty()) results_.failures.push_back(rows[i].name + ": " + outcomes[i].error);
    for (Measurement& row : rows)
      if (std::ranges::find(rows, row.peer, &Measurement::name) == rows.end()) row.peer.clear();
    return make_rows(rows, outcomes, stamp_);
  }

  void measure_steps() {
    std::vector<Measurement> rows;
    for (const Subject& subject : subjects_)
      rows.push_back(row_of(prefix_of(case_), "step", subject, {}, 1.0 / problem_.steps()));
    const std::size_t systems = rows.size();
    add_limit(rows);
    const std::vector<Outcome> outcomes = interleave(rows);
    for (measure::Row& row : keep(rows, outcomes))
      if (row.name.starts_with("grain.")) results_.rows.push_back(std::move(row));  // not the limit, which is in the others
    std::vector<Subject> well;
    for (std::size_t i = 0; i < systems; ++i)
      if (outcomes[i].error.empty()) well.push_back(std::move(subjects_[i]));
    subjects_.swap(well);
  }

  /// Points that read others wait for a flag from SM to SM, at least.
  void add_limit(std::vector<Measurement>& rows) {
    const Pattern pattern = case_.shape.pattern;
    if (pattern == Pattern::trivial || pattern == Pattern::no_comm || problem_.width() == 1) return;
    for (Measurement& limit : measure::limit_rows({.quick = true})) {
      if (limit.name != "limit.hop" || !plan_.on_gpu) continue;
      for (Measurement& row : rows) row.limit = limit.name;
      limit.round = [this, round = limit.round] {
        const Quiet quiet = host_.pause();
        return round();
      };
      rows.push_back(std::move(limit));
    }
  }

  void measure_sweep(const Sweep& sweep) {
    const std::string prefix = prefix_of(case_, sweep);
    const std::vector<Grain> grains = grains_of(sweep, prefix);
    const double scale = places_ / static_cast<double>(problem_.tasks());
    std::vector<Measurement> rows;
    for (const Grain& grain : grains)
      for (const Subject& subject : subjects_)
        rows.push_back(row_of(prefix, at_grain(grain.us), subject, grain.settings, scale));
    const std::vector<Outcome> outcomes = interleave(rows);
    add_sweep(prefix, grains, keep(rows, outcomes), scale);
  }

  /// The plan's grains in iterations of the kernel. Those that are hardly one iteration are left out.
  std::vector<Grain> grains_of(const Sweep& sweep, const std::string& prefix) {
    const auto one = host_.make("dynamic", make_problem({.width = 1, .steps = 1}, 1, plan_.scratch_bytes));
    const double iteration_us = us_of_iteration(*one, sweep.kernel);
    std::vector<Grain> grains;
    for (const double us : plan_.grains) {
      const double iterations = std::min(std::round(us / iteration_us), 4e9);
      if (iterations < 2) {
        results_.notes.push_back(prefix + "." + at_grain(us) + ": left out, an iteration of the kernel takes " +
                                 std::to_string(iteration_us) + " us; raise --smallest");
        continue;
      }
      const RunSettings settings{
          .iterations = static_cast<std::uint32_t>(iterations), .kernel = sweep.kernel, .imbalance = sweep.imbalance};
      grains.push_back({us, settings, static_cast<double>(problem_.work(settings))});
    }
    return grains;
  }

  /// The curve of each system, from its rows. `scale`: the time of a task over that of a run.
  void add_sweep(const std::string& prefix, const std::vector<Grain>& grains, std::vector<measure::Row> rows, double scale) {
    std::vector<Curve> curves;
    for (const Subject& subject : subjects_) {
      std::vector<GrainPoint> points;
      std::vector<std::pair<measure::Row*, const Grain*>> found;
      for (const Grain& grain : grains) {
        const auto row = std::ranges::find(rows, row_name(prefix, subject.name, at_grain(grain.us)), &measure::Row::name);
        if (row == rows.end()) continue;
        points.push_back({grain.us, row->value, grain.work * scale / row->value});
        found.emplace_back(&*row, &grain);
      }
      points = with_efficiency(points);
      for (std::size_t i = 0; i < points.size(); ++i) add_numbers(*found[i].first, points[i], found[i].second->settings);
      curves.push_back({subject.name, points});
    }
    for (measure::Row& row : rows) results_.rows.push_back(std::move(row));
    for (measure::Row& row : metg_rows(prefix, curves, stamp_, results_.notes)) results_.rows.push_back(std::move(row));
  }

  static void add_numbers(measure::Row& row, const GrainPoint& point, const RunSettings& settings) {
    row.numbers = {{"grain_us", measure::five_digits(point.grain_us)},
                   {"iterations", static_cast<double>(settings.iterations)},
                   {"efficiency", measure::five_digits(point.efficiency)},
                   {"iterations_per_us", measure::five_digits(point.rate)}};
  }

  Host& host_;
  const Plan& plan_;
  const Case& case_;
  const measure::Stamp& stamp_;
  Results& results_;
  const Progress& progress_;
  Problem problem_;
  const double places_;  // tasks that can run at once
  std::vector<Subject> subjects_;
  std::uint32_t runs_ = 0;
};

}  // namespace

double us_of_iteration(System& one_point, Kernel kernel) {
  const auto least_us = [&](std::uint32_t iterations) {
    double least = 1e300;
    for (int i = 0; i < 5; ++i) least = std::min(least, one_point.run({.iterations = iterations, .kernel = kernel}));
    return least;
  };
  constexpr double kEnoughUs = 2'000, kLongUs = 50'000;  // far above the differences between two runs; where all else is little
  double least = 1e300;
  for (std::uint32_t iterations = 64;; iterations *= 2) {
    const double once = least_us(iterations), difference = least_us(2 * iterations) - once;
    // Twice the work takes at most twice the time, unless something else was in the way. Two lengths have to agree.
    if (difference >= kEnoughUs && difference <= 1.1 * once) {
      const double found = difference / iterations;
      const bool agree = found <= 1.25 * least && least <= 1.25 * found;
      least = std::min(least, found);
      if (agree) return least;
    }
    if (once >= kLongUs || iterations >= 1u << 30) return std::min(least, once / iterations);
  }
}

Results run_plan(Host& host, const Plan& plan, const measure::Stamp& stamp, const Progress& progress) {
  Results results;
  for (const Case& one : plan.cases) CaseTurns(host, plan, one, stamp, results, progress).run();
  return results;
}

}  // namespace taskbench
