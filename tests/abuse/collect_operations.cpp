// Many runs at once: queues, the first or all of several, callbacks, coroutines.
#include <coroutine>
#include <stdexcept>

#include "abuse/operations.hpp"

namespace flywheel::abuse {

namespace {
/// A coroutine that begins at once and belongs to nobody.
struct Detached {
  struct promise_type {
    Detached get_return_object() const { return {}; }
    std::suspend_never initial_suspend() const { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const {}
    void unhandled_exception() const { finding("a coroutine meets an exception that no run has"); }
  };
};

void check_end(RunCase& one, Run& run) {
  if (!run.done()) finding("a run whose end was told is not done");
  check_status(one, run.status());
}

Detached await_end(std::shared_ptr<RunCase> one) {
  try {
    Run run = co_await one->run;
    check_end(*one, run);
  } catch (const RunError& error) {
    check_run_error(*one, error);
  }
}

Detached await_end_by_executor(std::shared_ptr<RunCase> one) {
  const auto at_once = [](std::coroutine_handle<> coroutine) { coroutine.resume(); };
  try {
    Run run = co_await resume_on(at_once, one->run);
    check_end(*one, run);
  } catch (const RunError& error) {
    check_run_error(*one, error);
  }
}

std::vector<Run> some_runs(Actor& actor, const std::shared_ptr<Fate>& fate) {
  std::vector<Run> runs;
  for (std::uint32_t i = actor.dice.between(1, 6); i; --i) {
    const auto one = actor.stage.runs.get(actor.dice.below(kRuns));
    if (one && one->fate == fate) runs.push_back(one->run);
  }
  return runs;
}

void misuse_waits() {
  const std::vector<std::string> words{"Run is empty", "Runtime::submit()"};
  Run empty;
  refuses<UsageError>("on_done() of an empty run", words, [&] { empty.on_done([](Run&) {}); });
  refuses<UsageError>("when_any() of an empty run", words, [&] { when_any(empty); });
  refuses<UsageError>("when_all() of an empty run", words, [&] { when_all(empty); });
  refuses<UsageError>("when_any() of no runs", {"no runs", "at least one"}, [] { when_any(std::vector<Run>()); });
}
}  // namespace

void QueueCase::check(const Finished& finished) {
  Run run = finished.run;
  if (!run.done()) finding("a run came out of its queue before its end");
  std::scoped_lock lock(mutex);
  if (!tags.erase(finished.tag)) finding("a run came out of its queue twice, or was never put there");
}

void open_queue(Actor& actor) {
  actor.stage.queues.put(actor.dice.below(kQueues), actor.dice.one_in(4) ? nullptr : std::make_shared<QueueCase>());
}

void take_finished(Actor& actor) {
  const auto one = actor.stage.queues.get(actor.dice.below(kQueues));
  if (!one) return;
  using std::chrono::nanoseconds;
  for (std::uint32_t i = actor.dice.below(12); i; --i) {
    const auto limit = actor.dice.of({nanoseconds::min(), nanoseconds(0), nanoseconds(20'000), nanoseconds(1'000'000)});
    const auto finished = actor.dice.one_in(2) ? one->queue.try_next_finished() : one->queue.next_finished_for(limit);
    if (finished) one->check(*finished);
  }
  one->queue.size();
}

void wait_for_several(Actor& actor) {
  misuse_waits();
  const auto first = actor.stage.runs.get(actor.dice.below(kRuns));
  if (!first) return;
  const WaitsOn waits(actor.journal, first->fate);
  std::vector<Run> runs = some_runs(actor, first->fate);
  runs.push_back(first->run);
  const auto limit =
      actor.dice.of({std::chrono::nanoseconds(-1), std::chrono::nanoseconds(0), std::chrono::nanoseconds(400'000)});
  if (actor.dice.one_in(2)) when_all_for(limit, runs);
  const auto soon = when_any_for(limit, runs);
  if (soon && !runs.at(*soon).done()) finding("when_any_for() names a run that is not done");
  if (!runs.at(when_any(runs)).done()) finding("when_any() names a run that is not done");
  if (actor.dice.one_in(2)) return;
  try {
    when_all(runs);
  } catch (const RunError&) {}
  if (!when_all_for(std::chrono::nanoseconds(0), runs)) finding("when_all() returns before all have ended");
}

void call_back(Actor& actor) {
  const auto one = actor.stage.runs.get(actor.dice.below(kRuns));
  if (!one) return;
  const WaitsOn waits(actor.journal, one->fate);
  const bool throws = actor.dice.one_in(4);
  const auto called = std::make_shared<std::atomic<bool>>(false);
  one->run.on_done([one, called, throws](Run& run) {
    if (called->exchange(true)) finding("a callback is called twice");
    check_end(*one, run);
    if (throws) throw std::runtime_error("of a callback");
  });
  if (!actor.dice.one_in(3)) return;
  finish(*one);
  for (int i = 0; i < 30'000 && !*called; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (!*called) finding("a callback of a run that has ended is not called");
}

void await_run(Actor& actor) {
  const auto one = actor.stage.runs.get(actor.dice.below(kRuns));
  if (!one) return;
  const WaitsOn waits(actor.journal, one->fate);
  if (actor.dice.one_in(3)) await_end_by_executor(one);
  else await_end(one);
}

}  // namespace flywheel::abuse
