#include "host/load/heap.hpp"
#include "support/internals.hpp"

#include <atomic>
#include <thread>
#include <utility>

#include "catch.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

struct HeapFixture {
  std::unique_ptr<Engine> engine = make_cpu_engine(kernel_entry<Count>(), on_cpu());
  Heap heap{*engine, 1024};
};

std::uintptr_t address(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

}  // namespace

TEST_CASE_METHOD(HeapFixture, "a heap hands out aligned, disjoint memory until it is full") {
  std::vector<void*> all;
  while (void* memory = heap.try_allocate(100)) all.push_back(memory);
  CHECK(all.size() == 4);
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(address(all[i]) % 256 == 0);
    for (std::size_t k = 0; k < i; ++k) CHECK(all[i] != all[k]);
  }
  heap.release(all[2]);
  CHECK(heap.try_allocate(256) == all[2]);
  CHECK(heap.try_allocate(1) == nullptr);
}

TEST_CASE_METHOD(HeapFixture, "a heap grows by chunks that hold what was asked for") {
  CHECK(heap.try_allocate(5000) == nullptr);
  void* large = heap.grow(5000);
  REQUIRE(large);
  CHECK(address(large) % 256 == 0);
  CHECK(heap.try_allocate(5000) == nullptr);  // what others ask for meanwhile
  void* small = heap.try_allocate(1024);      // the first chunk is still there
  CHECK(small);
  heap.release(large);
  CHECK(heap.try_allocate(5000) == large);
}

TEST_CASE_METHOD(HeapFixture, "memory of others is left alone") {
  int elsewhere = 0;
  void* all = heap.try_allocate(1024);
  heap.release(&elsewhere);
  CHECK(heap.try_allocate(1) == nullptr);
  heap.release(all);
  CHECK(heap.try_allocate(1024) == all);
}

TEST_CASE("allocating more than the heap has parks the kernel and grows it, also with runs in flight") {
  Options options = on_cpu();
  options.heap_bytes = 1 << 16;
  Bench bench(options);
  Executable counter = bench.counter(0);
  std::vector<Run> runs;
  std::vector<Buffer<std::uint64_t>> buffers;
  for (int i = 0; i < 10; ++i) {
    bench.runtime.submit(counter).wait();  // the kernel is resident
    runs.push_back(bench.runtime.submit(counter));
    buffers.push_back(bench.runtime.allocate<std::uint64_t>(1 << 14));
  }
  for (Run& run : runs) run.wait();
  CHECK(bench.get(0) == 20);
  for (const auto& buffer : buffers) CHECK(buffer.read()[(1 << 14) - 1] == 0);
  CHECK(bench.runtime.stats().parks > 0);
}

TEST_CASE("runs that keep coming do not keep a heap from growing") {
  Options options = on_cpu();
  options.heap_bytes = 1 << 16;
  Bench bench(options);
  Executable gates[2];
  Run last = bench.hold(0, gates[0]), other = bench.hold(2, gates[1]);
  std::atomic<bool> over{false};
  std::thread submitter([&] {
    for (std::size_t side = 0; !over; side = 1 - side) {  // each stays until the next has begun, or cannot
      bench.put(2 * side + 1, 1);
      last.wait();
      bench.put(2 * side + 1, 0);
      const std::uint32_t entered = bench.get(2 * side);
      last = std::exchange(other, bench.runtime.submit(gates[side]));
      eventually([&] { return bench.get(2 * side) > entered; }, std::chrono::milliseconds(50));
    }
  });
  CHECK_NOTHROW(bench.runtime.allocate<std::uint64_t>(1 << 16));
  over = true;
  submitter.join();
  for (const std::size_t side : {0, 1}) bench.put(2 * side + 1, 1);
}

TEST_CASE("a heap that cannot grow because a run does not end says what to do") {
  Options options = on_cpu();
  options.heap_bytes = 1 << 16;
  options.shutdown_timeout = std::chrono::milliseconds(300);
  Bench bench(options);
  Executable held;
  Run run = bench.hold(0, held);
  check_says(error_of<CapacityError>([&] { bench.runtime.allocate<std::uint64_t>(1 << 16); }),
             {"device memory is used up", "Options::heap_bytes"});
  bench.put(1, 1);
  run.wait();
  CHECK(bench.runtime.allocate<std::uint64_t>(1 << 16).size() == 1 << 16);
}
