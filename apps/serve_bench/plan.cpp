#include "apps/serve_bench/plan.hpp"

#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>

namespace serve {
namespace {

/// A service under measurement.
struct Subject {
  std::string name;
  std::unique_ptr<Service> service;
  std::uint64_t expected_sum = 0;  // of the values of all tasks that clients have begun
  double sustainable = 0;          // requests a second
};

class Turns {
 public:
  Turns(const Plan& plan, const Workload& workload, Results& results, const Progress& progress, const StartService& start)
      : plan_(plan),
        workload_(workload),
        results_(results),
        progress_(progress),
        start_(start) {}

  void run() {
    for (const std::string& name : plan_.services) attempt(name, [&] { start(name); });
    for (const Step& step : steps_of(plan_))
      for (Subject& subject : subjects_)
        if (subject.service) attempt(subject.name, [&] { measure(subject, step); });
  }

 private:
  template <class Action>
  void attempt(const std::string& service, Action&& action) {
    try {
      action();
    } catch (const std::exception& error) {
      fail(service, error.what());
    }
  }

  void fail(const std::string& service, const std::string& why) {
    results_.failures.push_back(name_of(workload_.name(), service) + ": " + why);
    for (Subject& subject : subjects_)
      if (subject.name == service) subject.service.reset();
  }

  void start(const std::string& name) {
    ServiceOptions options = plan_.options;
    options.workload = workload_;
    Subject& subject = subjects_.emplace_back(Subject{name, start_(name, options)});
    progress_(name_of(workload_.name(), name) + ": the sustainable load");
    const auto try_load = [&](const Load& load) { return checked_trial(subject, load, false); };
    const Sustainable load = find_sustainable(try_load, plan_.search_seconds, plan_.high_share);
    subject.sustainable = load.per_second;
    results_.capacities.push_back({workload_, name, load, subject.service->workers()});
  }

  void measure(Subject& subject, const Step& step) {
    progress_(name_of(workload_.name(), subject.name) + ": " + step.name);
    const Load load{.per_second = step.fraction * subject.sustainable,
                    .high_share = step.high_share,
                    .seconds = plan_.seconds,
                    .drain_seconds = 10 + 10 * plan_.seconds};
    results_.measured.push_back({workload_.name(), subject.name, step.name, step.fraction, load.per_second,
                                 checked_trial(subject, load, step.busy_cores)});
  }

  /// Each trial has a seed of its own, so that no answer of an earlier one is right.
  Trial checked_trial(Subject& subject, Load load, bool busy_cores) {
    load.seed = ++trials_;
    constexpr std::chrono::milliseconds kUntilParked{60};  // the runtime's kernel leaves the GPU after 20 ms without work
    if (plan_.options.on_gpu) std::this_thread::sleep_for(kUntilParked);
    Trial trial = run_trial(*subject.service, workload_, load, plan_.options.clients, busy_cores);
    subject.expected_sum += trial.sum();
    if (trial.lost()) throw std::runtime_error(std::to_string(trial.lost()) + " requests were not answered in time");
    if (trial.wrong()) throw std::runtime_error(std::to_string(trial.wrong()) + " answers were wrong");
    if (subject.service->sum() != subject.expected_sum)
      throw std::runtime_error("the sum that the tasks left is wrong: some were lost or ran twice");
    return trial;
  }

  const Plan& plan_;
  const Workload workload_;
  Results& results_;
  const Progress& progress_;
  const StartService& start_;
  std::vector<Subject> subjects_;
  std::uint64_t trials_ = 0;
};

std::string step_name(const char* prefix, double fraction) {
  char text[48];
  std::snprintf(text, sizeof text, "%sx%.2f", prefix, fraction);
  return text;
}

}  // namespace

std::vector<Step> steps_of(const Plan& plan) {
  constexpr double kAlone = 0.05;  // so little that requests hardly meet
  std::vector<Step> steps{{step_name("alone.", kAlone), kAlone, 1, false}};
  for (const double fraction : plan.fractions) steps.push_back({step_name("", fraction), fraction, plan.high_share, false});
  if (plan.overload > 0) steps.push_back({step_name("", plan.overload), plan.overload, plan.high_share, false});
  for (const double fraction : plan.busy_fractions)
    steps.push_back({step_name("busy.", fraction), fraction, plan.high_share, true});
  return steps;
}

Results run_plan(const Plan& plan, const Progress& progress, const StartService& start) {
  Results results;
  for (const Workload& workload : plan.workloads) Turns(plan, workload, results, progress, start).run();
  return results;
}

}  // namespace serve
