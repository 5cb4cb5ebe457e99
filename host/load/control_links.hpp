// Control in the edges and headers of a dynamic graph: which edge has which label, and where loops begin. Included by
// graph_image.hpp.
#pragma once

#include <vector>

#include "graph_links.hpp"

namespace flywheel::detail {

/// Empty for a graph without choices and loops, as most are.
class ControlLinks {
 public:
  ControlLinks() = default;
  /// Throws GraphError for a loop that can be entered or left on the way.
  ControlLinks(const Graph& graph, const GraphLinks& links);

  /// Edge::label of the edge at this position among all successors.
  std::uint32_t label(std::size_t edge) const { return labels_.empty() ? 0 : labels_[edge]; }
  /// TaskFlags. A task with some needs no copy of an edge.
  std::uint8_t flags(std::uint32_t task) const { return flags_.empty() ? 0 : flags_[task]; }
  /// With kTaskLoops: the first task of the loop.
  std::uint32_t first_of_loop(std::uint32_t last) const { return loop_begins_[last]; }

 private:
  void label_choices(const Graph& graph, const GraphLinks& links);
  void label_joins(const Graph& graph, const GraphLinks& links);
  void add_label(const GraphLinks& links, std::uint32_t before, std::uint32_t task, std::uint32_t label);

  std::vector<std::uint32_t> labels_;
  std::vector<std::uint8_t> flags_;
  std::vector<std::uint32_t> loop_begins_;
};

/// Throws GraphError if the graph, which is to be compiled, has choices or loops. (A phased graph can have none.)
void refuse_control(const Graph& graph);

}  // namespace flywheel::detail
