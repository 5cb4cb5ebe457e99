#include "graph_image.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "../plan/operand_check.hpp"
#include "../plan/task_name.hpp"

namespace flywheel::detail {

namespace {
constexpr std::uint32_t kEdgesInUnit = ArenaLayout::kUnit / sizeof(Edge);
constexpr std::uint32_t kCountersInUnit = ArenaLayout::kUnit / sizeof(std::uint64_t);

std::vector<std::uint16_t> type_indices(const Graph& graph, const KernelEntry& entry) {
  std::vector<std::uint16_t> indices;
  for (const std::type_index type : graph.tasks().types()) indices.push_back(type_index(type, entry));
  return indices;
}

static_assert(std::endian::native == std::endian::little);

/// What a record says of the task's successors: how many, where their edges begin, and a copy of that to await or of the first.
struct LinkFields {
  std::uint32_t first_edge = 0, count = 0;
  Edge edge{};
  bool awaits = false;
  std::uint8_t flags = 0;
};

/// Writes a record, except for the bytes behind its arguments, which no body reads. The header goes there in four words: a
/// store whose line is not in the cache waits in the store buffer, and few stores leave room there for those of the next
/// records. With a store for each field, and without fetching lines ahead, 100,000 records took 600 us and not 390 (EPYC).
void write_record(TaskRecord& to, std::uint32_t task, const StoredTask& from, std::span<const ArgUnit> args, std::uint16_t type,
                  const LinkFields& links) {
  const auto put = [&to](std::size_t at, std::uint32_t low, std::uint32_t high) {
    const std::uint64_t word = std::uint64_t{high} << 32 | low;
    std::memcpy(reinterpret_cast<unsigned char*>(&to.header) + at, &word, sizeof(word));
  };
  put(offsetof(TaskHeader, type), type | priority_in(from.waits) << 16 | std::uint32_t{links.flags} << 24, links.first_edge);
  put(offsetof(TaskHeader, edge_count), links.count, from.result_offset);
  put(offsetof(TaskHeader, local), task, links.edge.task);
  put(offsetof(TaskHeader, edge_predecessors), links.edge.predecessors | (links.awaits ? TaskHeader::kAwaits : 0),
      links.edge.priority);
  for (std::size_t i = 0; i < args.size(); ++i) std::memcpy(to.args + i * sizeof(ArgUnit), &args[i], sizeof(ArgUnit));
}

void add_phases(GraphImage& image, const Graph& graph) {
  for (std::uint32_t task = 0; task < graph.size(); ++task) {
    const std::uint32_t phase = graph.tasks().phase_of(task);
    if (image.phases.empty() || graph.tasks().phase_of(image.phases.back().first) != phase)
      image.phases.push_back({task, 0, graph.nodes()[task].grid, 0});
    ++image.phases.back().count;
  }
  image.run.flags = kPhased;
  image.run.sinks = 1;
  image.exec.phase_count = static_cast<std::uint32_t>(image.phases.size());
}

void refuse_what_needs_a_plan(const Graph& graph) {
  if (!graph.gangs().empty())
    throw GraphError("tasks of Graph::together() need a plan that keeps workers for them: load the graph with `compiled`");
  const std::uint32_t task = graph.tasks().find_attributes([](const TaskAttributes& own) { return own.worker != kAnyWorker; });
  if (task == graph.size()) return;
  throw GraphError(name_of(graph, task) + " is placed on worker " + std::to_string(graph.nodes()[task].worker) +
                   ", but here any worker takes any "
                   "task: load the graph with `compiled`, or leave Graph::place() out");
}

void refuse_what_is_not_compiled(const Graph& graph) {
  const std::uint32_t task = graph.first_not_compiled();
  if (task == graph.size()) return;
  throw GraphError(name_of(graph, task) +
                   ": the kernel holds no code for it in a compiled graph, since its type has kCompiled = "
                   "false. Load the graph without `compiled`, or leave that out of the type");
}
}  // namespace

std::uint16_t type_index(std::type_index type, const KernelEntry& entry) {
  for (std::uint32_t i = 0; i < entry.type_count; ++i)
    if (type == *entry.types[i].type) return static_cast<std::uint16_t>(i);
  throw GraphError("task type " + type_name(type) + " is not one of the runtime's: add it to flywheel::start<...>()");
}

GraphImage compile_image(const Graph& graph, const KernelEntry& entry, std::uint32_t workers, const Compiled& how,
                         std::uint32_t warps) {
  check_operands(graph);
  refuse_control(graph);
  refuse_what_is_not_compiled(graph);
  return image_of_plan(make_schedule(graph, workers, how, warps), graph, entry);
}

GraphImage image_of_plan(const SchedulePlan& plan, const Graph& graph, const KernelEntry& entry) {
  validate_schedule(plan, graph);
  GraphImage image;
  image.types = type_indices(graph, entry);
  const TaskStore& tasks = graph.tasks();
  std::vector<TaskRecord> records(tasks.size());
  for (std::uint32_t task = 0; task < tasks.size(); ++task) {
    const StoredTask& stored = tasks.tasks()[task];
    write_record(records[task], task, stored, tasks.args(stored), image.types[stored.type], {});
  }
  image.schedule = make_schedule_image(plan, graph, records);
  image.run.flags = kCompiled;
  image.run.sinks = 1;
  return image;
}

GraphImage make_image(const Graph& graph, const KernelEntry& entry, GraphLinks links, bool awaits) {
  if (graph.size() == 0) throw GraphError("the graph has no tasks: add() some before load()");
  refuse_what_needs_a_plan(graph);
  GraphImage image;
  image.types = type_indices(graph, entry);
  image.records = graph.size();
  image.awaits = awaits;
  if (graph.phase_count()) {
    add_phases(image, graph);
    return image;
  }
  image.links = std::move(links);
  image.links.link(graph);
  image.control = ControlLinks(graph, image.links);
  image.links.describe(image.run);
  image.run.first_root = image.links.edges();
  image.edges = std::uint64_t{image.links.edges()} + image.links.roots();
  return image;
}

ArenaLayout layout_of(const GraphImage& image, std::uint32_t banks) {
  const bool dynamic = !(image.run.flags & kAllWorkers);
  ArenaLayout layout;
  layout.exec = dynamic ? 0 : 1;
  layout.records = image.records;
  layout.edges = (image.edges + kEdgesInUnit - 1) / kEdgesInUnit;
  layout.bank = (image.records + kCountersInUnit - 1) / kCountersInUnit;
  layout.banks = dynamic ? banks : 0;
  return layout;
}

namespace {
/// Writes the parts of a graph one after the other, each value as it comes.
class ImageWriter {
 public:
  ImageWriter(const GraphImage& image, const Graph& graph, Upload& upload)
      : image_(image),
        links_(image.links),
        graph_(graph),
        upload_(upload) {}

