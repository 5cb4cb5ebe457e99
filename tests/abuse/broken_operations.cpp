// Graphs that cannot be built or loaded: each is refused by name, and what was refused leaves nothing behind.
#include "abuse/operations.hpp"

namespace flywheel::abuse {

namespace {
struct Half {
  Graph graph;
  Param<Call*> call = graph.param<Call*>(nullptr);
  Param<std::uint64_t> in = graph.param<std::uint64_t>(1);
  Step step() const { return {call, in, 0, Special::none, 0}; }
};

void name_strangers(Half& half) {
  Half other;
  const auto mine = half.graph.add(half.step()), foreign = other.graph.add(other.step());
  refuses<GraphError>("add() after a foreign task", {"another graph", "Step"},
                      [&] { half.graph.add(half.step(), after(foreign)); });
  refuses<GraphError>("edge() from a foreign task", {"another graph"}, [&] { half.graph.edge(foreign, mine); });
  refuses<GraphError>("edge() to a foreign task", {"another graph"}, [&] { half.graph.edge(mine, foreign); });
  refuses<GraphError>("place() of a foreign task", {"another graph"}, [&] { half.graph.place(foreign, 0); });
  refuses<GraphError>("together() of foreign tasks", {"another graph"}, [&] { half.graph.together(std::vector{foreign}); });
  refuses<GraphError>("edge() from an empty reference", {"another graph"}, [&] { half.graph.edge(TaskRef<>{}, mine); });
  if (half.graph.size() != 1) finding("a refused task is in the graph");
}

void mix_phases_and_edges(Half& half) {
  const auto one = half.graph.add(half.step());
  half.graph.phase();
  refuses<GraphError>("add() with after() in a phased graph", {"phase"}, [&] { half.graph.add(half.step(), after(one)); });
  refuses<GraphError>("edge() in a phased graph", {"phase"}, [&] { half.graph.edge(one, one); });
  Half other;
  const auto first = other.graph.add(other.step());
  other.graph.add(other.step(), after(first));
  refuses<GraphError>("phase() in a graph with edges", {"phase"}, [&] { other.graph.phase(); });
  refuses<GraphError>("add_grid() in a graph with edges", {"phase"}, [&] { other.graph.add_grid(Leaf{other.call}); });
  if (half.graph.size() != 1 || other.graph.size() != 2) finding("a refused task is in the graph");
}

void name_twice(Half& half) {
  const auto one = half.graph.add(half.step()), two = half.graph.add(half.step());
  refuses<GraphError>("together() of a task and itself", {"twice"}, [&] { half.graph.together(std::vector{one, one}); });
  half.graph.together(std::vector{one, two});
  refuses<GraphError>("together() again", {"twice"}, [&] { half.graph.together(std::vector{two}); });
  half.graph.together(std::vector<TaskRef<>>{});
}

struct Large {
  unsigned char bytes[100];
};

void ask_for_too_many_params(Half& half) {
  refuses<CapacityError>("param()", {"parameters of a graph take more than"}, [&] {
    for (int i = 0; i < 1000; ++i) half.graph.param<Large>();
  });
  half.graph.add(half.step());
}

using Building = void (*)(Half&);
constexpr Building kBuildings[] = {name_strangers, mix_phases_and_edges, name_twice, ask_for_too_many_params};

struct Broken {
  const char* word;  // of the message
  bool compiled;
  void (*build)(Half&, const Room&);
};
constexpr Broken kBroken[] = {
    {"has no tasks", false, [](Half&, const Room&) {}},
    {"tasks", true, [](Half&, const Room&) {}},
    {"cycle", false,
     [](Half& h, const Room&) {
       const auto a = h.graph.add(h.step()), b = h.graph.add(h.step(), after(a)), c = h.graph.add(h.step(), after(b));
       h.graph.edge(c, a);
     }},
    {"cycle", true,
     [](Half& h, const Room&) {
       const auto a = h.graph.add(h.step());
       h.graph.edge(a, a);
     }},
    {"Stranger", false, [](Half& h, const Room&) { h.graph.add(Stranger{}); }},
    {"Stranger", true, [](Half& h, const Room&) { h.graph.add(Stranger{}); }},
    {"buffer 'word'", false,
     [](Half& h, const Room&) {
       h.graph.add(Checked{h.call, nullptr});
     }},
    {"buffer 'word'", true,
     [](Half& h, const Room&) {
       h.graph.add(Checked{h.call, nullptr});
     }},
    {"together", false, [](Half& h, const Room&) { h.graph.together(std::vector{h.graph.add(h.step())}); }},
    {"place()", false, [](Half& h, const Room&) { h.graph.place(h.graph.add(h.step()), 0); }},
    {"worker", true, [](Half& h, const Room& r) { h.graph.place(h.graph.add(h.step()), r.fate->options.workers); }},
    {"phase", true,
     [](Half& h, const Room&) {
       h.graph.add(h.step());
       h.graph.phase();
       h.graph.add(h.step());
     }},
    {"phase", true, [](Half& h, const Room&) { h.graph.add_grid(Leaf{h.call}); }},
};

void load_without_room(Actor& actor, const Room& room) {
  const Options& o = room.fate->options;
  Half half;
  const bool results = actor.dice.one_in(2);
  const std::uint32_t count = results ? o.result_bytes / 8 + 9 : std::max(o.max_tasks, o.queue_capacity) + 1;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (results) half.graph.add(half.step());
    else half.graph.add(Leaf{half.call});
  }
  refuses_or_excused<CapacityError>(*room.fate, "load()", {"Options::"},
                                    [&] { const_cast<Room&>(room).runtime.load(half.graph); });
}

void pack_badly(Actor& actor, Room& room) {
  Half half;
  half.graph.add(Packed{half.call, 16 * actor.dice.between(1, 4), true});
  refuses_or_excused<RunError>(*room.fate, "load() of operands", {kThrown, "Packed", "Remedy: "},
                               [&] { room.runtime.load(half.graph, compiled); });
}
}  // namespace

