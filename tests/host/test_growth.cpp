// Memory for graphs and queues that grows while a program loads more.
#include "host/futures/core.hpp"
#include "host/kernel/device_state_memory.hpp"
#include "support/internals.hpp"

#include <thread>

#include "support/frail_engine.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

constexpr std::uint32_t kMany = 300'000;  // more tasks than the arena and the queues begin with

/// `n` tasks of ten levels that count in one word.
Graph counts(std::uint32_t* word, std::uint32_t n) {
  Graph graph;
  std::vector<TaskRef<>> tasks;
  for (std::uint32_t i = 0; i < n; ++i)
    tasks.push_back(i < n / 10 ? graph.add(Count{word}) : graph.add(Count{word}, after(tasks[i - n / 10])));
  return graph;
}

}  // namespace

TEST_CASE("arena and queues grow for a large graph, and graphs that were loaded before still run") {
  Bench bench(on_cpu());
  const Executable small = bench.counter(0);
  bench.runtime.submit(small).wait();
  const DeviceStateMemory& memory = small.loaded()->core->memory;
  const std::uint64_t units = memory.arena_units(), slots = memory.dev().queue_capacity;
  const Executable large = bench.runtime.load(counts(bench.at(1), kMany));
  CHECK(memory.arena_units() > units);
  CHECK(memory.dev().queue_capacity > slots);
  for (int i = 0; i < 2; ++i) bench.runtime.submit(large).wait();
  bench.runtime.submit(small, repeat(3)).wait();
  CHECK(bench.get(0) == 4);
  CHECK(bench.get(1) == 2 * kMany);
}

TEST_CASE("extents that come back are used again: a thousand loads take no more memory than one") {
  Bench bench(on_cpu());
  for (int i = 0; i < 1000; ++i) {
    const Executable executable = bench.runtime.load(counts(bench.at(0), 1000));
    if (i % 100 == 0) bench.runtime.submit(executable).wait();
  }
  CHECK(bench.get(0) == 10 * 1000);
  CHECK(bench.counter(1).loaded()->core->memory.arena_units() < (64u << 20) / sizeof(TaskRecord));
}

TEST_CASE("an executable that is dropped while it runs ends its run first, beside others that are loaded there") {
  Bench bench(on_cpu());
  Executable held;
  Run run = bench.hold(0, held);
  Loader& loader = held.loaded()->core->loader;
  const std::uint64_t units = loader.used_units();
  held = Executable();
  for (int i = 0; i < 100; ++i) bench.runtime.submit(bench.counter(2)).wait();
  CHECK(loader.used_units() == units);
  bench.put(1, 1);
  run.wait();
  run = Run();
  CHECK(eventually([&] { return loader.used_units() == 0; }));
  CHECK(bench.get(2) == 100);
}

TEST_CASE("memory for graphs does not grow under a run that does not end, and the error says so") {
  Options options = on_cpu();
  options.shutdown_timeout = std::chrono::milliseconds(50);
  Bench bench(options);
  Executable held;
  Run run = bench.hold(0, held);
  const Graph large = counts(bench.at(2), kMany);
  check_says(error_of<CapacityError>([&] { bench.runtime.load(large); }), {"parked kernel", "runs in flight"});
  bench.put(1, 1);
  run.wait();
  bench.runtime.submit(bench.runtime.load(large)).wait();
  CHECK(bench.get(2) == kMany);
}

TEST_CASE("several threads load and run while the arena grows") {
  Bench bench(on_cpu());
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < 4; ++i) {
        const Graph graph = counts(bench.at(t), 40'000 << i);
        bench.runtime.submit(bench.runtime.load(graph)).wait();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t t = 0; t < 3; ++t) CHECK(bench.get(t) == 15 * 40'000);
}

TEST_CASE("an arena that finds no memory stays as it is, and the pieces are given back") {
  const auto frailty = std::make_shared<Frailty>();
  const KernelEntry& entry = kernel_entry<Count>();
  FrailEngine engine(entry, on_cpu(), frailty);
  {
    DeviceStateMemory memory(engine, on_cpu());
    const int pieces = frailty->pieces;
    const std::uint64_t units = memory.arena_units();
    const DeviceState before = memory.dev();
    memory.dev().records[units - 1].header.local = 4711;
    frailty->pieces_left = 0;
    CHECK_FALSE(error_of<DeviceError>([&] { memory.grow_arena(2 * units); }).empty());
    frailty->pieces_left = 0;
    CHECK_FALSE(error_of<DeviceError>([&] { memory.grow_queues(2 * before.queue_capacity); }).empty());
    CHECK(memory.arena_units() == units);
    CHECK(memory.dev().records == before.records);
    CHECK(memory.dev().queue_slots == before.queue_slots);
    CHECK(memory.dev().queue_capacity == before.queue_capacity);
    frailty->pieces_left = 1 << 20;
    memory.grow_arena(2 * units);
    memory.grow_queues(before.queue_room + 1);
    CHECK(frailty->pieces == pieces);
    CHECK(memory.arena_units() == 2 * units);
    CHECK(memory.dev().records[units - 1].header.local == 4711);
    CHECK(static_cast<void*>(memory.dev().edges) == memory.dev().records);
    CHECK(memory.dev().queue_room == 2 * before.queue_room);
    check_says(error_of<CapacityError>([&] { memory.grow_queues(std::uint64_t{1} << 40); }), {"slots at most"});
  }
  CHECK(frailty->pieces == 0);
}
