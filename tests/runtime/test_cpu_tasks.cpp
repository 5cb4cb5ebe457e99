// The loops of CPU workers call a list's task types through pointers: the right type, with the block it is owed.
#include "runtime/cpu/tasks.hpp"
#include "support/internals.hpp"

#include <stdexcept>

#include "catch.hpp"
#include "support/launch.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// A warp task, which has a warp's part of the scratch memory, and throws with it.
struct ThrowOnWarp {
  using Grain = Warp;
  bool* had_part;
  template <class Block>
  void operator()(Block& block) const {
    *had_part = block.template scratch<char>(static_cast<int>(kPart)) != nullptr;
    throw std::runtime_error("as it was told to");
  }
  static constexpr std::uint32_t kPart = 512;
};
/// Wants all of it.
struct TakeAll {
  bool* had_all;
  template <class Block>
  void operator()(Block& block) const {
    *had_all = block.template scratch<char>(static_cast<int>(kWorkerWarps * ThrowOnWarp::kPart)) != nullptr;
  }
};
/// Has operands of both kinds, and a compute part that adds up the first byte of each page.
struct AddPages {
  std::uint32_t constant_bytes;
  const unsigned char* pieces[2];
  std::uint32_t piece_bytes[2];
  std::uint64_t* sum;
  std::uint32_t operand_bytes() const { return constant_bytes; }
  std::uint32_t dependent_pages() const { return pages_of(piece_bytes[0]) + pages_of(piece_bytes[1]); }
  template <class Block>
  void pack(Block&, unsigned char* to) const {
    std::memset(to, 3, constant_bytes);
  }
  template <class Fetch>
  void dependents(Fetch&& fetch) const {
    for (int i = 0; i < 2; ++i) fetch(pieces[i], piece_bytes[i]);
  }
  template <class Block, class Operands>
  void compute(Block&, Operands& operands) const {
    while (const unsigned char* page = operands.consumer_wait()) {
      *sum += *page;
      operands.consumer_release();
    }
  }
  template <class Block>
  void operator()(Block&) const {
    *sum = ~0ull;
  }
};

using ListedTasks = TaskList<ThrowOnWarp, TakeAll, AddPages>;
constexpr const CpuTasks<CpuPlatform>& kTasks = cpu_tasks<ListedTasks>;

/// A block outside any run.
struct Bench {
  TestDeviceState device;
  TaskRecord record{};
  TaskContext context{&device.dev, &record.header, device.dev.runs, {0, 0, false}, 0, {}};
  CpuWorkerBlock<CpuPlatform> block{kTasks, context, nullptr};
};

template <class Task>
TaskRecord record_of(const Task& task) {
  TestGraph<ListedTasks> graph;
  graph.add(task);
  return graph.records[0];
}

}  // namespace

TEST_CASE("a task that throws on one warp leaves the next of its phase all scratch memory") {
  DeviceStateShape shape;
  shape.workers = 1;
  TestDeviceState device(shape);
  device.dev.scratch_bytes = kWorkerWarps * ThrowOnWarp::kPart;
  bool had_part = false, had_all = false;
  TestGraph<ListedTasks> graph;
  graph.add(ThrowOnWarp{&had_part});
  graph.add(TakeAll{&had_all});
  graph.phases = {{0, 2, 0, 0}};
  Launch<ListedTasks> launch(device);
  CHECK(launch.run(device.load(graph)) == static_cast<std::uint32_t>(Status::task_threw));
  CHECK(had_part);
  CHECK(had_all);
}

TEST_CASE("a task's parts are those of its own type") {
  Bench bench;
  std::vector<unsigned char> first(2 * kPageBytes + 1, 10), second(kPageBytes, 100), packed(kPageBytes + 5);
  std::uint64_t sum = 0;
  const TaskRecord record = record_of(AddPages{static_cast<std::uint32_t>(packed.size()),
                                               {first.data(), second.data()},
                                               {static_cast<std::uint32_t>(first.size()), kPageBytes},
                                               &sum});
  kTasks.pack(record, bench.block, packed.data());
  CpuOperands operands(packed.data(), static_cast<std::uint32_t>(packed.size()));
  CHECK(kTasks.add_dependents(record, operands) == 4);
  kTasks.compute(record, bench.block, operands);
  CHECK(sum == 2 * 3 + 3 * 10 + 100);
  CHECK(operands.end() == Status::ok);
  kTasks.run(record, bench.block);
  CHECK(sum == ~0ull);
}

TEST_CASE("a type without a compute part runs its body, and has no operands") {
  Bench bench;
  bool had_all = true;
  const TaskRecord record = record_of(TakeAll{&had_all});
  CpuOperands operands(nullptr, 0);
  CHECK(kTasks.add_dependents(record, operands) == 0);
  kTasks.compute(record, bench.block, operands);  // the device state has no scratch memory
  CHECK(!had_all);
  CHECK(bench.context.outcome.code == static_cast<std::uint32_t>(Status::scratch_exhausted));
}
