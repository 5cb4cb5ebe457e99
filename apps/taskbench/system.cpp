#include "apps/taskbench/system.hpp"

#include <algorithm>
#include <stdexcept>

namespace taskbench {
namespace {

std::string at(std::uint32_t step, std::uint32_t point) {
  return "point " + std::to_string(point) + " of step " + std::to_string(step);
}

/// What the cells of a graph hold after a run, computed one after another.
std::vector<Cell> serial_cells(const Shape& shape, std::uint16_t run) {
  std::vector<Cell> cells(std::size_t{shape.width} * shape.steps);
  for_each_point(shape, [&](std::uint32_t step, std::uint32_t point) {
    std::uint64_t sum = 0;
    for_each_input(shape, step, point,
                   [&](std::uint32_t from) { sum += share_of(cells[cell_index(shape, step - 1, from)].hash, from); });
    cells[cell_index(shape, step, point)] = {step, static_cast<std::uint16_t>(point), run,
                                             hash_of(shape, step, point, run, sum)};
  });
  return cells;
}

constexpr const char* kRemedy = ". Look for a missing dependency, or for memory errors of the GPU (nvidia-smi -q -d ECC)";

}  // namespace

std::uint64_t Problem::tasks() const {
  std::uint64_t count = 0;
  for (const Shape& shape : graphs) count += count_points(shape);
  return count;
}

std::uint64_t Problem::work(const RunSettings& settings) const {
  std::uint64_t sum = 0;
  for (const Shape& shape : graphs)
    for_each_point(shape, [&](std::uint32_t step, std::uint32_t point) { sum += iterations_of(shape, step, point, settings); });
  return sum;
}

Problem make_problem(ShapeOptions shape, std::uint32_t graphs, std::uint32_t scratch_bytes) {
  if (graphs < 1 || graphs > 4)
    throw std::invalid_argument("--graphs " + std::to_string(graphs) + ": 1 to 4 graphs run side by side");
  if (scratch_bytes < 2 * kPieceBytes || scratch_bytes > (16u << 20))
    throw std::invalid_argument("--scratch: a point has 8 to 16384 KB");
  Problem problem{.scratch_bytes = scratch_bytes};
  for (shape.graph = 0; shape.graph < graphs; ++shape.graph) problem.graphs.push_back(make_shape(shape));
  return problem;
}

GraphData data_of(const Problem& problem, std::uint32_t graph) {
  const Shape& shape = problem.graphs[graph];
  const std::uint32_t step = problem.plant && graph == 0 ? (shape.steps - 1) / 2 : ~0u;
  return {.shape = shape,
          .cells = nullptr,
          .scratch = nullptr,
          .faults = nullptr,
          .pieces = problem.pieces(),
          .wrong_step = step,
          .wrong_point = live_points(shape, step == ~0u ? 0 : step).first};
}

std::vector<std::string> runtime_names() { return {"dynamic", "compiled", "unplaced", "stamped", "warps"}; }

bool is_peer(const std::string& name) {
  const std::vector<std::string> ours = runtime_names();
  return std::ranges::find(ours, name) == ours.end();
}

void check(System& system, const Problem& problem, const RunSettings& settings) {
  const Faults faults = system.faults();
  if (faults.count != 0)
    throw std::runtime_error(at(faults.step, faults.point) + " found a wrong cell where point " + std::to_string(faults.from) +
                             " of the step before was to be, " + std::to_string(faults.count) + " such finds in all" + kRemedy);
  for (std::uint32_t graph = 0; graph < problem.graphs.size(); ++graph) {
    const std::vector<Cell> expected = serial_cells(problem.graphs[graph], settings.run), found = system.cells(graph);
    for_each_point(problem.graphs[graph], [&](std::uint32_t step, std::uint32_t point) {
      const std::size_t index = cell_index(problem.graphs[graph], step, point);
      if (!(expected.at(index) == found.at(index)))
        throw std::runtime_error("graph " + std::to_string(graph) + ", " + at(step, point) +
                                 " left something else than a serial run" + kRemedy);
    });
  }
}

}  // namespace taskbench
