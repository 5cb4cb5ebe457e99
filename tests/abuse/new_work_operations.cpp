// Work without a graph: single tasks and batches; and runtimes that yield or pause meanwhile.
#include <thread>

#include "abuse/operations.hpp"

namespace flywheel::abuse {

namespace {
using std::chrono::nanoseconds;

/// What a task of the case is: task `i` of them all.
Alone task_of(const WorkCase& one, std::uint32_t i) {
  const bool special = i == one.outcome.spec->at;
  return {one.outcome.call, one.outcome.in, i, special ? one.outcome.spec->special : Special::none, one.outcome.spec->argument};
}

std::uint64_t result_of(const WorkCase& one, std::uint32_t i) { return one.outcome.in * 7 + i; }

std::shared_ptr<WorkCase> make_work(Actor& actor, const std::shared_ptr<Fate>& fate, Kind kind, std::uint32_t tasks) {
  auto spec = std::make_shared<Spec>();
  spec->kind = kind;
  spec->tasks = tasks;
  spec->special = tasks ? choose_special(actor, kind) : Special::none;
  spec->argument = choose_argument(actor, *fate, spec->special);
  spec->at = spec->special == Special::none ? ~0u : actor.dice.below(tasks);
  auto one = std::make_shared<WorkCase>();
  RunCase& outcome = one->outcome;
  outcome.fate = fate;
  outcome.spec = spec;
  outcome.call = new_call();
  outcome.call->mercy = fate->mercy;
  outcome.call->ticket = std::min(fate->mercy->load(std::memory_order_relaxed) + 1, kForEver);
  outcome.in = actor.dice.next();
  return one;
}

Priority some_priority(Actor& actor) {
  return actor.dice.of({Priority::high, Priority::normal, Priority::normal, Priority::low, Priority::inherit});
}

void start_single(Actor& actor, Room& room, WorkCase& one) {
  one.future = room.runtime.submit(task_of(one, 0), some_priority(actor));
}

/// Behind up to three runs of the same runtime, in whatever state they are.
void start_behind(Actor& actor, Room& room, WorkCase& one) {
  AfterRuns before;
  for (std::uint32_t i = actor.dice.below(4); i; --i) {
    const auto other = actor.stage.runs.get(actor.dice.below(kRuns));
    if (other && other->fate == one.outcome.fate) before.runs.push_back(other->run);
  }
  one.outcome.follows = true;
  one.future = room.runtime.submit(task_of(one, 0), before, some_priority(actor));
}

void start_batch(Actor& actor, Room& room, WorkCase& one) {
  std::vector<Alone> tasks;
  for (std::uint32_t i = 0; i < one.outcome.spec->tasks; ++i) tasks.push_back(task_of(one, i));
  one.batch = room.runtime.submit(tasks, some_priority(actor));
}

/// Every third task is of a type without a result.
void start_mixed(Actor& actor, Room& room, WorkCase& one) {
  BatchBuilder tasks;
  for (std::uint32_t i = 0; i < one.outcome.spec->tasks; ++i) {
    if (i % 3 == 2 && i != one.outcome.spec->at) tasks.add(AloneLeaf{one.outcome.call});
    else one.refs.emplace_back(i, tasks.add(task_of(one, i)));
  }
  one.mixed = room.runtime.submit_batch(tasks, some_priority(actor));
}

void call_at_end(const Fate& fate, Future<std::uint64_t> future) {
  tries(fate, "on_done() of a task", [&] {
    future.on_done([](Future<std::uint64_t>& ended) {
      if (!ended.done()) finding("a callback of a task is called before its end");
    });
  });
}

void start(Actor& actor, Kind kind, std::uint32_t tasks, void (*start_it)(Actor&, Room&, WorkCase&)) {
  const auto room = some_room(actor);
  if (!room) return;
  auto one = make_work(actor, room->fate, kind, tasks);
  const Spec& spec = *one->outcome.spec;
  actor.journal.note(" %u, %s %u at %u, by %u", tasks, kSpecialNames[static_cast<int>(spec.special)], spec.argument, spec.at,
                     room->fate->number);
  const WaitsOn waits(actor.journal, room->fate);
  if (!tries(*room->fate, "submit() of tasks", [&] { start_it(actor, *room, *one); })) return;
  if (kind == Kind::single && actor.dice.one_in(3)) call_at_end(*room->fate, one->future);
  actor.stage.works.put(actor.dice.below(kWorks), std::move(one));
}

/// Calls `f` with what stands for the work: a Future, a Batch or a MixedBatch.
template <class F>
decltype(auto) with(WorkCase& one, F&& f) {
  switch (one.outcome.spec->kind) {
    case Kind::single:
      return f(one.future);
    case Kind::batch:
      return f(one.batch);
    default:
      return f(one.mixed);
  }
}

void check_results(WorkCase& one) {
  const auto check = [&](std::size_t i, std::uint64_t result) {
    if (result != result_of(one, static_cast<std::uint32_t>(i)))
      finding("a wrong result of task " + std::to_string(i) + " of " + std::to_string(one.outcome.spec->tasks) +
              " without a graph");
  };
  if (one.outcome.spec->kind == Kind::single) check(0, one.future.get());
  for (const auto& [i, ref] : one.refs) check(i, one.mixed.get(ref));
  if (one.outcome.spec->kind != Kind::batch) return;
  std::size_t seen = 0;
  one.batch.for_each([&](std::size_t i, std::uint64_t result) {
    check(i, result);
    ++seen;
  });
  if (seen != one.batch.size()) finding("for_each() of a batch leaves tasks out");
  if (seen) check(seen / 2, one.batch.get(seen / 2));
}

void check_work(WorkCase& one) {
  try {
    with(one, [](auto& work) { work.wait(); });
  } catch (const RunError& error) {
    check_run_error(one.outcome, error);
    const Status status = with(one, [](auto& work) { return work.status(); });
    if (status != error.status()) finding("status() and wait() of work without a graph do not agree");
    return;
  }
  check_status(one.outcome, Status::ok);
  check_results(one);
  const std::uint32_t bodies = one.outcome.call->bodies, spawned = one.outcome.call->spawned;
  if (bodies != one.outcome.spec->tasks + spawned)
    finding(std::to_string(bodies) + " bodies of " + std::to_string(one.outcome.spec->tasks) + " tasks ran, of them " +
            std::to_string(spawned) + " spawned");
}

void misuse_empty() {
  Future<int> empty;
  const std::vector<std::string> words{"Future is empty", "Runtime::submit()"};
  refuses<UsageError>("wait() of an empty future", words, [&] { empty.wait(); });
  refuses<UsageError>("get() of an empty future", words, [&] { empty.get(); });
  refuses<UsageError>("done() of an empty future", words, [&] { empty.done(); });
  refuses<UsageError>("status() of an empty future", words, [&] { empty.status(); });
  refuses<UsageError>("cancel() of an empty future", words, [&] { empty.cancel(); });
  refuses<UsageError>("on_done() of an empty future", words, [&] { empty.on_done([](auto&) {}); });
  Batch<int> none;
  if (!none.done() || none.size() || none.status() != Status::ok) finding("a batch without tasks is not done");
  refuses<UsageError>("get() of an empty batch", {"no task 0"}, [&] { none.get(0); });
}
}  // namespace

void submit_single(Actor& actor) {
  const std::uint32_t times = actor.dice.one_in(6) ? actor.dice.below(40) : 1;
  for (std::uint32_t i = 0; i < times; ++i) start(actor, Kind::single, 1, actor.dice.one_in(4) ? start_behind : start_single);
}

void submit_range(Actor& actor) {
  start(actor, Kind::batch, actor.dice.of({0u, 1u, 3u, 40u, 511u, 512u, 513u, 1500u}), start_batch);
}

void submit_mixed(Actor& actor) { start(actor, Kind::mixed, actor.dice.of({0u, 1u, 2u, 30u, 700u}), start_mixed); }

void submit_new_badly(Actor& actor) {
  misuse_empty();
  const auto room = some_room(actor);
  if (!room) return;
  const WaitsOn waits(actor.journal, room->fate);
  Runtime& runtime = room->runtime;
  const std::vector<Stranger> strangers(2);
  BatchBuilder builder;
  builder.add(Stranger{});
  const std::vector<std::string> stranger{"Stranger"}, lost{"buffer 'word'", "null"};
  refuses<GraphError>("submit() of a stranger", stranger, [&] { runtime.submit(Stranger{}); });
  refuses<GraphError>("submit() of strangers", stranger, [&] { runtime.submit(strangers); });
  refuses<GraphError>("submit_batch() of a stranger", stranger, [&] { runtime.submit_batch(builder); });
  refuses<GraphError>("submit() of a task without its buffer", lost, [&] { runtime.submit(Checked{{}, nullptr}); });
  try {
    runtime.submit(Raiser{{}, true});
    finding("submit() of a task whose buffers() throws does not");
  } catch (const FromCallback&) {}
}

void finish_work(Actor& actor) {
  const auto one = actor.stage.works.get(actor.dice.below(kWorks));
  if (!one) return;
  const WaitsOn waits(actor.journal, one->outcome.fate);
  actor.journal.note(" %s of %u, %s, of %u", kKindNames[static_cast<int>(one->outcome.spec->kind)], one->outcome.spec->tasks,
                     kSpecialNames[static_cast<int>(one->outcome.spec->special)], one->outcome.fate->number);
  std::scoped_lock lock(one->mutex);
  if (actor.dice.one_in(4)) {
    one->outcome.cancelled = true;
    with(*one, [](auto& work) { work.cancel(); });
  }
  const auto limit = actor.dice.of(
      {nanoseconds::min(), nanoseconds(-1), nanoseconds(0), nanoseconds(1000), nanoseconds(300'000), nanoseconds::max()});
  const bool ended = with(*one, [&](auto& work) { return work.wait_for(limit); });
  if (limit == nanoseconds::max() && !ended) finding("wait_for() of work without a graph gives up without a limit");
  if (ended && !with(*one, [](auto& work) { return work.done(); })) finding("work without a graph that ended is not done");
  if (ended || actor.dice.one_in(2)) check_work(*one);
}

void drop_work(Actor& actor) { actor.stage.works.put(actor.dice.below(kWorks), nullptr); }

void yield_runtime(Actor& actor) {
  const auto room = some_room(actor);
  if (!room) return;
  actor.journal.note(" %u", room->fate->number);
  for (std::uint32_t i = actor.dice.between(1, 4); i; --i) room->runtime.yield();
}

void pause_runtime(Actor& actor) {
  const auto room = some_room(actor);
  if (!room) return;
  actor.journal.note(" %u", room->fate->number);
  const WaitsOn waits(actor.journal, room->fate);
  const Fate& fate = *room->fate;
  try {
    const Pause guard(room->runtime);
    if (actor.dice.one_in(3)) const Pause nested(room->runtime);
    std::this_thread::sleep_for(std::chrono::microseconds(actor.dice.below(500)));
  } catch (const DeviceError& error) {
    const bool short_of_time = fate.options.shutdown_timeout < std::chrono::seconds(1);
    if (!short_of_time && !fate.tight && !fate.failing) finding(std::string("a Pause does not come: ") + error.what());
    check_message("Pause", error.what(), {"Options::shutdown_timeout", "Pause"});
  }
}

}  // namespace flywheel::abuse