  void exec() {
    upload_.next<ExecRecord>(1)[0] = image_.exec;
    upload_.align(ArenaLayout::kUnit);
  }
  /// `first_edge`: the place of the graph's edges in the arena.
  void records(std::uint32_t first_edge) {
    constexpr std::size_t kAhead = 24;  // records
    const TaskStore& tasks = graph_.tasks();
    for (std::uint32_t task = 0; task < image_.records;) {
      const std::span<const StoredTask> from = tasks.tasks().piece(task, image_.records - task);
      for (std::size_t written = 0; written < from.size();)
        for (TaskRecord& record : upload_.next<TaskRecord>(from.size() - written)) {
          const StoredTask& stored = from[written++];
          __builtin_prefetch(&record + kAhead, 1);
          const LinkFields links = image_.run.flags & kPhased ? LinkFields{} : links_of(task, first_edge);
          write_record(record, task++, stored, tasks.args(stored), image_.types[stored.type], links);
        }
    }
  }
  void edges() {
    const std::span<const std::uint32_t> successors = links_.successors(), waits = links_.waits();
    fill<Edge>(successors.size(),
               [&](std::size_t i) { return edge_to(successors[i], waits[successors[i]], image_.control.label(i)); });
    std::uint32_t task = 0;
    fill<Edge>(links_.roots(), [&](std::size_t) {
      while (predecessors_in(waits[task])) ++task;
      const std::uint32_t root = task++;
      return edge_to(root, waits[root]);
    });
    upload_.align(ArenaLayout::kUnit);
  }
  /// A bank of counters, each as it is before the first predecessor arrives.
  void bank() {
    const std::span<const std::uint32_t> waits = links_.waits();
    fill<std::uint64_t>(image_.records, [&](std::size_t i) { return std::uint64_t{predecessors_in(waits[i])}; });
    upload_.align(ArenaLayout::kUnit);
  }

 private:
  static Edge edge_to(std::uint32_t task, std::uint32_t wait_word, std::uint32_t label = 0) {
    return {task, predecessors_in(wait_word), priority_in(wait_word), label};
  }
  LinkFields links_of(std::uint32_t task, std::uint32_t first_edge) const {
    const std::uint32_t first = links_.first(task), count = links_.count(task);
    if (const std::uint8_t flags = image_.control.flags(task)) [[unlikely]] {
      const std::uint32_t loop = flags & kTaskLoops ? image_.control.first_of_loop(task) : 0;
      return {first_edge + first, count, {loop, 0, priority_in(links_.waits()[loop]), 0}, false, flags};
    }
    if (!count) return {first_edge + first, 0, {}};
    const std::uint32_t awaited = image_.awaits ? links_.awaited(task) : GraphLinks::kNone,
                        next = awaited == GraphLinks::kNone ? links_.successors()[first] : awaited;
    return {first_edge + first, count, edge_to(next, links_.waits()[next]), awaited == next};
  }
  template <class T, class Value>
  void fill(std::size_t count, Value&& value) {
    for (std::size_t written = 0; written < count;)
      for (T& to : upload_.next<T>(count - written)) to = value(written++);
  }

  const GraphImage& image_;
  const GraphLinks& links_;
  const Graph& graph_;
  Upload& upload_;
};
}  // namespace

void write_image(const GraphImage& image, const Graph& graph, const ArenaLayout& layout, std::uint64_t first, Upload& upload) {
  ImageWriter write(image, graph, upload);
  if (layout.exec) write.exec();
  if (layout.records) write.records(static_cast<std::uint32_t>((first + layout.first_edge()) * kEdgesInUnit));
  if (layout.edges) write.edges();
  for (std::uint32_t bank = 0; bank < layout.banks; ++bank) write.bank();
}

}  // namespace flywheel::detail
