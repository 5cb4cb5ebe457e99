// What waits in the backlog: who goes first, who is passed, and what waiting costs.
#include <algorithm>
#include <ctime>
#include <deque>

#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

struct Nap {
  std::uint32_t us;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {
    std::this_thread::sleep_for(std::chrono::microseconds(us));
  }
};

/// Like Log, with a number that each run chooses.
struct Note {
  std::uint32_t* cursor;
  std::uint32_t* log;
  Param<std::uint32_t> number;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    log[add_to(*cursor, 1u)] = block.param(number);
  }
};

struct Notes {
  Executable executable;
  Param<std::uint32_t> number;
};

struct Room {
  explicit Room(const Options& options)
      : runtime(start<Nap, Note, Count, Gate>(options)),
        words(runtime.allocate<std::uint32_t>(1024)) {}

  std::uint32_t get(std::size_t i) { return peek_at(words.data()[i]); }
  Executable naps(std::uint32_t count, std::uint32_t us) {
    Graph graph;
    for (std::uint32_t i = 0; i < count; ++i) graph.add(Nap{us});
    return runtime.load(graph);
  }
  /// Its runs write a number of their own to the log that begins at word 3; word 2 counts them.
  Notes notes(bool of_all = false) {
    Graph graph;
    const auto number = graph.param<std::uint32_t>();
    graph.add(Note{words.data() + 2, words.data() + 3, number});
    return {of_all ? runtime.load(graph, compiled) : runtime.load(graph), number};
  }
  /// A run that stands at a gate, with `others` more tasks behind it; words 0 and 1. Returns once it has begun.
  Run hold(std::uint32_t others = 0) {
    Graph graph;
    const auto gate = graph.add(Gate{words.data(), words.data() + 1});
    for (std::uint32_t i = 0; i < others; ++i) graph.add(Nap{0}, after(gate));
    const std::uint32_t before = get(0);
    Run run = runtime.submit(runtime.load(graph));
    REQUIRE(eventually([&] { return get(0) > before; }));
    return run;
  }
  void open() { put_in(words.data()[1], 1u); }
  std::vector<std::uint32_t> log() {
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t i = 0; i < get(2); ++i) numbers.push_back(get(3 + i));
    return numbers;
  }

  Runtime runtime;
  Buffer<std::uint32_t> words;
};

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// The number of a run: its level, then its place among those of its level.
constexpr std::uint32_t number_of(Priority priority, std::uint32_t i) { return 100 * static_cast<std::uint32_t>(priority) + i; }

/// Runs of all levels, the low ones first, of the executables in turn. All of them wait in the backlog.
std::vector<Run> submit_upwards(Room& room, const std::vector<Notes>& notes, std::uint32_t each) {
  std::vector<Run> runs;
  for (const Priority priority : {Priority::low, Priority::normal, Priority::high})
    for (std::uint32_t i = 0; i < each; ++i) {
      const Notes& note = notes[i % notes.size()];
      runs.push_back(room.runtime.submit(note.executable, set(note.number, number_of(priority, i)), priority));
    }
  return runs;
}

}  // namespace

TEST_CASE("runs in the backlog go by priority, and in the order of their submission within one") {
  Options options = on_cpu(1);
  options.max_runs = 1;
  Room room(options);
  std::vector<Notes> notes;
  for (int i = 0; i < 7; ++i) notes.push_back(room.notes());
  Run gate = room.hold();
  std::vector<Run> runs = submit_upwards(room, notes, 40);
  room.open();
  for (Run& run : runs) run.wait();
  const std::vector<std::uint32_t> log = room.log();
  REQUIRE(log.size() == 120);
  CHECK(std::is_sorted(log.begin(), log.end()));
}

TEST_CASE("so do the runs of one executable that wait for each other, and collective runs") {
  for (const bool of_all : {false, true}) {
    Options options = on_cpu(1);
    options.overlap = 1;
    Room room(options);
    const Notes notes = room.notes(of_all);
    Run gate = room.hold();
    const std::uint64_t before = room.runtime.stats().submitted;
    Run first = room.runtime.submit(notes.executable, set(notes.number, 0u));
    // In flight, so that the others wait for its counters; it may have come by way of the backlog.
    REQUIRE(eventually([&] { return room.runtime.stats().submitted == before + 1; }, std::chrono::seconds(2)));
    std::vector<Run> runs = submit_upwards(room, {notes}, 40);
    room.open();
    for (Run& run : runs) run.wait();
    std::vector<std::uint32_t> log = room.log();
    REQUIRE(log.size() == 121);
    log.erase(log.begin());
    CHECK(std::is_sorted(log.begin(), log.end()));
  }
}

