// Submissions, right and wrong.
#include "abuse/operations.hpp"

namespace flywheel::abuse {

namespace {
std::shared_ptr<LoadedCase> some_loaded(Actor& actor) { return actor.stage.loaded.get(actor.dice.below(kLoaded)); }

std::uint32_t choose_passes(Actor& actor, const LoadedCase& loaded) {
  const Spec& spec = *loaded.spec;
  const std::uint32_t passes = actor.dice.of({1u, 1u, 1u, 2u, 5u, 40u});
  if (spec.special == Special::endless || spec.special == Special::deaf) return 1;
  if (spec.special == Special::emits && !loaded.fate->tight && spec.argument * passes > loaded.fate->options.stream_unread)
    return 1;
  return passes;
}

std::shared_ptr<RunCase> make_run(Actor& actor, const LoadedCase& loaded) {
  auto one = std::make_shared<RunCase>();
  one->fate = loaded.fate;
  one->spec = loaded.spec;
  one->call = new_call();
  one->call->mercy = loaded.fate->mercy;
  one->call->ticket = std::min(loaded.fate->mercy->load(std::memory_order_relaxed) + 1, kForEver);
  one->in = actor.dice.next();
  one->passes = choose_passes(actor, loaded);
  one->traced = loaded.fate->options.trace_events && actor.dice.one_in(loaded.spec->is_compiled() ? 3 : 8);
  return one;
}

/// Through a queue, if there is one.
Run submit_to_queue(Actor& actor, Room& room, const LoadedCase& loaded, const RunCase& one) {
  const Spec& spec = *loaded.spec;
  const auto queue = actor.stage.queues.get(actor.dice.below(kQueues));
  const auto call = set(spec.call, one.call);
  const auto in = set(spec.in, one.in);
  if (!queue) return room.runtime.submit(loaded.executable, call, in, repeat(one.passes));
  static std::atomic<std::uint64_t> last{0};
  const std::uint64_t tag = ++last;
  const auto note = [&](bool there) {
    std::scoped_lock lock(queue->mutex);
    if (there) queue->tags.insert(tag);
    else queue->tags.erase(tag);
  };
  note(true);
  try {
    return room.runtime.submit(loaded.executable, call, notify(queue->queue, tag), in, repeat(one.passes));
  } catch (...) {
    note(false);
    throw;
  }
}

/// False if the backlog is full.
bool start(Actor& actor, Room& room, const LoadedCase& loaded, RunCase& one) {
  const Spec& spec = *loaded.spec;
  const auto call = set(spec.call, one.call);
  const auto in = set(spec.in, one.in);
  const auto priority = actor.dice.of({Priority::high, Priority::normal, Priority::normal, Priority::low, Priority::inherit});
  const std::uint32_t how = actor.dice.below(4);
  if (one.traced) {
    one.run = room.runtime.submit(loaded.executable, traced, call, repeat(one.passes), in, priority);
    return true;
  }
  if (how == 0) {
    auto run = room.runtime.try_submit(loaded.executable, in, call, repeat(one.passes), priority);
    if (run) one.run = std::move(*run);
    return run.has_value();
  }
  if (how == 2) one.run = submit_to_queue(actor, room, loaded, one);
  else if (how == 1) one.run = room.runtime.submit(loaded.executable, priority, repeat_until_stop(one.passes), call, in);
  else one.run = room.runtime.submit(loaded.executable, call, in, repeat(one.passes), priority);
  return true;
}
}  // namespace

std::shared_ptr<RunCase> submit_one(Actor& actor, const std::shared_ptr<LoadedCase>& loaded) {
  const auto room = loaded->room.lock();
  if (!room) return nullptr;
  auto one = make_run(actor, *loaded);
  actor.journal.note(" %s, %s %u, %u passes, by %u", kKindNames[static_cast<int>(loaded->spec->kind)],
                     kSpecialNames[static_cast<int>(loaded->spec->special)], loaded->spec->argument, one->passes,
                     loaded->fate->number);
  const WaitsOn waits(actor.journal, room->fate);
  bool started = false;
  tries(*room->fate, "submit()", [&] { started = start(actor, *room, *loaded, *one); });
  return started ? one : nullptr;
}

void submit(Actor& actor) {
  const auto loaded = some_loaded(actor);
  const std::uint32_t first = actor.dice.below(kRuns), times = actor.dice.one_in(8) ? actor.dice.below(20) : 1;
  for (std::uint32_t i = 0; loaded && i < times; ++i)
    if (auto one = submit_one(actor, loaded)) actor.stage.runs.put(first + i, std::move(one));
}

void submit_badly(Actor& actor) {
  const auto loaded = some_loaded(actor);
  const auto room = some_room(actor);
  if (!loaded || !room) return;
  const WaitsOn waits(actor.journal, room->fate);
  const Fate& fate = *room->fate;
  Runtime& runtime = room->runtime;
  const Executable& executable = loaded->executable;
  refuses<UsageError>("submit() of nothing", {"Executable is empty"}, [&] { runtime.submit(Executable()); });
  Executable source = executable, moved = std::move(source);
  refuses<UsageError>("submit() of a moved executable", {"Executable is empty"}, [&] { runtime.submit(source); });
  if (loaded->fate != room->fate)
    return refuses<UsageError>("submit() elsewhere", {"another runtime"}, [&] { runtime.submit(executable); });
  Graph other;
  const auto foreign = other.param<std::uint64_t>();
  refuses<UsageError>("set() of a foreign parameter", {"another graph"}, [&] { runtime.submit(executable, set(foreign, 1)); });
  refuses<UsageError>("set() of no parameter", {"another graph"}, [&] { runtime.submit(executable, set(Param<int>{}, 1)); });
  Param<Call> late{loaded->spec->call.offset, loaded->spec->call.graph};
  late.offset += 512;
  refuses<UsageError>("set() of a late parameter", {"after load()"}, [&] {
    runtime.submit(executable, set(Param<int>{late.offset, late.graph}, 1));
  });
  refuses<UsageError>("repeat(0)", {"repeat(0)"}, [&] { runtime.submit(executable, repeat(0)); });
  refuses<UsageError>("repeat_until_stop(0)", {"repeat(0)"}, [&] { runtime.try_submit(executable, repeat_until_stop(0)); });
  if (!fate.options.trace_events)
    refuses<UsageError>("a traced run without room", {"Options::trace_events"}, [&] { runtime.submit(executable, traced); });
}

void submit_after(Actor& actor) {
  const auto loaded = some_loaded(actor);
  const auto room = loaded ? loaded->room.lock() : nullptr;
  if (!room) return;
  const Spec& spec = *loaded->spec;
  const WaitsOn waits(actor.journal, room->fate);
  auto one = make_run(actor, *loaded);
  const auto submit = [&] {
    one->run = room->runtime.submit_after(nullptr, loaded->executable, set(spec.call, one->call), set(spec.in, one->in),
                                          repeat(one->passes));
  };
  if (!room->fate->frailty) return refuses<UsageError>("submit_after() on CPU workers", {"CUDA streams"}, submit);
  one->traced = false;
  if (tries(*room->fate, "submit_after()", submit)) actor.stage.runs.put(actor.dice.below(kRuns), std::move(one));
}

/// Behind up to six runs of the same runtime, in whatever state they are; may take a result of one as its parameter.
void submit_follower(Actor& actor) {
  const auto loaded = some_loaded(actor);
  const auto room = loaded ? loaded->room.lock() : nullptr;
  if (!room) return;
  const Spec& spec = *loaded->spec;
  std::vector<Run> before;
  std::shared_ptr<RunCase> giver;
  for (std::uint32_t i = actor.dice.between(1, 6); i; --i) {
    const auto other = actor.stage.runs.get(actor.dice.below(kRuns));
    if (!other || other->fate != loaded->fate) continue;
    before.push_back(other->run);
    if (!other->spec->refs.empty()) giver = other;
  }
  auto one = make_run(actor, *loaded);
  one->traced = false;
  one->follows = true;
  const WaitsOn waits(actor.journal, room->fate);
  const auto call = set(spec.call, one->call);
  const auto passes = repeat(one->passes);
  const auto start = [&] {
    if (!giver || actor.dice.one_in(2)) {
      one->run = room->runtime.submit(loaded->executable, call, set(spec.in, one->in), after(before), passes);
      return;
    }
    const auto i = actor.dice.below(static_cast<std::uint32_t>(giver->spec->refs.size()));
    one->in = giver->in * 7 + i;
    one->run =
        room->runtime.submit(loaded->executable, passes, after(before), call, set(spec.in, giver->run, giver->spec->refs[i]));
  };
  actor.journal.note(" %s, behind %zu%s, by %u", kKindNames[static_cast<int>(spec.kind)], before.size(),
                     giver ? " with a giver" : "", room->fate->number);
  if (tries(*room->fate, "submit() of a follower", start)) actor.stage.runs.put(actor.dice.below(kRuns), std::move(one));
}

}  // namespace flywheel::abuse
