#include "apps/bfs/runtime_engine.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "apps/bfs/build_graph.hpp"
#include "apps/bfs/delta_search.hpp"
#include "apps/bfs/level_search.hpp"
#include "apps/bfs/region_search.hpp"

namespace bfs {
namespace {

using flywheel::Buffer;
using flywheel::Runtime;
using std::chrono::steady_clock;

double milliseconds_since(steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(steady_clock::now() - begin).count();
}

/// The device memory of a graph and of its searches.
struct GraphBuffers {
  Buffer<std::uint32_t> offsets, targets, distance, reached[2], expanded, far_mark, far[2];
  Buffer<std::uint8_t> weights;
  Buffer<Piece> frontier[2];
  Buffer<std::uint64_t> inboxes;
  Buffer<LevelWords> level_words;
  Buffer<RegionWords> region_words;
  Buffer<DeltaCounts> delta_counts;
  Buffer<DeltaMemory> delta;

  GraphBuffers() = default;
  GraphBuffers(Runtime& rt, std::uint32_t vertices, std::uint64_t edges) {
    const std::uint32_t n = std::max(vertices, 1u);
    offsets = rt.allocate<std::uint32_t>(n + std::size_t{1});
    targets = rt.allocate<std::uint32_t>(std::max<std::uint64_t>(edges, 1));
    weights = rt.allocate<std::uint8_t>(std::max<std::uint64_t>(edges, 1));
    for (auto* one : {&distance, &expanded, &far_mark, &far[0], &far[1]}) *one = rt.allocate<std::uint32_t>(n);
    for (auto& one : reached) one = rt.allocate<std::uint32_t>((n + std::size_t{31}) / 32);
    for (auto& one : frontier) one = rt.allocate<Piece>(n + edges / kPieceEdges);
    level_words = rt.allocate<LevelWords>(1);
    region_words = rt.allocate<RegionWords>(rt.workers());
    inboxes = rt.allocate<std::uint64_t>(std::size_t{rt.workers()} * inbox_capacity(rt, n));
    delta_counts = rt.allocate<DeltaCounts>(1);
    delta = rt.allocate<DeltaMemory>(1);
  }

  static std::uint32_t region_of(const Runtime& rt, std::uint32_t vertices) { return (vertices - 1) / rt.workers() + 1; }
  /// Most regions get a message for each vertex at their border; what has no room costs a look through the region.
  static std::uint32_t inbox_capacity(const Runtime& rt, std::uint32_t vertices) {
    return std::max(region_of(rt, vertices) / 8, 32u);
  }

  GraphView view(std::uint32_t vertices) const {
    return {offsets.data(), targets.data(), weights.data(), vertices, static_cast<std::uint32_t>(targets.size())};
  }
  LevelMemory levels(std::uint32_t n) const {
    return {view(n),
            distance.data(),
            {reached[0].data(), reached[1].data()},
            {frontier[0].data(), frontier[1].data()},
            level_words.data()};
  }
  RegionMemory regions(const Runtime& rt, std::uint32_t n) const {
    return {view(n),         distance.data(), expanded.data(), inboxes.data(), region_words.data(), inbox_capacity(rt, n),
            region_of(rt, n)};
  }
  DeltaMemory deltas(std::uint32_t n, std::uint32_t width) const {
    return {view(n),
            distance.data(),
            expanded.data(),  // of the search by regions: here the turns
            far_mark.data(),
            {frontier[0].data(), frontier[1].data()},
            {far[0].data(), far[1].data()},
            delta_counts.data(),
            width};
  }
};

/// A search, loaded, and the parameter that is its root.
struct LoadedSearch {
  flywheel::Executable executable;
  flywheel::Param<std::uint32_t> root;
};

class RuntimeEngine final : public Engine {
 public:
  explicit RuntimeEngine(Runtime rt) : rt_(std::move(rt)) {}

