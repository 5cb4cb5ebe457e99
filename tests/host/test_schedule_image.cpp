// The instruction streams made of a plan: what each instruction says, and where its waits and its operands are.
#include "host/plan/schedule_image.hpp"
#include "support/internals.hpp"

#include "support/schedule_graphs.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

struct Eager {
  static constexpr bool kEarly = true;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

/// `constants` bytes that are packed, and `pages` pages that other tasks write.
struct Fed {
  std::uint32_t constants, pages;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
  std::uint32_t operand_bytes() const { return constants; }
  template <class Block>
  FLYWHEEL_TASK void pack(Block&, unsigned char*) const {}
  std::uint32_t dependent_pages() const { return pages; }
  template <class Fetch>
  FLYWHEEL_TASK void dependents(Fetch&& fetch) const {
    for (std::uint32_t page = 0; page < pages; ++page) fetch(this, 16u);
  }
  template <class Block, class Operands>
  FLYWHEEL_TASK void compute(Block&, Operands&) const {}
};

ScheduleImage image_of(const Graph& graph, std::uint32_t workers) {
  std::vector<TaskRecord> records(graph.size());
  for (std::uint32_t task = 0; task < graph.size(); ++task) records[task].header.local = task;
  return make_schedule_image(compile(graph, workers), graph, records);
}

const Instruction& instruction(const ScheduleImage& image, std::uint32_t worker, std::uint32_t place) {
  REQUIRE(place < image.streams[worker].count);
  return image.instructions[image.streams[worker].first + place];
}

/// One task on worker 0 after `before` others on worker 1, each of which another task waits for as well: so many waits.
Graph waits_for_many(std::uint32_t before) {
  Graph graph;
  const Tasks last = add_placed(graph, {0});
  for (std::uint32_t i = 0; i < before; ++i) {
    const Tasks pair = add_placed(graph, {i + 1, i + 1});
    graph.edge(pair[0], last[0]);
    graph.edge(pair[0], pair[1]);
    graph.edge(last[0], add_placed(graph, {i + 1})[0]);
  }
  return graph;
}

/// Those of one worker, from `told` on. Returns how many bytes its operands take.
std::uint64_t check_operand_tasks(const ScheduleImage& image, const ScheduleImage::Stream& stream, std::size_t& told) {
  std::uint64_t bytes = 0;
  for (std::uint32_t place = 0; place < stream.count; ++place) {
    const Instruction& one = image.instructions[stream.first + place];
    bytes += padded_operands(one.operand_bytes);
    if (!one.operand_bytes && !one.dependent_pages) continue;
    REQUIRE(told < image.operand_tasks.size());
    const OperandTask& operands = image.operand_tasks[told++];
    CHECK(operands.instruction == place);
    CHECK(operands.constant_bytes == padded_operands(one.operand_bytes));
    CHECK(operands.dependent_pages == one.dependent_pages);
  }
  return bytes;
}

}  // namespace

TEST_CASE("an instruction says where its task arrives, whether it is its worker's last sink, and whether it may begin early") {
  Graph graph;
  const Tasks t = add_placed(graph, {0, 1});
  const auto early = graph.add(Eager{});
  graph.place(early, 1);
  graph.edge(t[0], t[1]);
  graph.edge(t[0], early);
  const ScheduleImage image = image_of(graph, 2);
  CHECK(image.counters == 1);
  CHECK(image.sinks == 1);
  CHECK(image.leader == 1);
  CHECK(instruction(image, 0, 0).signal == 0);
  CHECK(instruction(image, 0, 0).flags == 0);
  REQUIRE(image.streams[1].count == 2);
  for (std::uint32_t place : {0u, 1u}) {
    const Instruction& sink = instruction(image, 1, place);
    CHECK(sink.signal == kNoCounter);
    CHECK(sink.flags == ((sink.record.header.local == early.index ? kEarly : 0u) | (place == 1 ? kSink : 0u)));
    CHECK(sink.wait_count == (place == 0));
  }
}

TEST_CASE("a task that needs the one before it on its worker says so, and no other does") {
  Graph graph;
  const Tasks t = add_placed(graph, {0, 0, 0, 1});
  graph.edge(t[0], t[1]);
  graph.edge(t[0], t[2]);
  graph.edge(t[1], t[3]);
  const ScheduleImage image = image_of(graph, 2);
  for (std::uint32_t place = 0; place < 3; ++place) {
    const Instruction& one = instruction(image, 0, place);
    const bool follows = place == 1;  // the third needs the first only
    CHECK(bool(one.flags & kAfterPrevious) == follows);
  }
  CHECK_FALSE(instruction(image, 1, 0).flags & kAfterPrevious);
}

TEST_CASE("waits that an instruction has no room for stand before it, and their failing reaches it") {
  for (std::uint32_t bare = 0; bare < 3; ++bare)
    for (const std::uint32_t own : {1u, kInstructionWaits}) {
      const std::uint32_t all = bare * kInstructionWaits + own;
      const ScheduleImage image = image_of(waits_for_many(all), all + 1);
      REQUIRE(image.streams[0].count == bare + 1);
      for (std::uint32_t place = 0; place < bare; ++place) {
        const Instruction& waits = instruction(image, 0, place);
        CHECK(waits.flags == kOnlyWaits);
        CHECK(waits.signal == kNoCounter);
        CHECK(waits.wait_count == kInstructionWaits);
        CHECK(waits.record.header.local == 0);
      }
      const Instruction& task = instruction(image, 0, bare);
      CHECK(task.wait_count == own);
      CHECK(task.flags == (bare ? std::uint32_t{kAfterPrevious} : 0u));
      CHECK(task.signal != kNoCounter);
    }
}

TEST_CASE("the loader is told of each task with operands, and where those of each worker begin") {
  Graph graph;
  for (const Fed& task : {Fed{0, 0}, Fed{10, 0}, Fed{0, 2}, Fed{kPageBytes, 1}}) graph.place(graph.add(task), 0);
  graph.place(graph.add(Fed{16, 0}), 1);
  const ScheduleImage image = image_of(graph, 2);
  std::uint64_t bytes = 0;
  std::size_t told = 0;
  for (const ScheduleImage::Stream& stream : image.streams) {
    CHECK(stream.operands_at == bytes);
    CHECK(stream.first_operand_task == told);
    bytes += check_operand_tasks(image, stream, told);
    CHECK(stream.operand_tasks == told - stream.first_operand_task);
  }
  CHECK(told == 4);
  CHECK(image.operand_tasks.size() == 4);
  CHECK(image.operand_bytes == bytes);
  std::vector<std::uint32_t> pages;
  for (const Instruction& one : image.instructions) pages.push_back(one.dependent_pages);
  std::sort(pages.begin(), pages.end());
  CHECK(pages == std::vector<std::uint32_t>{0, 0, 0, 1, 2});
}
