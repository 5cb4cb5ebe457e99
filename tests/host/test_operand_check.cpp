// What a task says of its operands is checked when its graph is loaded, before anything runs.
#include "runtime/compiled/operands.hpp"
#include "support/internals.hpp"
#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {

/// Names so many pieces, one behind the other.
struct Pieces {
  const unsigned char* at;
  std::uint32_t count, bytes, said;
  std::uint32_t constants = 0;

  std::uint32_t operand_bytes() const { return constants; }
  std::uint32_t dependent_pages() const { return said; }
  template <class Fetch>
  FLYWHEEL_TASK void dependents(Fetch&& fetch) const {
    for (std::uint32_t i = 0; i < count; ++i) fetch(at + std::size_t{i} * bytes, bytes);
  }
  template <class Block>
  FLYWHEEL_TASK void pack(Block&, unsigned char*) const {}
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

struct OperandFixture {
  Runtime runtime = start<Pieces, Count>(on_cpu(2));
  Buffer<unsigned char> memory = runtime.allocate<unsigned char>(1 << 16);

  Executable load(const Pieces& task) {
    Graph graph;
    graph.add(task);
    return runtime.load(graph, compiled);
  }
  template <class E>
  std::string refusal(const Pieces& task) {
    return error_of<E>([&] { load(task); });
  }
};

}  // namespace

TEST_CASE_METHOD(OperandFixture, "pieces of whole 16 bytes, as many pages as said: that loads and runs") {
  runtime.submit(load({memory.data(), 16, 16, 16})).wait();
  runtime.submit(load({memory.data() + 16, 1, kPageBytes, 1})).wait();
  runtime.submit(load({memory.data(), 1, kPageBytes + 16, 2})).wait();
  runtime.submit(load({memory.data(), 0, 0, 0})).wait();
}

TEST_CASE_METHOD(OperandFixture, "pointers and sizes that no copy can be made of are refused by task and piece") {
  check_says(refusal<UsageError>({memory.data() + 8, 1, 16, 1}),
             {"task 0", "Pieces", "piece 0", "pointer is not a multiple of 16", "Begin the piece"});
  check_says(refusal<UsageError>({memory.data(), 3, 24, 3}), {"piece 0", "24 bytes", "multiple of 16", "Round it up"});
  check_says(refusal<UsageError>({nullptr, 1, 16, 1}), {"the pointer is null", "Runtime::allocate()"});
}

TEST_CASE_METHOD(OperandFixture, "more pieces or bytes than a task may have are refused") {
  check_says(refusal<CapacityError>({memory.data(), 17, 16, 17}), {"task 0", "17 pieces", "16 is the most", "split"});
  check_says(refusal<CapacityError>({memory.data(), 0, 0, 0, ~0u}), {"4294967295 bytes", "4294957056", "split"});
}

TEST_CASE_METHOD(OperandFixture, "dependent_pages() that does not agree with dependents() is refused") {
  check_says(refusal<UsageError>({memory.data(), 2, 16, 1}),
             {"names 2 pages", "dependent_pages() says 1", "Add up pages_of()"});
  check_says(refusal<UsageError>({memory.data(), 0, 0, 1}), {"names 0 pages", "says 1"});
}

TEST_CASE_METHOD(OperandFixture, "without `compiled` nothing is copied, and anything goes; a refused graph leaves no trace") {
  Graph graph;
  graph.add(Pieces{memory.data() + 3, 20, 5, 7});
  CHECK_THROWS_AS(runtime.load(graph, compiled), CapacityError);
  runtime.submit(runtime.load(graph)).wait();
  runtime.submit(load({memory.data(), 1, 16, 1})).wait();
}
