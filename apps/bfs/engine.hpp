// The runtime with a graph: makes it on the device, searches it, and gives back what was found. Behind it stands the one file
// with task types, flywheel_engine.cu.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/bfs/level_step.hpp"
#include "apps/bfs/reference.hpp"

namespace bfs {

enum class Method {
  levels,    // LevelSearch, in both directions
  top_down,  // LevelSearch, with top-down steps alone
  regions,   // RegionSearch
  delta      // DeltaSearch: distances by weights
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::string device() const = 0;

  /// The graph of these edges takes the place of the one before. `edges.list` is in host memory. Returns the time in ms.
  virtual double make_graph(EdgeSource edges) = 0;
  virtual HostGraph graph() const = 0;
  /// Of delta stepping, from the next make_graph() on.
  virtual void set_delta(std::uint32_t delta) = 0;

  /// Searches from this root. The time in ms, from submission to the end as the host sees it.
  virtual double search(Method method, std::uint32_t root) = 0;
  /// Of the last search, or of a peer on level_memory().
  virtual std::vector<std::uint32_t> distances() const = 0;

  /// Of the last search by levels, the one that ends the list without items; none if they are more than are noted.
  virtual std::vector<StepRecord> steps() const = 0;

  /// For the peer, which works on the same memory while pause() keeps the runtime's kernel off the GPU.
  virtual LevelMemory level_memory() const = 0;
  virtual std::shared_ptr<void> pause() = 0;
};

/// Workers: 0 for all.
std::unique_ptr<Engine> start_engine(bool on_gpu, std::uint32_t workers);

}  // namespace bfs
