// Runtimes: started well and badly, moved, asked, broken, shut down, dropped.
#include <cstdlib>

#include "abuse/operations.hpp"

namespace flywheel::abuse {

using std::chrono::milliseconds;

namespace {
std::uint32_t next_fate() {
  static std::atomic<std::uint32_t> last{0};
  return ++last;
}

void choose_sizes(Dice& dice, Options& o) {
  o.workers = dice.between(1, 3);
  o.heap_bytes = dice.of<std::size_t>({1, 4096, 1 << 16, 1 << 20});
  o.max_tasks = dice.between(8, 512);
  o.max_edges = dice.between(8, 1024);
  o.max_executables = dice.between(1, 24);
  o.max_runs = dice.of({1u, 2u, 3u, 8u, 64u});
  o.max_waiting = dice.of({1u, 2u, 8u, 1024u});
  o.overlap = dice.between(1, 4);
  o.queue_capacity = dice.of({32u, 64u, 1000u, 4096u});
  o.spawn_capacity = dice.between(1, 32);
  o.result_bytes = dice.of({64u, 1024u, 4096u});
  o.stream_capacity = dice.of({1u, 4u, 64u});
  o.stream_unread = dice.of({1u, 16u, 1000u});
  o.scratch_bytes = dice.of({0u, 256u, 32u << 10});
  o.trace_events = dice.of({0u, 0u, 4u, 64u});
}

void choose_times(Dice& dice, Options& o, bool tight) {
  o.park_after = milliseconds(dice.of({0, 1, 5, 20}));
  o.shutdown_timeout = milliseconds(dice.of({0, 10, 20'000, 20'000}));
  o.yield_every = milliseconds(dice.of({0, 0, 0, 3, 50}));
  o.tuning.cpu_yields = true;
  o.tuning.yield_gap = std::chrono::microseconds(dice.of({0, 100, 1000}));
  o.tuning.yield_patience = milliseconds(dice.of({1, 5, 20}));
  o.spin_budget = o.start_timeout = milliseconds(40'000);
  o.stall_limit = milliseconds(50'000);
  if (!tight) return;
  o.spin_budget = milliseconds(dice.between(1, 100));
  o.start_timeout = milliseconds(dice.between(0, 100));
  o.stall_limit = milliseconds(dice.between(1, 100));
}

Options choose_options(Dice& dice, bool tight) {
  Options o;
  o.target = Target::cpu;
  o.mode = dice.one_in(4) ? Mode::drain : Mode::resident;
  choose_sizes(dice, o);
  choose_times(dice, o, tight);
  o.tuning.keep_successor = !dice.one_in(4);
  o.check_operands = dice.one_in(8);
  o.log_level = dice.of({"trace", "debug", "info", "warn", "error", "off"});
  return o;
}

Runtime start_for(const std::shared_ptr<Fate>& fate) {
  if (!fate->frailty) return Runtime(all_tasks(), fate->options);
  return Runtime(all_tasks(), fate->options,
                 std::make_unique<CountedEngine>(all_tasks(), fate->options, fate->frailty, fate->number));
}

void use_moved(Runtime& moved) {
  const std::vector<std::string> words{"moved from", "the one that it was moved to"};
  refuses<UsageError>("allocate() of a moved runtime", words, [&] { moved.allocate<int>(1); });
  refuses<UsageError>("stats() of a moved runtime", words, [&] { moved.stats(); });
  refuses<UsageError>("shutdown() of a moved runtime", words, [&] { moved.shutdown(); });
  refuses<UsageError>("describe() of a moved runtime", words, [&] { moved.describe(Graph()); });
  Graph graph;
  graph.add(Stranger{});
  refuses<UsageError>("load() of a moved runtime", words, [&] { moved.load(graph); });
}

using Wrong = std::pair<const char*, void (*)(Options&)>;
constexpr Wrong kWrongOptions[] = {
    {"workers", [](Options& o) { o.workers = 1u << 20; }},
    {"max_runs", [](Options& o) { o.max_runs = 0; }},
    {"max_waiting", [](Options& o) { o.max_waiting = 0; }},
    {"max_tasks", [](Options& o) { o.max_tasks = 0; }},
    {"max_edges", [](Options& o) { o.max_edges = 0xffffffffu; }},
    {"max_executables", [](Options& o) { o.max_executables = 0; }},
    {"queue_capacity", [](Options& o) { o.queue_capacity = 0xffffffffu; }},
    {"spawn_capacity", [](Options& o) { o.spawn_capacity = 0; }},
    {"stream_capacity", [](Options& o) { o.stream_capacity = 0; }},
    {"stream_unread", [](Options& o) { o.stream_unread = 0; }},
    {"result_bytes", [](Options& o) { o.result_bytes = 0xffffffffu; }},
    {"scratch_bytes", [](Options& o) { o.scratch_bytes = 0xffffffffu; }},
    {"overlap", [](Options& o) { o.overlap = 0; }},
    {"heap_bytes", [](Options& o) { o.heap_bytes = ~std::size_t{0}; }},
    {"trace_events", [](Options& o) { o.trace_events = 0xffffffffu; }},
    {"operand_pages", [](Options& o) { o.operand_pages = 1; }},
    {"tuning.operand_pace", [](Options& o) { o.tuning.operand_pace = -1; }},
    {"device", [](Options& o) { o.device = -1; }},
    {"park_after", [](Options& o) { o.park_after = milliseconds(-1); }},
    {"spin_budget", [](Options& o) { o.spin_budget = milliseconds::max(); }},
    {"shutdown_timeout", [](Options& o) { o.shutdown_timeout = milliseconds::min(); }},
};
}  // namespace

std::shared_ptr<Room> some_room(Actor& actor) { return actor.stage.rooms.get(actor.dice.below(kRooms)); }

void start_runtime(Actor& actor) {
  Dice& dice = actor.dice;
  auto fate = std::make_shared<Fate>(next_fate());
  fate->tight = dice.one_in(6);
  fate->options = choose_options(dice, fate->tight);
  if (dice.one_in(2)) fate->frailty = std::make_shared<testing::Frailty>();
  // A worker that is not scheduled in time looks like one that does not end.
  if (fate->frailty && fate->options.shutdown_timeout < milliseconds(1000)) allow_to_leave_memory(*fate);
  if (!fate->frailty) fate->options.shutdown_timeout = milliseconds(20'000);
  note_options(*fate);
  const std::uint32_t place = dice.below(kRooms);
  actor.journal.note(" %u at %u, %u workers%s%s", fate->number, place, fate->options.workers, fate->tight ? ", tight" : "",
                     fate->frailty ? ", frail" : "");
  Runtime runtime = start_for(fate);
  std::shared_ptr<Room> room;
  if (dice.one_in(4)) {
    Runtime other(std::move(runtime));
    use_moved(runtime);
    room = std::make_shared<Room>(fate, std::move(other));
  } else {
    room = std::make_shared<Room>(fate, std::move(runtime));
  }
  room->words = room->runtime.allocate<std::uint32_t>(16);
  auto before = actor.stage.rooms.put(place, std::move(room));
  const WaitsOn waits(actor.journal, before ? before->fate : nullptr);
  before.reset();
}

void start_badly(Actor& actor) {
  Options options = choose_options(actor.dice, false);
  options.log_level = "off";
  if (actor.dice.one_in(8)) {
    options.log_level = "loud";
    return refuses<UsageError>("start()", {"Options::log_level is 'loud'"}, [&] { Runtime(all_tasks(), options); });
  }
  if (actor.dice.one_in(8)) {
    auto frailty = std::make_shared<testing::Frailty>();
    frailty->pieces_left = static_cast<int>(actor.dice.below(15));
    return refuses<DeviceError>("start()", {}, [&] {
      Runtime(all_tasks(), options, std::make_unique<CountedEngine>(all_tasks(), options, frailty, next_fate()));
    });
  }
  const auto& [name, change] = kWrongOptions[actor.dice.below(std::size(kWrongOptions))];
  actor.journal.note(" %s", name);
  change(options);
  refuses<CapacityError>("start()", {std::string("Options::") + name}, [&] { Runtime(all_tasks(), options); });
}

void drop_runtime(Actor& actor) {
  const std::uint32_t place = actor.dice.below(kRooms);
  auto room = actor.stage.rooms.put(place, nullptr);
  if (!room) return;
  actor.journal.note(" %u", room->fate->number);
  const WaitsOn waits(actor.journal, room->fate);
  room.reset();
}

void shut_down(Actor& actor) {
  const auto room = some_room(actor);
  if (!room) return;
  actor.journal.note(" %u", room->fate->number);
  const WaitsOn waits(actor.journal, room->fate);
  room->fate->ends = true;
  room->runtime.shutdown();
  if (!actor.dice.one_in(3)) return;
  room->runtime.shutdown();
  refuses<Error>("allocate() of too much after shutdown()", {}, [&] { room->runtime.allocate<char>(std::size_t{1} << 60); });
}

void ask_runtime(Actor& actor) {
  const auto room = some_room(actor);
  if (!room) return;
  actor.journal.note(" %u", room->fate->number);
  const WaitsOn waits(actor.journal, room->fate);
  const Options& o = room->fate->options;
  Runtime& runtime = room->runtime;
  if (runtime.on_gpu()) finding("CPU workers are on a GPU");
  if (runtime.workers() != o.workers) finding("another number of workers");
  if (runtime.device().empty()) finding("a device without a name");
  tries(*room->fate, "stats()", [&] {
    const Stats stats = runtime.stats();
    if (stats.completed > stats.submitted || stats.parks > stats.launches) finding("stats() make no sense");
  });
}

void break_engine(Actor& actor) {
  const auto room = some_room(actor);
  if (!room || !room->fate->frailty) return;
  testing::Frailty& frailty = *room->fate->frailty;
  const std::uint32_t how = actor.dice.below(6);
  actor.journal.note(" %u, %u", room->fate->number, how);
  room->fate->failing = true;
  allow_to_leave_memory(*room->fate);
  if (how == 0) frailty.lost = true;
  if (how == 1) frailty.refuses_launches = true;
  if (how == 2) frailty.refuses_copies = true;
  if (how == 3) frailty.never_starts = true;
  if (how == 4) frailty.pieces_left = 0;
  if (how == 5 && room->fate->options.mode == Mode::drain) frailty.blocks_in_launch = true;
}

}  // namespace flywheel::abuse
