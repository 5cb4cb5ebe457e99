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

/// All tasks of a dynamic run and all records of the spawn pool may be ready at once, in one queue, which can grow to
/// `most` slots.
void check_queue(std::uint64_t tasks, const DeviceState& dev, std::uint64_t most) {
  const std::uint64_t together = tasks + dev.spawn_capacity;
  if (together <= most) return;
  throw CapacityError(
      "the graph has " + std::to_string(tasks) + " tasks and the spawn pool " + std::to_string(dev.spawn_capacity) +
      " records (Options::spawn_capacity, rounded up to a power of two): together " + std::to_string(together) +
      ", and a ready queue holds " + std::to_string(most) + ". Set Options::queue_capacity to " +
      std::to_string(std::bit_ceil(together)) +
      (tasks < most ? ", or Options::spawn_capacity to at most " + std::to_string(std::bit_floor(most - tasks)) : ""));
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
  const TaskStore& tasks = graph.tasks();
  loaded.stages = graph.stages();
  loaded.stage_of = tasks.stages();
  loaded.types = tasks.types();
  if (loaded.types.size() < 2) return;
  loaded.type_numbers.reserve(tasks.size());
  for (std::uint32_t task = 0; task < tasks.size(); ++task) loaded.type_numbers.push_back(tasks.tasks()[task].type);
}

void note_compiled_tasks(LoadedGraph& loaded, const Graph& graph) {
  for (const GraphNode& node : graph.nodes()) {
    loaded.in_gang.push_back(node.gang != kNoGang);
    std::uint32_t& bytes = loaded.dependent_bytes.emplace_back(0);
    for (const DependentPiece& piece : node.dependents) bytes += piece.bytes;
  }
}
}  // namespace

Loader::Loader(Engine& engine, DeviceStateMemory& memory, Heap& heap, const KernelEntry& entry, const Options& options)
    : engine_(engine),
      memory_(memory),
      dev_(memory.dev()),
      heap_(heap),
      entry_(entry),
      overlap_(options.overlap),
      bare_runs_(options.tuning.bare_runs),
      limits_{options.max_tasks, options.max_edges, options.max_executables},
      most_queued_(std::bit_ceil(options.queue_capacity)) {
  arena_.add(memory.first_graph_unit(), memory.arena_units() - memory.first_graph_unit());
}

std::shared_ptr<LoadedGraph> Loader::load(const Graph& graph, const Compiled* how, std::shared_ptr<Core> core,
                                          Shortage& shortage) {
  shortage = {};
  check_buffers(graph);
  GraphImage image = how ? compile_image(graph, entry_, dev_.workers, *how, engine_.warps())
                         : make_image(graph, entry_, take_links(), dev_.keep_successor != 0);
  check_sizes(graph, image);
  std::shared_ptr<LoadedGraph> loaded = new_graph(graph, image, std::move(core));
  std::shared_lock stays(moving_);
  if (!allocate(*loaded, image, shortage)) return nullptr;
  const ArenaLayout layout = layout_of(image, overlap_);
  if (!reserve(*loaded, image, layout, shortage)) return nullptr;
  place(*loaded, image, graph, layout);
  keep_links(std::move(image.links));
  return loaded;
}

std::shared_ptr<LoadedGraph> Loader::new_graph(const Graph& graph, const GraphImage& image, std::shared_ptr<Core> core) {
  const auto give_back = [this](LoadedGraph* old) {
    unload(*old);
    delete old;  // may drop the last reference to the core, and so destroy the loader
  };
  std::shared_ptr<LoadedGraph> loaded(new LoadedGraph(std::move(core)), give_back);
  loaded->dev = &dev_;
  loaded->graph_id = graph.id();
  loaded->kind = image.run.flags & kCompiled ? GraphKind::compiled
                 : image.run.flags & kPhased ? GraphKind::phased
                                             : GraphKind::dynamic;
  loaded->operand_bytes = image.schedule.operand_bytes;
  loaded->task_count = graph.size();
  loaded->result_bytes = static_cast<std::uint32_t>(graph.result_bytes());
  loaded->params = graph.params();
  note_tasks(*loaded, graph);
  if (loaded->kind == GraphKind::compiled) note_compiled_tasks(*loaded, graph);
  const std::uint32_t banks = loaded->kind == GraphKind::compiled ? 1 : overlap_;
  loaded->free_banks.reserve(banks);
  for (std::uint32_t bank = banks; bank-- > 0;) loaded->free_banks.push_back(bank);
  return loaded;
}

