// Loads graphs: checks a graph completely, then places its records, edges and counters in device memory. A runtime's
// core owns the loader; Runtime::load() calls it.
#pragma once

#include <mutex>

#include "../base/free_list.hpp"
#include "../base/process.hpp"
#include "../plan/graph.hpp"
#include "heap.hpp"
#include "loaded_graph.hpp"

namespace flywheel {
struct Compiled;
}  // namespace flywheel

namespace flywheel::detail {

struct GraphImage;

/// Thread-safe.
class Loader {
 public:
  Loader(Engine& engine, const DeviceState& dev, Heap& heap, const KernelEntry& entry, const Options& options);

  /// Loads a graph. `how` is null unless the graph is to be compiled. Returns null if the heap has no room for its
  /// counters, phases, schedule or operands: then `needs_heap` is the number of bytes that are missing, nothing is
  /// loaded, and the caller grows the heap and calls again. Throws GraphError, CapacityError, or UsageError for
  /// operands that pages cannot hold.
  std::shared_ptr<LoadedGraph> load(const Graph& graph, const Compiled* how, std::shared_ptr<Core> core,
                                    std::size_t& needs_heap);

 private:
  void unload(LoadedGraph& graph);
  void check_buffers(const Graph& graph) const;
  void check_sizes(const Graph& graph, const GraphImage& image) const;
  void reserve(LoadedGraph& loaded, const GraphImage& image);
  void place(LoadedGraph& loaded, GraphImage& image);
  void place_schedule(LoadedGraph& loaded, const GraphImage& image);
  bool allocate(LoadedGraph& loaded, const GraphImage& image, std::size_t& needs_heap);

  const int process_ = this_process();
  Engine& engine_;
  const DeviceState& dev_;
  Heap& heap_;
  KernelEntry entry_;
  std::uint32_t overlap_;
  std::uint32_t max_tasks_;
  std::uint32_t max_edges_;
  std::uint32_t max_executables_;
  std::mutex mutex_;
  FreeList records_;
  FreeList edges_;
  FreeList execs_;
};

}  // namespace flywheel::detail
