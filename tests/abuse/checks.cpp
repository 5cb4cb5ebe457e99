#include "abuse/checks.hpp"

#include <typeinfo>

namespace flywheel::abuse {

namespace {
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string text_of(const RunCase& one) {
  const Spec& spec = *one.spec;
  return std::string(kKindNames[static_cast<int>(spec.kind)]) + " graph of " + std::to_string(spec.tasks) +
         " tasks, special: " + kSpecialNames[static_cast<int>(spec.special)] + " " + std::to_string(spec.argument) + " at " +
         std::to_string(spec.at) + ", passes " + std::to_string(one.passes) + (one.cancelled ? ", cancelled" : "") +
         (one.fate->ends ? ", shut down" : "") + (one.fate->tight ? ", tight" : "") + ", runtime " +
         std::to_string(one.fate->number);
}

bool is_of(Status status, std::initializer_list<Status> some) {
  for (const Status one : some)
    if (status == one) return true;
  return false;
}

/// How a run ends that no operation disturbs.
Status natural_end(const Spec& spec) {
  switch (spec.special) {
    case Special::fails:
      return Status::task_failed;
    case Special::throws:
      return Status::task_threw;
    case Special::scratch:
      return Status::scratch_exhausted;
    case Special::spawns:
    case Special::forks:
      return spec.is_dynamic() ? Status::ok : Status::spawn_in_phase;
    case Special::turns:
      return spec.kind == Kind::dynamic ? Status::ok : Status::no_loop;
    default:
      return Status::ok;
  }
}
}  // namespace

void check_message(const char* action, const std::string& message, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    if (!has(message, word)) finding(std::string(action) + ": the message does not say '" + word + "': " + message);
  if (message == "the test does not want it") return;  // what CUDA would say stands there
  const bool tells_what_to_do = has(message, ": ") || has(message, ". ") || has(message, "(0)");
  if (message.size() < 20 || !tells_what_to_do) finding(std::string(action) + ": the message names no remedy: " + message);
}

void check_excuse(const Fate& fate, const char* action, const std::exception& error) {
  const std::string text = error.what();
  const bool closed = fate.ends && dynamic_cast<const UsageError*>(&error) && has(text, "was shut down");
  const bool dead = (fate.failing || fate.tight) && dynamic_cast<const DeviceError*>(&error);
  const auto* run = dynamic_cast<const RunError*>(&error);  // of the run that packs operands
  const bool ended = run && (fate.ends || fate.failing || fate.tight);
  const bool full = dynamic_cast<const CapacityError*>(&error) && has(text, "Options");
  if (!closed && !dead && !full && !ended) finding(std::string(action) + " throws " + typeid(error).name() + ": " + text);
  check_message(action, text, {});
}

void check_status(const RunCase& one, Status status) {
  const Fate& fate = *one.fate;
  if (status == natural_end(*one.spec)) return;
  const bool disturbed = fate.ends || fate.failing || fate.tight;
  if (status == Status::cancelled && (one.cancelled || disturbed)) return;
  if (status == Status::predecessor_failed && one.follows) return;
  if (status == Status::aborted && disturbed) return;
  if (status == Status::stream_stalled && disturbed) return;
  if (is_of(status, {Status::device_lost, Status::launch_refused, Status::workers_missing}) && (fate.failing || fate.tight))
    return;
  if (is_of(status, {Status::worker_stalled, Status::spin_budget_spent}) && (fate.tight || fate.failing)) return;
  finding("a run ended with status " + std::to_string(static_cast<std::uint32_t>(status)) + " (" + describe(status).what +
          "): " + text_of(one));
}

void check_run_error(const RunCase& one, const RunError& error) {
  const std::string text = error.what();
  check_status(one, error.status());
  if (!has(text, "Remedy: ")) finding("a run's message names no remedy: " + text);
  if (is_of(error.status(),
            {Status::task_failed, Status::task_threw, Status::scratch_exhausted, Status::spawn_in_phase, Status::no_loop})) {
    const bool is_single = one.spec->kind == Kind::single;
    if (!has(text, is_single ? "in a single task (" : "in task " + std::to_string(one.spec->at) + " ("))
      finding("a run's message names another task: " + text);
    if (error.status() == Status::task_threw && !has(text, kThrown))
      finding("a run's message does not say what was thrown: " + text);
    if (error.status() == Status::task_failed && error.user_code() != one.spec->argument) finding("another code: " + text);
  }
}

void check_success(RunCase& one) {
  const Spec& spec = *one.spec;
  std::uint32_t passes = one.passes;
  if (spec.special == Special::stops) passes = std::min(passes, spec.argument + 1);
  if (one.run.iterations() != passes) finding("a run had " + std::to_string(one.run.iterations()) + " passes: " + text_of(one));
  const std::uint32_t each = spec.kind == Kind::grid ? one.fate->options.workers : 1;
  const std::uint32_t bodies = one.call->bodies, spawned = one.call->spawned;
  if (bodies != spec.tasks * passes * each + spawned)
    finding(std::to_string(bodies) + " bodies ran, of them " + std::to_string(spawned) + " spawned: " + text_of(one));
  for (std::uint32_t i = 0; i < spec.refs.size(); ++i)
    if (one.run.get(spec.refs[i]) != one.in * 7 + i)
      finding("a wrong result of task " + std::to_string(i) + ": " + text_of(one));
}

}  // namespace flywheel::abuse
