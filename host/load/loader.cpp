#include "loader.hpp"

#include <algorithm>
#include <atomic>
#include <bit>

#include "../plan/task_name.hpp"
#include "graph_image.hpp"

namespace flywheel::detail {

namespace {
/// `limit`: the option's value. With room for `wanted` more behind it, any graph of that size can be loaded.
[[noreturn]] void no_room(const std::string& what, std::uint64_t wanted, const char* option, std::uint64_t limit) {
  throw CapacityError("no room for " + std::to_string(wanted) + " more " + what + ": raise Options::" + option + " from " +
                      std::to_string(limit) + " to " + std::to_string(limit + wanted) +
                      ", or drop executables that are no longer needed");
}

/// The pages of a task's dependent operands are fetched together.
void check_dependents(const Graph& graph, std::uint32_t task, const DeviceState& dev) {
  const std::uint32_t pages = graph.nodes()[task].dependent_pages;
  if (pages <= dev.page_window) return;
  const std::string remedy =
      pages <= dev.page_count
          ? "set Options::tuning.operand_window to " + std::to_string(pages * kPageBytes) + ", or split the task"
          : "split the task: a worker has " + std::to_string(dev.page_count) + " pages";
  throw CapacityError(name_of(graph, task) + " has " + std::to_string(pages) + " pages of dependent operands, and " +
                      std::to_string(dev.page_window) + " may be under way at once: " + remedy);
}

/// All tasks of a dynamic run and all records of the spawn pool may be ready at once, in one queue.
void check_queue(std::uint64_t tasks, const DeviceState& dev) {
  const std::uint64_t together = tasks + dev.spawn_capacity;
  if (together <= dev.queue_room) return;
  throw CapacityError("the graph has " + std::to_string(tasks) + " tasks and the spawn pool " +
                      std::to_string(dev.spawn_capacity) +
                      " records (Options::spawn_capacity, rounded up to a power of two): together " + std::to_string(together) +
                      ", and a ready queue holds " + std::to_string(dev.queue_room) + ". Set Options::queue_capacity to " +
                      std::to_string(std::bit_ceil(together)) +
                      (tasks < dev.queue_room
                           ? ", or Options::spawn_capacity to at most " + std::to_string(std::bit_floor(dev.queue_room - tasks))
                           : ""));
}

/// Offsets of the parts of a schedule, which share one allocation. Each part is aligned to 256 bytes.
struct ScheduleParts {
  explicit ScheduleParts(const ScheduleImage& image) {
    const auto place = [this](std::size_t size) {
      const std::size_t at = bytes;
      bytes = (bytes + size + 255) / 256 * 256;
      return at;
    };
    place(sizeof(Schedule));
    streams = place(image.streams.size() * sizeof(WorkerStream));
    counters = place(std::size_t{image.counters} * kCounterStride * sizeof(std::uint64_t));
    operand_tasks = place(image.operand_tasks.size() * sizeof(OperandTask));
    instructions = place(image.instructions.size() * sizeof(Instruction));
  }
  std::size_t bytes = 0, streams, counters, operand_tasks, instructions;
};

std::uint32_t next_serial() {
  static std::atomic<std::uint32_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;  // relaxed: the serials only have to differ
}

/// Keeps what messages and traces need of the tasks.
void note_tasks(LoadedGraph& loaded, const Graph& graph) {
  loaded.stages = graph.stages();
  for (const GraphNode& node : graph.nodes()) {
    loaded.types.push_back(node.type);
    loaded.stage_of.push_back(node.stage);
    loaded.in_gang.push_back(node.gang != kNoGang);
    std::uint32_t& bytes = loaded.dependent_bytes.emplace_back(0);
    for (const DependentPiece& piece : node.dependents) bytes += piece.bytes;
  }
}

}  // namespace

Loader::Loader(Engine& engine, const DeviceState& dev, Heap& heap, const KernelEntry& entry, const Options& options)
    : engine_(engine),
      dev_(dev),
      heap_(heap),
      entry_(entry),
      overlap_(options.overlap),
      max_tasks_(options.max_tasks),
      max_edges_(options.max_edges),
      max_executables_(options.max_executables),
      records_(options.max_tasks),
      edges_(options.max_edges),
      execs_(options.max_executables) {}

std::shared_ptr<LoadedGraph> Loader::load(const Graph& graph, const Compiled* how, std::shared_ptr<Core> core,
                                          std::size_t& needs_heap) {
  needs_heap = 0;
  check_buffers(graph);
  GraphImage image = how ? compile_image(graph, entry_, dev_.workers, *how) : make_image(graph, entry_);
  check_sizes(graph, image);
  const auto give_back = [this](LoadedGraph* old) {
    unload(*old);
    delete old;  // may drop the last reference to the core, and so destroy the loader
  };
  std::shared_ptr<LoadedGraph> loaded(new LoadedGraph(std::move(core)), give_back);
  loaded->graph_id = graph.id();
  loaded->kind = how ? GraphKind::compiled : image.run.flags & kPhased ? GraphKind::phased : GraphKind::dynamic;
  loaded->operand_bytes = image.schedule.operand_bytes;
  loaded->task_count = graph.size();
  loaded->result_bytes = static_cast<std::uint32_t>(graph.result_bytes());
  loaded->params = graph.params();
  note_tasks(*loaded, graph);
  const std::uint32_t banks = loaded->kind == GraphKind::compiled ? 1 : overlap_;
  for (std::uint32_t bank = banks; bank-- > 0;) loaded->free_banks.push_back(bank);
  if (!allocate(*loaded, image, needs_heap)) return nullptr;
  reserve(*loaded, image);
  place(*loaded, image);
  return loaded;
}

void Loader::check_buffers(const Graph& graph) const {
  for (const BufferArgument& buffer : graph.buffers()) {
    const std::string wrong = engine_.check_pointer(buffer.pointer);
    if (wrong.empty()) continue;
    throw GraphError(name_of(graph, buffer.task) + ", buffer '" + buffer.name + "': " + wrong +
                     ". Allocate it with Runtime::allocate() first.");
  }
}

void Loader::check_sizes(const Graph& graph, const GraphImage& image) const {
  if (graph.result_bytes() > dev_.result_bytes)
    throw CapacityError("the graph's results take " + std::to_string(graph.result_bytes()) +
                        " bytes: raise Options::result_bytes from " + std::to_string(dev_.result_bytes) + " to that");
  if (!(image.run.flags & kAllWorkers)) check_queue(image.records.size(), dev_);
  for (std::uint32_t task = 0; dev_.page_count && task < graph.size(); ++task) check_dependents(graph, task, dev_);
  if (image.records.size() > max_tasks_) no_room("tasks", image.records.size(), "max_tasks", max_tasks_);
  if (image.edges.size() > max_edges_) no_room("edges", image.edges.size(), "max_edges", max_edges_);
}

namespace {
/// An empty range gets the position `end`, which is never allocated, so releasing it later does nothing.
std::optional<std::uint64_t> take_range(FreeList& list, std::size_t size, std::uint32_t end) {
  return size ? list.allocate(size) : end;
}
}  // namespace

bool Loader::allocate(LoadedGraph& loaded, const GraphImage& image, std::size_t& needs_heap) {
  loaded.placed = true;  // from here on unload() frees what was allocated
  const auto take = [&](std::size_t bytes, void*& to) {
    if (!bytes || needs_heap) return;
    to = heap_.try_allocate(bytes);
    if (!to) needs_heap = bytes;
  };
  const bool compiled = loaded.kind == GraphKind::compiled;
  take(image.counters.size() * overlap_ * sizeof(std::uint64_t), loaded.counters);
  take(image.phases.size() * sizeof(Phase), loaded.phases);
  take(compiled ? ScheduleParts(image.schedule).bytes : 0, loaded.schedule);
  take(image.schedule.operand_bytes, loaded.operands);
  return !needs_heap;
}

void Loader::reserve(LoadedGraph& loaded, const GraphImage& image) {
  std::scoped_lock lock(mutex_);
  // A compiled graph has no records (its instructions contain them), and a phased or compiled graph has no edges.
  const auto records = take_range(records_, image.records.size(), max_tasks_);
  const auto edges = take_range(edges_, image.edges.size(), max_edges_);
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
  if (!records) no_room("tasks", image.records.size(), "max_tasks", max_tasks_);
  if (!edges) no_room("edges", image.edges.size(), "max_edges", max_edges_);
  no_room("executables", 1, "max_executables", max_executables_);
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
  image.exec.schedule = static_cast<Schedule*>(loaded.schedule);
  const auto copy = [&](void* to, const auto& from) {
    if (!from.empty()) engine_.copy_to_device(to, from.data(), from.size() * sizeof(from[0]));
  };
  copy(dev_.records + loaded.first_record, image.records);
  copy(dev_.edges + loaded.first_edge, image.edges);
  copy(loaded.phases, image.phases);
  for (std::uint32_t bank = 0; bank < overlap_; ++bank)
    copy(static_cast<std::uint64_t*>(loaded.counters) + bank * image.counters.size(), image.counters);
  if (loaded.schedule) place_schedule(loaded, image);
  engine_.copy_to_device(dev_.execs + loaded.exec, &image.exec, sizeof(ExecRecord));
}

void Loader::place_schedule(LoadedGraph& loaded, const GraphImage& image) {
  const ScheduleImage& from = image.schedule;
  const ScheduleParts parts(from);
  auto* const base = static_cast<unsigned char*>(loaded.schedule);
  std::vector<unsigned char> bytes(parts.bytes);
  Schedule schedule{};
  schedule.streams = reinterpret_cast<WorkerStream*>(base + parts.streams);
  schedule.counters = reinterpret_cast<std::uint64_t*>(base + parts.counters);
  schedule.counter_count = from.counters;
  schedule.sinks = from.sinks;
  schedule.leader = from.leader;
  std::vector<WorkerStream> streams;
  for (const ScheduleImage::Stream& s : from.streams)
    streams.push_back({reinterpret_cast<const Instruction*>(base + parts.instructions) + s.first,
                       static_cast<unsigned char*>(loaded.operands) + s.operands_at,
                       reinterpret_cast<const OperandTask*>(base + parts.operand_tasks) + s.first_operand_task, s.operand_tasks,
                       s.count});
  std::memcpy(bytes.data(), &schedule, sizeof(schedule));
  std::memcpy(bytes.data() + parts.streams, streams.data(), streams.size() * sizeof(WorkerStream));
  std::copy_n(from.operand_tasks.begin(), from.operand_tasks.size(),
              reinterpret_cast<OperandTask*>(bytes.data() + parts.operand_tasks));
  std::memcpy(bytes.data() + parts.instructions, from.instructions.data(), from.instructions.size() * sizeof(Instruction));
  engine_.copy_to_device(base, bytes.data(), bytes.size());
}

/// Frees the graph's memory and ranges. Does nothing in a child of fork(), where they belong to the parent.
void Loader::unload(LoadedGraph& graph) {
  if (!graph.placed || process_ != this_process()) return;
  if (graph.counters) heap_.release(graph.counters);
  if (graph.phases) heap_.release(graph.phases);
  if (graph.schedule) heap_.release(graph.schedule);
  if (graph.operands) heap_.release(graph.operands);
  if (!graph.reserved) return;
  std::scoped_lock lock(mutex_);
  records_.release(graph.first_record);
  edges_.release(graph.first_edge);
  execs_.release(graph.exec);
}

}  // namespace flywheel::detail
