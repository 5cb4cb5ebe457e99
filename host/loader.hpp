// Loading: all checking of a graph happens here, then its records, edges and counters go to device memory.
#pragma once

#include <mutex>

#include "host/executable.hpp"
#include "host/free_list.hpp"
#include "host/graph.hpp"
#include "host/heap.hpp"
#include "host/schedule_image.hpp"
#include "host/world_memory.hpp"

namespace flywheel {

/// Records and edges of one graph in the form that the device reads, indices already relative to the arenas.
struct GraphImage {
  std::vector<TaskRecord> records;
  std::vector<Edge> edges;  // successors of all tasks, then the roots
  std::vector<std::uint64_t> counters;
  std::vector<Phase> phases;
  ScheduleImage schedule;  // compiled graphs
  ExecRecord exec{};
  RunConstants run{};  // what all runs of the graph have in common
};

/// Throws GraphError for a cycle, an unknown task type or an empty graph.
GraphImage make_image(const Graph& graph, const KernelEntry& entry);
/// The same for a graph that is compiled. Throws GraphError, see make_schedule(), and what check_operands() throws.
GraphImage compile_image(const Graph& graph, const KernelEntry& entry, std::uint32_t workers, const Compiled& how);
/// Its last step, the only way from a plan to what workers read. Throws GraphError for a plan that is not proven right.
GraphImage image_of_plan(const SchedulePlan& plan, const Graph& graph, const KernelEntry& entry);
/// What the tasks of a compiled graph say of their operands: copies of pages can be made of it. Throws UsageError or
/// CapacityError that names the first task of which that is not so.
void check_operands(const Graph& graph);
/// The tasks of one cycle, "3 -> 5 -> 3", or empty if there is none.
std::string find_cycle(const Graph& graph);

class Loader {
 public:
  Loader(Engine& engine, const World& world, Heap& heap, const KernelEntry& entry, const Options& options);

  /// Throws GraphError or CapacityError. The heap may lack room for counters: then `needs_heap` bytes are asked for
  /// and nothing was loaded.
  /// `how` is null for a graph that is not to be compiled.
  std::shared_ptr<LoadedGraph> load(const Graph& graph, const Compiled* how, std::shared_ptr<Core> core,
                                    std::size_t& needs_heap);
  void unload(LoadedGraph& graph);

 private:
  void check_buffers(const Graph& graph) const;
  void check_sizes(const Graph& graph, const GraphImage& image) const;
  void reserve(LoadedGraph& loaded, const GraphImage& image);
  void place(LoadedGraph& loaded, GraphImage& image);
  void place_schedule(LoadedGraph& loaded, const GraphImage& image);
  bool allocate(LoadedGraph& loaded, const GraphImage& image, std::size_t& needs_heap);

  Engine& engine_;
  const World& world_;
  Heap& heap_;
  KernelEntry entry_;
  std::uint32_t overlap_;
  std::uint32_t max_tasks_;
  std::uint32_t max_edges_;
  std::mutex mutex_;
  FreeList records_;
  FreeList edges_;
  FreeList execs_;
};

}  // namespace flywheel