void build_badly(Actor& actor) {
  Half half;
  const std::uint32_t which = actor.dice.below(std::size(kBuildings));
  actor.journal.note(" %u", which);
  kBuildings[which](half);
  const auto room = some_room(actor);
  if (!room || which == 2) return;
  const WaitsOn waits(actor.journal, room->fate);
  tries(*room->fate, "load() of what is left", [&] { room->runtime.load(half.graph); });
}

void load_badly(Actor& actor) {
  const auto room = some_room(actor);
  if (!room) return;
  const WaitsOn waits(actor.journal, room->fate);
  const std::uint32_t which = actor.dice.below(std::size(kBroken) + 2);
  actor.journal.note(" %u by %u", which, room->fate->number);
  if (which == std::size(kBroken)) return load_without_room(actor, *room);
  if (which > std::size(kBroken)) return pack_badly(actor, *room);
  const Broken& broken = kBroken[which];
  Half half;
  broken.build(half, *room);
  refuses<GraphError>("load()", {broken.word}, [&] {
    if (broken.compiled) room->runtime.load(half.graph, compiled);
    else room->runtime.load(half.graph);
  });
}

void throw_from_callback(Actor& actor) {
  Half half;
  const bool from_buffers = actor.dice.one_in(2);
  const auto first = half.graph.add(half.step());
  try {
    half.graph.add(Raiser{half.call, from_buffers}, after(first));
    finding("add() keeps what a callback throws");
  } catch (const FromCallback&) {}
  if (half.graph.size() != 1) finding("a task whose callback threw is in the graph");
  half.graph.add(half.step(), after(first));
  const auto room = some_room(actor);
  if (!room) return;
  const WaitsOn waits(actor.journal, room->fate);
  tries(*room->fate, "load() after a callback threw", [&] { room->runtime.load(half.graph); });
  if (!from_buffers) return;
  Half phased;
  try {
    phased.graph.add_grid(Raiser{phased.call, true});
    finding("add_grid() keeps what a callback throws");
  } catch (const FromCallback&) {}
  if (phased.graph.size() != 0) finding("a grid task whose callback threw is in the graph");
  phased.graph.add_grid(Leaf{phased.call});
  tries(*room->fate, "load() after a grid's callback threw", [&] { room->runtime.load(phased.graph); });
}

}  // namespace flywheel::abuse
