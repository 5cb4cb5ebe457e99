#include "host/loader.hpp"

#include <algorithm>
#include <atomic>

#include "host/core.hpp"

namespace flywheel {

namespace {
template <class... Parts>
[[noreturn]] void no_room(const std::string& what, std::uint64_t wanted, const char* option) {
  throw CapacityError("no room for " + std::to_string(wanted) + " more " + what + ": raise Options::" + option +
                      ", or drop executables that are no longer needed");
}
}  // namespace

namespace {
std::uint32_t next_serial() {
  static std::atomic<std::uint32_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}
}  // namespace

LoadedGraph::~LoadedGraph() {
  if (placed) core->loader.unload(*this);
}

std::string LoadedGraph::task_name(std::uint32_t local) const {
  const std::string number = "task " + std::to_string(local);
  return local < types.size() ? number + " (" + type_name(types[local]) + ")" : number;
}

Loader::Loader(Engine& engine, const World& world, Heap& heap, const KernelEntry& entry, const Options& options)
    : engine_(engine), world_(world), heap_(heap), entry_(entry), overlap_(std::max(options.overlap, 1u)),
      max_tasks_(options.max_tasks), max_edges_(options.max_edges), records_(options.max_tasks),
      edges_(options.max_edges), execs_(options.max_executables) {}

std::shared_ptr<LoadedGraph> Loader::load(const Graph& graph, std::shared_ptr<Core> core, std::size_t& needs_heap) {
  needs_heap = 0;
  check_buffers(graph);
  GraphImage image = make_image(graph, entry_);
  check_sizes(graph, image);
  auto loaded = std::make_shared<LoadedGraph>(std::move(core));
  loaded->graph_id = graph.id();
  loaded->kind = image.run.flags & kPhased ? GraphKind::phased : GraphKind::dynamic;
  loaded->task_count = graph.size();
  loaded->result_bytes = graph.result_bytes();
  loaded->params = graph.params();
  for (const GraphNode& node : graph.nodes()) loaded->types.push_back(node.type);
  for (std::uint32_t bank = 0; bank < overlap_; ++bank) loaded->free_banks.push_back(overlap_ - 1 - bank);
  if (!allocate_counters(*loaded, image, needs_heap)) return nullptr;
  reserve(*loaded, image);
  place(*loaded, image);
  return loaded;
}

void Loader::check_buffers(const Graph& graph) const {
  for (const BufferArgument& buffer : graph.buffers()) {
    const char* wrong = engine_.check_pointer(buffer.pointer);
    if (!wrong) continue;
    throw GraphError("task " + std::to_string(buffer.task) + " (" + type_name(graph.nodes()[buffer.task].type) +
                     "), buffer '" + buffer.name + "': " + wrong + ". Allocate it with Runtime::allocate() first.");
  }
}

void Loader::check_sizes(const Graph& graph, const GraphImage& image) const {
  if (graph.result_bytes() > world_.result_bytes)
    throw CapacityError("the graph's results take " + std::to_string(graph.result_bytes()) +
                        " bytes: raise Options::result_bytes from " + std::to_string(world_.result_bytes));
  if (graph.phase_count() == 0 && image.records.size() + world_.spawn_capacity > world_.queue_capacity)
    throw CapacityError("the graph has " + std::to_string(image.records.size()) +
                        " tasks; with the spawn pool more than a ready queue holds: raise Options::queue_capacity "
                        "from " + std::to_string(world_.queue_capacity));
  if (image.records.size() > max_tasks_) no_room("tasks", image.records.size(), "max_tasks");
  if (image.edges.size() > max_edges_) no_room("edges", image.edges.size(), "max_edges");
}

bool Loader::allocate_counters(LoadedGraph& loaded, const GraphImage& image, std::size_t& needs_heap) {
  const std::size_t counters = image.counters.size() * overlap_ * sizeof(std::uint64_t);
  const std::size_t phases = image.phases.size() * sizeof(Phase);
  loaded.placed = true;  // from here on the destructor gives back what was taken
  if (counters) loaded.counters = heap_.try_allocate(counters);
  if (phases) loaded.phases = heap_.try_allocate(phases);
  if ((!counters || loaded.counters) && (!phases || loaded.phases)) return true;
  needs_heap = counters + phases + 512;
  return false;
}

void Loader::reserve(LoadedGraph& loaded, const GraphImage& image) {
  std::scoped_lock lock(mutex_);
  const auto records = records_.allocate(image.records.size());
  const auto edges = edges_.allocate(image.edges.size());
  const auto exec = execs_.allocate(1);
  if (records && edges && exec) {
    loaded.first_record = static_cast<std::uint32_t>(*records);
    loaded.first_edge = static_cast<std::uint32_t>(*edges);
    loaded.exec = static_cast<std::uint32_t>(*exec);
    loaded.reserved = true;
    return;
  }
  if (records) records_.release(*records);
  if (edges) edges_.release(*edges);
  if (exec) execs_.release(*exec);
  if (!records) no_room("tasks", image.records.size(), "max_tasks");
  if (!edges) no_room("edges", image.edges.size(), "max_edges");
  no_room("executables", 1, "max_executables");
}

void Loader::place(LoadedGraph& loaded, GraphImage& image) {
  for (TaskRecord& record : image.records) record.header.first_edge += loaded.first_edge;
  image.run.first_record = loaded.first_record;
  image.run.first_root += loaded.first_edge;
  image.run.exec = loaded.exec;
  image.run.serial = next_serial();
  image.run.param_bytes = static_cast<std::uint32_t>(loaded.params.size());
  loaded.constants = image.run;
  image.exec.phases = static_cast<const Phase*>(loaded.phases);
  const auto copy = [&](void* to, const auto& from) {
    if (!from.empty()) engine_.copy_to_device(to, from.data(), from.size() * sizeof(from[0]));
  };
  copy(world_.records + loaded.first_record, image.records);
  copy(world_.edges + loaded.first_edge, image.edges);
  copy(loaded.phases, image.phases);
  for (std::uint32_t bank = 0; bank < overlap_; ++bank)
    copy(static_cast<std::uint64_t*>(loaded.counters) + bank * image.counters.size(), image.counters);
  engine_.copy_to_device(world_.execs + loaded.exec, &image.exec, sizeof(ExecRecord));
}

void Loader::unload(LoadedGraph& graph) {
  if (graph.counters) heap_.release(graph.counters);
  if (graph.phases) heap_.release(graph.phases);
  if (!graph.reserved) return;
  std::scoped_lock lock(mutex_);
  records_.release(graph.first_record);
  edges_.release(graph.first_edge);
  execs_.release(graph.exec);
}

}  // namespace flywheel
