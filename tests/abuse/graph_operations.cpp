// Graphs of all kinds that can be loaded, until there is no room for more, and executables that go while runs live.
#include "abuse/operations.hpp"

namespace flywheel::abuse {

Special choose_special(Actor& actor, Kind kind) {
  Dice& dice = actor.dice;
  if (kind == Kind::gang && dice.one_in(2)) return Special::fails;
  if (kind == Kind::gang || kind == Kind::operands || kind == Kind::buffers || dice.one_in(2)) return Special::none;
  if (kind == Kind::grid) return Special::throws;
  if (kind >= Kind::single && dice.one_in(2)) return Special::none;
  const auto special =
      dice.of({Special::fails, Special::throws, Special::endless, Special::emits, Special::spawns, Special::scratch,
               Special::stops, Special::slow, Special::deaf, Special::forks, Special::turns});
  return kind >= Kind::single && special == Special::emits ? Special::none : special;  // work without a graph has no stream
}

std::uint32_t choose_argument(Actor& actor, const Fate& fate, Special special) {
  Dice& dice = actor.dice;
  switch (special) {
    case Special::fails:
      return dice.below(1000);
    case Special::emits:
      return fate.tight ? dice.below(3000) : dice.below(std::min(fate.options.stream_unread, 200u) + 1);
    case Special::spawns:
    case Special::forks:
    case Special::turns:
      return dice.between(1, 80);
    case Special::stops:
      return dice.below(4);
    case Special::deaf:  // for longer than shutdown() waits, where the runtime may go without it
      return may_leave_memory(fate.number) && dice.one_in(8) ? 500'000 : dice.between(1, 8) * 1000;
    default:
      return dice.below(2000);
  }
}

namespace {
/// One more step; task `spec.at` is the special one.
TaskRef<std::uint64_t> add_step(Actor& actor, Graph& graph, Spec& spec, const After& waits = {}) {
  const bool special = graph.size() == spec.at;
  const Step step{spec.call, spec.in, spec.refs.size(), special ? spec.special : Special::none, spec.argument};
  const auto priority = actor.dice.of({Priority::high, Priority::normal, Priority::low, Priority::inherit, Priority::inherit});
  spec.refs.push_back(graph.add(step, waits, priority));
  if (step.special == Special::turns && spec.kind == Kind::dynamic) graph.loop(spec.refs.back(), spec.refs.back());
  return spec.refs.back();
}

void add_with_edges(Actor& actor, Graph& graph, Spec& spec, std::uint32_t tasks) {
  Dice& dice = actor.dice;
  for (std::uint32_t i = 0; i < tasks; ++i) {
    const auto ref =
        i && dice.one_in(2) ? add_step(actor, graph, spec, after(spec.refs[dice.below(i)])) : add_step(actor, graph, spec);
    for (std::uint32_t k = dice.below(3); i && k; --k) {
      const auto before = spec.refs[dice.below(i)];
      graph.edge(before, ref);
      if (dice.one_in(4)) graph.edge(before, ref);
    }
  }
}

void add_phases(Actor& actor, Graph& graph, Spec& spec, std::uint32_t tasks) {
  graph.phase();
  for (std::uint32_t i = 0; i < tasks; ++i) {
    add_step(actor, graph, spec);
    if (actor.dice.one_in(3)) graph.phase();
  }
}

void add_grids(Actor& actor, Graph& graph, Spec& spec, const Room& room) {
  const std::uint32_t tasks = actor.dice.between(1, 4), workers = room.fate->options.workers;
  spec.at %= tasks;
  for (std::uint32_t i = 0; i < tasks; ++i) {
    const bool throws = spec.special == Special::throws && i == spec.at;
    graph.add_grid(Grid{spec.call, actor.dice.between(1, 3), throws ? actor.dice.below(workers) : ~0u});
  }
}

void add_gang(Actor& actor, Graph& graph, Spec& spec, const Room& room) {
  const std::uint32_t members = actor.dice.between(1, room.fate->options.workers);
  const std::uint32_t others = actor.dice.between(1, 6);
  spec.at %= others;
  add_with_edges(actor, graph, spec, others);
  std::vector<TaskRef<>> gang;
  for (std::uint32_t i = 0; i < members; ++i) gang.push_back(graph.add(Meet{spec.call, members}));
  graph.together(gang);
}

void fill(Actor& actor, Graph& graph, Spec& spec, const Room& room, std::uint32_t tasks) {
  Dice& dice = actor.dice;
  switch (spec.kind) {
    case Kind::dynamic:
      return add_with_edges(actor, graph, spec, tasks);
    case Kind::phased:
      return add_phases(actor, graph, spec, tasks);
    case Kind::grid:
      return add_grids(actor, graph, spec, room);
    case Kind::gang:
      return add_gang(actor, graph, spec, room);
    case Kind::compiled:
      add_with_edges(actor, graph, spec, tasks);
      for (const auto& ref : spec.refs)
        if (dice.one_in(4)) graph.place(ref, dice.below(room.fate->options.workers));
      return;
    case Kind::operands:
      for (std::uint32_t i = 0; i < tasks; ++i) graph.add(Packed{spec.call, dice.between(1, 3000) * 16, false});
      return;
    case Kind::buffers:
      for (std::uint32_t i = 0; i < tasks; ++i) graph.add(Checked{spec.call, room.words.data() + dice.below(16)});
      return;
    case Kind::single:
    case Kind::batch:
    case Kind::mixed:
      return;  // no graphs, see new_work_operations.cpp
  }
}

Executable load(Runtime& runtime, const Graph& graph, const Spec& spec) {
  return spec.is_compiled() ? runtime.load(graph, compiled) : runtime.load(graph);
}
}  // namespace

Graph make_graph(Actor& actor, const Room& room, Spec& spec) {
  Dice& dice = actor.dice;
  Graph graph;
  spec.kind = dice.of({Kind::dynamic, Kind::dynamic, Kind::dynamic, Kind::phased, Kind::grid, Kind::compiled, Kind::compiled,
                       Kind::gang, Kind::operands, Kind::buffers});
  spec.special = choose_special(actor, spec.kind);
  spec.argument = choose_argument(actor, *room.fate, spec.special);
  const std::uint32_t tasks = dice.one_in(10) ? dice.between(1, 300) : dice.between(1, 12);
  spec.at = dice.below(tasks);
  spec.call = graph.param<Call*>(nullptr);
  spec.in = graph.param<std::uint64_t>(1);
  fill(actor, graph, spec, room, tasks);
  spec.tasks = graph.size();
  if (spec.special == Special::none) spec.at = ~0u;
  if (!dice.one_in(4)) return graph;
  Graph moved(std::move(graph));  // references stay good
  graph.add(Stranger{});          // and what is left is a new graph
  return moved;
}

void load_graph(Actor& actor) {
  const auto room = some_room(actor);
  if (!room) return;
  const WaitsOn waits(actor.journal, room->fate);
  auto spec = std::make_shared<Spec>();
  const Graph graph = make_graph(actor, *room, *spec);
  actor.journal.note(" %s of %u, %s %u at %u, for %u", kKindNames[static_cast<int>(spec->kind)], spec->tasks,
                     kSpecialNames[static_cast<int>(spec->special)], spec->argument, spec->at, room->fate->number);
  auto one = std::make_shared<LoadedCase>();
  one->fate = room->fate;
  one->room = room;
  const bool loads = tries(*room->fate, "load()", [&] { one->executable = load(room->runtime, graph, *spec); });
  count(loads ? kKindNames[static_cast<int>(spec->kind)] : "load() without room");
  if (!loads) return;
  if (spec->is_compiled() && room->runtime.describe(graph).empty()) finding("describe() says nothing");
  one->spec = std::move(spec);
  actor.stage.loaded.put(actor.dice.below(kLoaded), std::move(one));
}

void load_until_full(Actor& actor) {
  const auto room = some_room(actor);
  if (!room) return;
  const WaitsOn waits(actor.journal, room->fate);
  actor.journal.note(" %u", room->fate->number);
  Graph graph;
  const auto call = graph.param<Call*>(nullptr);
  graph.add(Leaf{call});
  std::vector<Executable> all;
  while (tries(*room->fate, "load()", [&] { all.push_back(room->runtime.load(graph)); }))
    if (all.size() > room->fate->options.max_executables) finding("more executables than Options::max_executables");
}

void drop_executable(Actor& actor) { actor.stage.loaded.put(actor.dice.below(kLoaded), nullptr); }

}  // namespace flywheel::abuse