  std::string device() const override { return rt_.device(); }
  void set_delta(std::uint32_t delta) override { delta_ = delta; }

  double make_graph(EdgeSource edges) override {
    if (edges.vertices == 0) throw std::invalid_argument("a graph has at least one vertex");
    if (edges.count >= std::uint64_t{1} << 31)
      throw std::invalid_argument("a graph has fewer than 2^31 edges, and this one " + std::to_string(edges.count));
    searches_.clear();
    buffers_ = {};
    vertices_ = edges.vertices;
    buffers_ = GraphBuffers(rt_, vertices_, 2 * edges.count);
    const double spent = build(edges);
    buffers_.delta.write({buffers_.deltas(vertices_, delta_)});
    load_searches();
    return spent;
  }

  HostGraph graph() const override {
    return {buffers_.offsets.read(), read_edges(buffers_.targets), read_edges(buffers_.weights)};
  }

  double search(Method method, std::uint32_t root) override {
    const LoadedSearch& loaded = searches_.at(static_cast<std::size_t>(method));
    const auto begin = steady_clock::now();
    rt_.submit(loaded.executable, flywheel::set(loaded.root, root)).wait();
    return milliseconds_since(begin);
  }
  std::vector<std::uint32_t> distances() const override { return buffers_.distance.read(); }
  std::vector<StepRecord> steps() const override {
    const LevelWords words = buffers_.level_words.read().front();
    std::vector<StepRecord> steps;
    for (const StepRecord& record : words.records) {
      steps.push_back(record);
      if (record.items == 0) return steps;
    }
    return {};
  }

  LevelMemory level_memory() const override { return buffers_.levels(vertices_); }
  std::shared_ptr<void> pause() override { return std::make_shared<flywheel::Pause>(rt_); }

 private:
  double build(EdgeSource edges) {
    Buffer<Edge> list;
    if (edges.list && edges.count) list = rt_.upload(std::vector<Edge>(edges.list, edges.list + edges.count));
    edges.list = list.data();
    const Buffer<std::uint32_t> shares = rt_.allocate<std::uint32_t>(rt_.workers());
    flywheel::Graph graph;
    graph.add_grid(BuildGraph{edges, buffers_.view(vertices_), buffers_.distance.data(), shares.data()});
    const flywheel::Executable executable = rt_.load(graph);
    const auto begin = steady_clock::now();
    rt_.submit(executable).wait();
    return milliseconds_since(begin);
  }

  /// In the order of Method.
  void load_searches() {
    const LevelMemory levels = buffers_.levels(vertices_);
    searches_.push_back(load([&](auto root) { return LevelSearch{levels, root, 1}; }));
    searches_.push_back(load([&](auto root) { return LevelSearch{levels, root, 0}; }));
    searches_.push_back(load([&](auto root) { return RegionSearch{buffers_.regions(rt_, vertices_), root}; }));
    searches_.push_back(load([&](auto root) { return DeltaSearch{buffers_.delta.data(), root}; }));
  }
  template <class MakeTask>
  LoadedSearch load(MakeTask&& task_with) {
    flywheel::Graph graph;
    const auto root = graph.param<std::uint32_t>();
    graph.add_grid(task_with(root));
    return {rt_.load(graph), root};
  }

  /// The buffer of a graph without edges has one element all the same.
  template <class T>
  std::vector<T> read_edges(const Buffer<T>& buffer) const {
    std::vector<T> all = buffer.read();
    std::uint32_t count = 0;
    buffers_.offsets.read(&count, 1, vertices_);
    all.resize(count);
    return all;
  }

  Runtime rt_;
  GraphBuffers buffers_;
  std::vector<LoadedSearch> searches_;
  std::uint32_t vertices_ = 0;
  std::uint32_t delta_ = 128;
};

}  // namespace

std::unique_ptr<Engine> make_engine(Runtime rt) { return std::make_unique<RuntimeEngine>(std::move(rt)); }

}  // namespace bfs
