#include "host/tasks/task_store.hpp"
#include "support/internals.hpp"

#include <array>
#include <cstring>

#include "support/small_runtime.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
/// A task with arguments of so many bytes.
template <std::size_t Bytes>
struct Sized {
  std::array<unsigned char, Bytes> bytes;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

template <std::size_t Bytes>
void add_sized(Graph& graph, std::uint32_t value) {
  Sized<Bytes> task;
  task.bytes.fill(static_cast<unsigned char>(value));
  graph.add(task);
}

/// Whether the first `bytes` of a task's arguments have this value, and the rest of them none.
bool has_args(const GraphNode& node, std::size_t bytes, std::uint32_t value) {
  bool right = node.args.size() == (bytes + 15) / 16 * 16;
  for (std::size_t i = 0; i < node.args.size(); ++i)
    right &= node.args[i] == (i < bytes ? static_cast<unsigned char>(value) : 0);
  return right && reinterpret_cast<std::uintptr_t>(node.args.data()) % 16 == 0;
}

struct NoMembers {
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};
}  // namespace

TEST_CASE("a graph keeps the arguments of each task, whatever their sizes, from chunk to chunk") {
  Graph graph;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    add_sized<1>(graph, i);
    add_sized<16>(graph, i + 1);
    add_sized<96>(graph, i + 2);
    graph.add(NoMembers{});
    add_sized<33>(graph, i + 3);
  }
  std::uint32_t wrong = 0;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    constexpr std::size_t kBytes[] = {1, 16, 96, 0, 33};
    for (std::uint32_t k = 0; k < 5; ++k) wrong += !has_args(graph.nodes()[5 * i + k], kBytes[k], i + (k == 4 ? 3 : k));
  }
  CHECK(wrong == 0);
}

TEST_CASE("predecessors lie across chunks, in the order in which they were named") {
  const std::uint32_t chunk = ChunkList<std::uint32_t>::kPerChunk;
  Graph graph;
  std::vector<TaskRef<>> all;
  for (std::uint32_t i = 0; i < 2 * chunk; ++i) all.push_back(graph.add(NoMembers{}));
  const auto last = graph.add(NoMembers{}, after(all));
  const auto reversed = graph.add(NoMembers{}, after(std::vector(all.rbegin(), all.rend())));
  graph.edge(last, reversed);
  std::vector<std::uint32_t> wanted(2 * chunk);
  for (std::uint32_t i = 0; i < wanted.size(); ++i) wanted[i] = i;
  CHECK(graph.nodes()[last.index].predecessors == wanted);
  std::reverse(wanted.begin(), wanted.end());
  wanted.push_back(last.index);
  CHECK(graph.nodes()[reversed.index].predecessors == wanted);
}

TEST_CASE("what was added since a mark is cut off, with its arguments and predecessors") {
  TaskStore store;
  const std::uint32_t before[] = {0};
  const auto add = [&](std::size_t bytes) {
    const auto [task, args] = store.add(typeid(int), bytes, std::span(before, store.size() ? 1 : 0), Priority::low, 0, 0, 0);
    std::memset(static_cast<void*>(args), static_cast<int>(task), bytes);
    return task;
  };
  add(16);
  const TaskStore::Mark mark = store.mark();
  for (int i = 0; i < 20000; ++i) add(32);
  const std::uint32_t twice[] = {0, 0};
  store.add(typeid(int), 0, twice, Priority::low, 0, 0, 0);
  CHECK(store.repeats() == std::vector<std::uint32_t>{20001});
  store.cut(mark);
  CHECK(store.repeats().empty());
  CHECK(store.size() == 1);
  CHECK_FALSE(store.has_edges());
  CHECK(add(48) == 1);
  CHECK(store[1].args.size() == 48);
  CHECK(store[1].args[47] == 1);
  CHECK(store[0].args[0] == 0);
  CHECK(store[1].predecessors == std::vector<std::uint32_t>{0});
}

TEST_CASE("a graph like the last one takes its memory from the pool") {
  std::size_t kept = 0;
  for (int round = 0; round < 3; ++round) {
    {
      Graph graph;
      std::vector<TaskRef<>> all;
      for (std::uint32_t i = 0; i < 50000; ++i) all.push_back(graph.add(NoMembers{}, i ? after(all[i / 2]) : After{}));
      if (round) CHECK(kept_chunks() < kept);
    }
    if (round) CHECK(kept_chunks() == kept);
    kept = kept_chunks();
  }
}
