// Runs: waited for, looked at, read, cancelled, copied, misused, dropped; by several threads, and after their runtime.
#include "abuse/operations.hpp"

namespace flywheel::abuse {

namespace {
std::shared_ptr<RunCase> some_run(Actor& actor) {
  auto one = actor.stage.runs.get(actor.dice.below(kRuns));
  if (one)
    actor.journal.note(" %s, %s %u, of %u", kKindNames[static_cast<int>(one->spec->kind)],
                       kSpecialNames[static_cast<int>(one->spec->special)], one->spec->argument, one->fate->number);
  return one;
}

void check_value(RunCase& one, std::uint64_t value) {
  const std::uint64_t all = std::uint64_t{one.spec->argument} * one.passes;
  if (one.spec->special != Special::emits || value >= all) finding("a run streams a value that none of its tasks emits");
  if (++one.values > all) finding("a run streams more values than its tasks emit");
}

/// Of an empty run: every call says so.
void check_empty(Run& run) {
  const std::vector<std::string> words{"Run is empty", "Runtime::submit()"};
  refuses<UsageError>("wait() of an empty run", words, [&] { run.wait(); });
  refuses<UsageError>("wait_for() of an empty run", words, [&] { run.wait_for(std::chrono::seconds(1)); });
  refuses<UsageError>("done() of an empty run", words, [&] { run.done(); });
  refuses<UsageError>("status() of an empty run", words, [&] { run.status(); });
  refuses<UsageError>("iterations() of an empty run", words, [&] { run.iterations(); });
  refuses<UsageError>("get() of an empty run", words, [&] { run.get(TaskRef<int>{}); });
  refuses<UsageError>("next() of an empty run", words, [&] { run.next<int>(); });
  refuses<UsageError>("try_next() of an empty run", words, [&] { run.try_next<int>(); });
  refuses<UsageError>("trace() of an empty run", words, [&] { run.trace(); });
  refuses<UsageError>("cancel() of an empty run", words, [&] { run.cancel(); });
  refuses<UsageError>("let_stream_wait() of an empty run", words, [&] { run.let_stream_wait(nullptr); });
}

void misuse_results(RunCase& one) {
  if (one.run.status() != Status::ok) {
    refuses<RunError>("get() of a failed run", {"Remedy: "}, [&] { one.run.get(TaskRef<int>{}); });
    return;
  }
  Graph other;
  const auto foreign = other.add(Step{});
  refuses<UsageError>("get() of a foreign task", {"another graph"}, [&] { one.run.get(foreign); });
  refuses<UsageError>("get() of no task", {"another graph"}, [&] { one.run.get(TaskRef<int>{}); });
  if (one.spec->refs.empty()) return;
  auto late = one.spec->refs.front();
  late.result_offset = 1u << 31;
  refuses<UsageError>("get() of a late task", {"after load()"}, [&] { one.run.get(late); });
}

void ask_stream(RunCase& one) {
  if (!one.fate->frailty)
    return refuses<UsageError>("let_stream_wait() on CPU workers", {"CUDA streams"}, [&] { one.run.let_stream_wait(nullptr); });
  std::scoped_lock lock(one.fate->stream);
  one.run.let_stream_wait(nullptr);
}
}  // namespace

void finish(RunCase& one) {
  try {
    one.run.wait();
  } catch (const RunError& error) {
    check_run_error(one, error);
    if (one.run.status() != error.status()) finding("status() and wait() do not agree");
    return;
  }
  check_status(one, Status::ok);
  check_success(one);
}

void wait(Actor& actor) {
  const auto one = some_run(actor);
  if (!one) return;
  const WaitsOn waits(actor.journal, one->fate);
  finish(*one);
  if (!one->run.done() || !one->run.wait_for(std::chrono::nanoseconds(0))) finding("a run that ended is not done");
  count(describe(one->run.status()).what);
}

void wait_for(Actor& actor) {
  const auto one = some_run(actor);
  if (!one) return;
  const WaitsOn waits(actor.journal, one->fate);
  using std::chrono::nanoseconds;
  const auto limit = actor.dice.of({nanoseconds::min(), nanoseconds(-1), nanoseconds(0), nanoseconds(1000),
                                    nanoseconds(300'000), nanoseconds(5'000'000), nanoseconds::max()});
  const bool ended = one->run.wait_for(limit);
  if (limit == nanoseconds::max() && !ended) finding("wait_for() without a limit gives up");
  if (ended) finish(*one);
}

void look(Actor& actor) {
  const auto one = some_run(actor);
  if (!one || !one->run.done()) return;
  check_status(*one, one->run.status());
  if (one->run.iterations() > one->passes) finding("a run had more passes than it was told");
  const Trace& trace = one->run.trace();
  if (!one->traced && !trace.spans().empty()) finding("a run that was not traced has a trace");
  if (one->traced && actor.dice.one_in(4)) trace.report();
  if (one->traced && one->run.status() == Status::ok && trace.spans().empty() && !trace.dropped())
    finding("a traced run has no trace");
}

void read_stream(Actor& actor) {
  const auto one = some_run(actor);
  if (!one) return;
  const WaitsOn waits(actor.journal, one->fate);
  for (std::uint32_t i = actor.dice.below(50); i; --i) {
    const auto value = actor.dice.one_in(4) ? one->run.next<std::uint64_t>() : one->run.try_next<std::uint64_t>();
    if (value) check_value(*one, *value);
  }
  if (actor.dice.one_in(2)) return;
  while (const auto value = one->run.next<std::uint64_t>()) check_value(*one, *value);
  const bool alone = actor.settings.threads == 1 && actor.depth == 0;
  if (alone && one->spec->special == Special::emits && one->run.status() == Status::ok &&
      one->values != one->spec->argument * one->passes)
    finding("a run lost streamed values");
}

void cancel(Actor& actor) {
  const auto one = some_run(actor);
  if (!one) return;
  const WaitsOn waits(actor.journal, one->fate);
  one->cancelled = true;
  for (std::uint32_t i = actor.dice.between(1, 3); i; --i) one->run.cancel();
  if (actor.dice.one_in(2)) finish(*one);
}

void misuse_run(Actor& actor) {
  Run empty;
  check_empty(empty);
  const auto one = some_run(actor);
  if (!one) return;
  const WaitsOn waits(actor.journal, one->fate);
  Run copy = one->run, moved = std::move(copy);
  check_empty(copy);
  if (moved.done()) misuse_results(*one);
  ask_stream(*one);
}

void copy_run(Actor& actor) {
  const auto one = some_run(actor), other = some_run(actor);
  if (!one || !other) return;
  Run copy = one->run;
  Run& alias = copy;
  copy = alias;
  copy = std::move(alias);
  copy.done();
  Run second = other->run;
  std::swap(copy, second);
  copy = second;  // the last one of `other`, perhaps
  actor.stage.runs.put(actor.dice.below(kRuns), one);
}

void drop_run(Actor& actor) { actor.stage.runs.put(actor.dice.below(kRuns), nullptr); }

}  // namespace flywheel::abuse
