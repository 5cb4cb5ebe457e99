// Translates a Graph into the form that workers read. The loader makes an image and writes it to device memory.
#pragma once

#include <typeindex>
#include <vector>

#include "../../runtime/records/entry.hpp"
#include "../plan/graph.hpp"
#include "../plan/schedule_image.hpp"
#include "control_links.hpp"
#include "upload.hpp"

namespace flywheel::detail {

/// How many units of the graph arena each part of a graph takes, in the order in which they lie there. A unit has the
/// size of a TaskRecord.
struct ArenaLayout {
  static constexpr std::uint32_t kUnit = sizeof(TaskRecord);

  std::uint64_t exec = 0;  // the ExecRecord of a phased or compiled graph
  std::uint64_t records = 0;
  std::uint64_t edges = 0;
  std::uint64_t bank = 0;  // one bank of dependency counters
  std::uint32_t banks = 0;

  std::uint64_t first_edge() const { return exec + records; }
  std::uint64_t first_bank() const { return first_edge() + edges; }
  std::uint64_t units() const { return first_bank() + bank * banks; }
};

/// A graph in the form that workers read. Indices of edges and records start at 0; write_image() adds the graph's place
/// in the arena.
struct GraphImage {
  std::vector<std::uint16_t> types;  // of each type of the graph, its index in the kernel's list
  GraphLinks links;                  // of a dynamic graph
  ControlLinks control;              // likewise
  std::vector<Phase> phases;         // of a phased graph
  ScheduleImage schedule;            // of a compiled graph
  ExecRecord exec{};
  RunConstants run{};  // the same for all runs of the graph
  std::uint32_t records = 0;
  std::uint64_t edges = 0;  // the successors of all tasks, and the roots
  bool awaits = false;      // workers may await successors, see runtime/dynamic/awaited.hpp
};

/// The position of a task type in the kernel's list. Throws GraphError if it is not there.
std::uint16_t type_index(std::type_index type, const KernelEntry& entry);

/// The image of a dynamic or phased graph. `links` lend their memory; they may have been another graph's. Throws
/// GraphError for a cycle, an unknown task type, an empty graph, a loop with several ways in or out, and for gangs or placed
/// tasks, which need a compiled graph. `awaits`: see GraphImage.
GraphImage make_image(const Graph& graph, const KernelEntry& entry, GraphLinks links = {}, bool awaits = true);
/// The image of a compiled graph for `workers` workers, each with `warps` that can run tasks of their own. Throws GraphError
/// like make_schedule(), and what check_operands() throws.
GraphImage compile_image(const Graph& graph, const KernelEntry& entry, std::uint32_t workers, const Compiled& how,
                         std::uint32_t warps = 0);
/// The last step of compile_image(): the image of a plan. It proves the plan with validate_schedule() first, which
/// throws GraphError.
GraphImage image_of_plan(const SchedulePlan& plan, const Graph& graph, const KernelEntry& entry);

/// The room that an image takes in the arena, with `banks` banks of counters for a dynamic graph.
ArenaLayout layout_of(const GraphImage& image, std::uint32_t banks);
/// Writes the parts of an image that lie in the arena, from unit `first` on.
void write_image(const GraphImage& image, const Graph& graph, const ArenaLayout& layout, std::uint64_t first, Upload& upload);

}  // namespace flywheel::detail