/// Tasks often name the same buffers, and mostly buffers of the runtime's own heap: only others are looked up in CUDA.
void Loader::check_buffers(const Graph& graph) const {
  const void* good = nullptr;
  for (const BufferArgument& buffer : graph.tasks().buffers()) {
    if (buffer.pointer && (buffer.pointer == good || heap_.holds(buffer.pointer))) continue;
    const std::string wrong = engine_.check_pointer(buffer.pointer);
    if (!wrong.empty())
      throw GraphError(name_of(graph, buffer.task) + ", buffer '" + buffer.name + "': " + wrong +
                       ". Allocate it with Runtime::allocate() first.");
    good = buffer.pointer;
  }
}

void Loader::check_sizes(const Graph& graph, const GraphImage& image) const {
  if (graph.result_bytes() > dev_.result_bytes)
    throw CapacityError("the graph's results take " + std::to_string(graph.result_bytes()) +
                        " bytes: raise Options::result_bytes from " + std::to_string(dev_.result_bytes) + " to that");
  if (!(image.run.flags & kAllWorkers)) check_queue(image.records, dev_, most_queued_);
  const bool may_fetch = dev_.page_count && graph.tasks().has_attributes();
  for (std::uint32_t task = 0; may_fetch && task < graph.size(); ++task) check_dependents(graph, task, dev_);
  if (image.records > limits_.tasks) no_room("tasks", image.records, "max_tasks", limits_.tasks);
  if (image.edges > limits_.edges) no_room("edges", image.edges, "max_edges", limits_.edges);
}

/// Allocates what lies in the heap.
bool Loader::allocate(LoadedGraph& loaded, const GraphImage& image, Shortage& shortage) {
  const auto take = [&](std::size_t bytes, void*& to) {
    if (!bytes || shortage) return;
    to = heap_.try_allocate(bytes);
    if (!to) shortage.heap_bytes = bytes;
  };
  take(image.phases.size() * sizeof(Phase), loaded.phases);
  take(loaded.kind == GraphKind::compiled ? ScheduleParts(image.schedule).bytes : 0, loaded.schedule);
  take(image.schedule.operand_bytes, loaded.operands);
  return !shortage;
}

/// Reserves the graph's extent in the arena, and its room in the ready queues.
bool Loader::reserve(LoadedGraph& loaded, const GraphImage& image, const ArenaLayout& layout, Shortage& shortage) {
  const std::uint64_t queued = image.records + std::uint64_t{dev_.spawn_capacity};
  if (loaded.kind == GraphKind::dynamic && queued > dev_.queue_room) shortage.queue_slots = queued;
  std::scoped_lock lock(mutex_);
  check_limits(image);
  const auto first = arena_.allocate(layout.units());
  if (!first) shortage.arena_units = layout.units();
  if (first && shortage) arena_.release(*first);
  if (shortage) return false;
  used_.tasks += loaded.records = image.records;
  used_.edges += loaded.edges = static_cast<std::uint32_t>(image.edges);
  ++used_.executables;
  loaded.first_unit = *first;
  loaded.first_record = static_cast<std::uint32_t>(*first + layout.exec);
  loaded.first_bank = *first + layout.first_bank();
  loaded.bank_units = layout.bank;
  loaded.placed = true;
  return true;
}

