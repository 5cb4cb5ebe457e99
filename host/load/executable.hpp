// Executable: the program's handle of a loaded graph (loaded_graph.hpp). Programs get it through <flywheel/flywheel.hpp>.
#pragma once

#include <cstdint>
#include <memory>

namespace flywheel {

namespace detail {
struct LoadedGraph;
}  // namespace detail

/// The program's handle of a loaded graph. Copies share the graph.
class Executable {
 public:
  Executable() = default;
  explicit Executable(std::shared_ptr<detail::LoadedGraph> graph) : graph_(std::move(graph)) {}
  /// Number of tasks; 0 if the handle is empty.
  std::uint32_t size() const;
  const std::shared_ptr<detail::LoadedGraph>& loaded() const { return graph_; }

 private:
  std::shared_ptr<detail::LoadedGraph> graph_;
};

}  // namespace flywheel
