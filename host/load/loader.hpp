// Loads graphs: checks a graph completely, then places its records, edges and counters in the graph arena, in one piece.
// A runtime's core owns the loader; Runtime::load() calls it.
#pragma once

#include <mutex>
#include <shared_mutex>

#include "../base/free_list.hpp"
#include "../base/process.hpp"
#include "../kernel/device_state_memory.hpp"
#include "../plan/graph.hpp"
#include "graph_links.hpp"
#include "heap.hpp"
#include "loaded_graph.hpp"

namespace flywheel {
struct Compiled;
}  // namespace flywheel

namespace flywheel::detail {

struct ArenaLayout;
struct GraphImage;

/// What a graph lacks that load() does not find. Loader::grow() provides it.
struct Shortage {
  std::size_t heap_bytes = 0;
  std::uint64_t arena_units = 0;
  std::uint64_t queue_slots = 0;  // of each ready queue, all together
  explicit operator bool() const { return heap_bytes || arena_units || queue_slots; }
};

/// Thread-safe.
class Loader {
 public:
  Loader(Engine& engine, DeviceStateMemory& memory, Heap& heap, const KernelEntry& entry, const Options& options);

  /// Loads a graph. `how` is null unless the graph is to be compiled. Returns null if memory is missing: then `shortage`
  /// says how much, nothing is loaded, and the caller calls grow() and load() again. Throws GraphError, CapacityError
  /// for limits in Options, or UsageError for operands that pages cannot hold.
  std::shared_ptr<LoadedGraph> load(const Graph& graph, const Compiled* how, std::shared_ptr<Core> core, Shortage& shortage);
  /// Takes more memory from the engine. Loaded graphs stay as they are. The kernel must be parked, and for more of the
  /// arena or the queues no run in flight.
  void grow(const Shortage& shortage);
  /// Waits until the graph is on the device. Throws DeviceError if the device is lost.
  void finish_upload(LoadedGraph& graph) {
    // Acquire: pairs with the release below. The message of a run that this thread submits comes after the upload.
    if (graph.uploaded.load(std::memory_order_acquire)) return;
    engine_.finish_uploads(graph.upload);
    graph.uploaded.store(true, std::memory_order_release);
  }
  /// The units of the arena that loaded graphs take.
  std::uint64_t used_units();

 private:
  /// What loaded graphs together take of the limits.
  struct Used {
    std::uint64_t tasks = 0, edges = 0, executables = 0;
  };

  std::shared_ptr<LoadedGraph> new_graph(const Graph& graph, const GraphImage& image, std::shared_ptr<Core> core);
  void unload(LoadedGraph& graph);
  void check_buffers(const Graph& graph) const;
  void check_sizes(const Graph& graph, const GraphImage& image) const;
  bool allocate(LoadedGraph& loaded, const GraphImage& image, Shortage& shortage);
  bool reserve(LoadedGraph& loaded, const GraphImage& image, const ArenaLayout& layout, Shortage& shortage);
  void check_limits(const GraphImage& image) const;
  void place(LoadedGraph& loaded, GraphImage& image, const Graph& graph, const ArenaLayout& layout);
  void place_schedule(LoadedGraph& loaded, const GraphImage& image);
  void grow_arena(std::uint64_t lacking);
  GraphLinks take_links();
  void keep_links(GraphLinks links);

  const int process_ = this_process();
  Engine& engine_;
  DeviceStateMemory& memory_;
  const DeviceState& dev_;
  Heap& heap_;
  KernelEntry entry_;
  std::uint32_t overlap_;
  const bool bare_runs_;
  const Used limits_;
  const std::uint64_t most_queued_;  // the limit of a ready queue

  std::shared_mutex moving_;  // held exclusively while the arena or the queues move, shared while a graph is placed
  std::mutex mutex_;          // guards what follows; may be taken while `moving_` is held
  FreeList arena_;
  Used used_;
  std::vector<GraphLinks> links_;  // whose memory the next loads use again
};

}  // namespace flywheel::detail