void Loader::check_limits(const GraphImage& image) const {
  if (image.records && used_.tasks + image.records > limits_.tasks) no_room("tasks", image.records, "max_tasks", limits_.tasks);
  if (image.edges && used_.edges + image.edges > limits_.edges) no_room("edges", image.edges, "max_edges", limits_.edges);
  if (used_.executables + 1 > limits_.executables) no_room("executables", 1, "max_executables", limits_.executables);
}

void Loader::place(LoadedGraph& loaded, GraphImage& image, const Graph& graph, const ArenaLayout& layout) {
  constexpr std::uint32_t kEdges = ArenaLayout::kUnit / sizeof(Edge), kExecs = ArenaLayout::kUnit / sizeof(ExecRecord);
  image.run.first_record = loaded.first_record;
  image.run.first_root += static_cast<std::uint32_t>((loaded.first_unit + layout.first_edge()) * kEdges);
  image.run.exec = static_cast<std::uint32_t>(loaded.first_unit * kExecs);
  image.run.serial = next_serial();
  image.run.param_bytes = static_cast<std::uint32_t>(loaded.params.size());
  loaded.constants = image.run;
  image.exec.phases = static_cast<const Phase*>(loaded.phases);
  image.exec.schedule = static_cast<Schedule*>(loaded.schedule);
  if (loaded.phases) engine_.copy_to_device(loaded.phases, image.phases.data(), image.phases.size() * sizeof(Phase));
  if (loaded.schedule) place_schedule(loaded, image);
  Upload upload(engine_, dev_.records + loaded.first_unit, layout.units() * ArenaLayout::kUnit);
  write_image(image, graph, layout, loaded.first_unit, upload);
  loaded.upload = upload.finish();
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
  schedule.bare = from.bare && bare_runs_;
  schedule.warps = from.warps;
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

/// Frees the graph's memory and its extent. Does nothing in a child of fork(), where they belong to the parent.
void Loader::unload(LoadedGraph& graph) {
  if (process_ != this_process()) return;
  if (graph.phases) heap_.release(graph.phases);
  if (graph.schedule) heap_.release(graph.schedule);
  if (graph.operands) heap_.release(graph.operands);
  if (!graph.placed) return;
  std::scoped_lock lock(mutex_);
  arena_.release(graph.first_unit);
  used_.tasks -= graph.records;
  used_.edges -= graph.edges;
  --used_.executables;
}

std::uint64_t Loader::used_units() {
  std::scoped_lock lock(mutex_);
  return arena_.used();
}

void Loader::grow(const Shortage& shortage) {
  if (shortage.heap_bytes) heap_.release(heap_.grow(shortage.heap_bytes));
  if (!shortage.arena_units && !shortage.queue_slots) return;
  std::unique_lock moves(moving_);
  if (shortage.queue_slots > dev_.queue_room) memory_.grow_queues(shortage.queue_slots);
  if (!shortage.arena_units) return;
  grow_arena(shortage.arena_units);
}

/// Doubles the arena, so that a program that loads more and more graphs rarely parks the kernel.
void Loader::grow_arena(std::uint64_t lacking) {
  const std::uint64_t units = memory_.arena_units();
  try {
    memory_.grow_arena(std::max(2 * units, units + lacking));
  } catch (const CapacityError&) {
    if (lacking >= units) throw;
    memory_.grow_arena(units + lacking);
  }
  std::scoped_lock lock(mutex_);
  arena_.add(units, memory_.arena_units() - units);
}

// ---- memory that loads use one after the other ----

GraphLinks Loader::take_links() {
  std::scoped_lock lock(mutex_);
  if (links_.empty()) return {};
  GraphLinks links = std::move(links_.back());
  links_.pop_back();
  return links;
}

void Loader::keep_links(GraphLinks links) {
  constexpr std::size_t kMost = 4, kMostBytes = std::size_t{64} << 20;
  if (links.bytes() == 0 || links.bytes() > kMostBytes) return;
  std::scoped_lock lock(mutex_);
  if (links_.size() < kMost) links_.push_back(std::move(links));
}

}  // namespace flywheel::detail