TEST_CASE("low runs leave a slot and some room in the queues to higher ones") {
  Options options = on_cpu(1);
  options.max_runs = 8;
  options.queue_capacity = 64;
  options.spawn_capacity = 16;
  options.overlap = 16;
  for (const std::uint32_t tasks : {1u, 10u}) {
    Room room(options);
    const Executable low = room.naps(tasks, 0), high = room.naps(4, 0);
    Run gate = room.hold();
    std::vector<Run> runs;
    for (int i = 0; i < 20; ++i) runs.push_back(room.runtime.submit(low, Priority::low));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::uint64_t before = room.runtime.stats().submitted;
    runs.push_back(room.runtime.submit(high, Priority::high));
    CHECK(eventually([&] { return room.runtime.stats().submitted == before + 1; }, std::chrono::seconds(2)));
    room.open();
    for (Run& run : runs) run.wait();
  }
}

TEST_CASE("a run that waits in the backlog behind a long task costs no core") {
  Options options = on_cpu(1);
  options.overlap = 1;
  Room room(options);
  const Executable nap = room.naps(1, 1'300'000);
  Run first = room.runtime.submit(nap), second = room.runtime.submit(nap);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const double spent = cpu_seconds() - before;
  CHECK(spent < 0.4);  // a thread that does not sleep spends 1; what does sleep looks around now and then, about 0.1 in all
  second.cancel();
  first.wait();
}

TEST_CASE("while runs wait in the backlog, one that can go is let in at once, and so is one of these once it can") {
  Options options = on_cpu(2);
  options.overlap = 1;
  Room room(options);
  const Executable nap = room.naps(1, 0);
  Graph graph;
  graph.add(Gate{room.words.data(), room.words.data() + 1});
  const Executable gate = room.runtime.load(graph);
  Run first = room.runtime.submit(gate), second = room.runtime.submit(gate);
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the dispatcher sleeps
    Run other = room.runtime.submit(nap);
    CHECK(other.wait_for(std::chrono::milliseconds(500)));
  }
  CHECK_FALSE(second.done());
  room.open();
  CHECK(first.wait_for(std::chrono::seconds(20)));
  CHECK(second.wait_for(std::chrono::milliseconds(500)));
}

TEST_CASE("a large run begins while small ones keep coming") {
  Options options = on_cpu(2);
  options.queue_capacity = 4096;
  options.spawn_capacity = 64;
  Room room(options);
  const Executable large = room.naps(4000, 0), one = room.naps(100, 50), two = room.naps(100, 50);
  std::deque<Run> small;
  for (int i = 0; i < 4; ++i) small.push_back(room.runtime.submit(i % 2 ? one : two));
  Run waiting = room.runtime.submit(large);
  int later = 0;
  for (; !waiting.done() && later < 400; ++later) {
    small.front().wait();
    small.pop_front();
    small.push_back(room.runtime.submit(later % 2 ? one : two));
  }
  CHECK(later < 100);
  waiting.wait();
  for (Run& run : small) run.wait();
}

TEST_CASE("behind a run that does not end, a large one holds up none of the small ones") {
  Options options = on_cpu(2);
  options.queue_capacity = 256;
  options.spawn_capacity = 64;
  Room room(options);
  const Executable large = room.naps(190, 0), small = room.naps(10, 0);
  Run gate = room.hold(20);
  Run waiting = room.runtime.submit(large);
  for (int i = 0; i < 200; ++i) CHECK(room.runtime.submit(small).wait_for(std::chrono::seconds(10)));
  CHECK_FALSE(waiting.done());
  room.open();
  CHECK(waiting.wait_for(std::chrono::seconds(20)));
}

TEST_CASE("room that is kept for a large run in vain is given to the small ones again") {
  Options options = on_cpu(2);
  options.queue_capacity = 256;
  options.spawn_capacity = 64;
  Room room(options);
  const Executable large = room.naps(190, 0), small = room.naps(10, 0), first = room.naps(10, 100'000);
  Run before = room.runtime.submit(first);
  Run waiting = room.runtime.submit(large);
  Run gate = room.hold();  // passes the large one, and does not end
  for (int i = 0; i < 200; ++i) CHECK(room.runtime.submit(small).wait_for(std::chrono::seconds(10)));
  CHECK_FALSE(waiting.done());
  room.open();
  CHECK(waiting.wait_for(std::chrono::seconds(20)));
}
