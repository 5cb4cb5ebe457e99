#include "product_plan.hpp"

#include <algorithm>
#include <string>

#include "../../runtime/gemm/product_record.hpp"
#include "../base/error.hpp"

namespace flywheel::detail {

namespace {

constexpr std::uint32_t kMostSplits = 64;
constexpr std::uint32_t kFewRows = 64;     // of A: up to here the tiles' columns are rows of A
constexpr std::uint32_t kFewestSteps = 8;  // of a part
constexpr std::uint32_t kBand = 16;
constexpr std::uint32_t kPartsBesideOthers = 4;  // of a task: enough that its begin and end do not count

constexpr std::uint32_t parts_of(std::uint32_t whole, std::uint32_t part) { return (whole + part - 1) / part; }

// Nanoseconds on an H200: a step of a tile, the begin and end of a task, and what parts of a tile cost: to store one, to find
// out whether it is the last, and to read them all. See device/gemm/tuning.md.
constexpr double step_ns(std::uint32_t columns) {
  return columns == 256 ? 680 : columns == 128 ? 390 : columns == 64 ? 360 : 300;
}
constexpr double kTaskNs = 4000;
constexpr double kLastNs = 2500;
constexpr double kLeftNs = 0.001;  // a value that is left, stored and read again; of all workers together
constexpr double adding_ns(std::uint32_t columns, std::uint32_t splits) {
  constexpr double kStored = 13, kRead = 55;  // bytes in a nanosecond, of an SM
  const double bytes = double{kTileRows} * columns * sizeof(float);
  return kLastNs + bytes / kStored + splits * bytes / kRead;
}

std::uint32_t count_tiles(const ProductShape& tiles_of, std::uint32_t columns) {
  return parts_of(tiles_of.rows, kTileRows) * parts_of(tiles_of.columns, columns);
}

double left_ns(const ProductShape& tiles_of, std::uint32_t splits) {
  return kLeftNs * tiles_of.rows * tiles_of.columns * splits;
}

/// From begin to end, if all workers are free. `leaves`: parts are left to others.
double time_ns(const ProductShape& tiles_of, std::uint32_t columns, std::uint32_t splits, std::uint32_t workers, bool leaves) {
  const std::uint32_t tiles = count_tiles(tiles_of, columns);
  const std::uint32_t rounds = parts_of(tiles * splits, workers), steps = parts_of(tiles_of.depth, kTileDepth);
  const double tasks = rounds * (parts_of(steps, splits) * step_ns(columns) + kTaskNs);
  if (leaves) return tasks + left_ns(tiles_of, splits);
  return splits == 1 ? tasks : tasks + adding_ns(columns, splits);
}

void check(const ProductOptions& options) {
  const auto* end = std::end(kTileColumns);
  if (options.tile_columns && std::find(std::begin(kTileColumns), end, options.tile_columns) == end)
    throw UsageError("ProductOptions::tile_columns is " + std::to_string(options.tile_columns) +
                     ": a tile has 16, 64, 128 or 256 columns, or leave it at 0");
  if (options.splits > kMostSplits)
    throw UsageError("ProductOptions::splits is " + std::to_string(options.splits) + ": a tile has at most " +
                     std::to_string(kMostSplits) + " parts");
  if (options.tiles_each > kMostPartsEach)
    throw UsageError("ProductOptions::tiles_each is " + std::to_string(options.tiles_each) + ": a task has at most " +
                     std::to_string(kMostPartsEach) + " tiles");
}

void require_scratch(std::uint32_t columns, std::uint32_t scratch_bytes) {
  if (least_scratch(columns) <= scratch_bytes) return;
  throw CapacityError(
      "a worker has " + std::to_string(scratch_bytes) + " bytes of scratch memory, and a matrix product with tiles of " +
      std::to_string(columns) + " columns needs " + std::to_string(least_scratch(columns)) +
      ": set Options::scratch_bytes to flywheel::kGemmScratchBytes (" + std::to_string(kGemmScratchBytes) + ")");
}

/// Of all workers together.
double work_ns(const ProductShape& tiles_of, std::uint32_t columns, std::uint32_t splits, std::uint32_t workers, bool leaves) {
  const double tiles = count_tiles(tiles_of, columns);
  const double parts = tiles * (parts_of(tiles_of.depth, kTileDepth) * step_ns(columns) + splits * kTaskNs);
  if (leaves) return parts + workers * left_ns(tiles_of, splits);
  return splits == 1 ? parts : parts + tiles * adding_ns(columns, splits);
}

/// Tiles and splits that take least time, among those that the options and the scratch memory allow.
void choose(ProductPlan& plan, const ProductShape& tiles_of, std::uint32_t workers, std::uint32_t scratch_bytes,
            const ProductOptions& options) {
  const std::uint32_t steps = parts_of(tiles_of.depth, kTileDepth);
  const std::uint32_t least = options.splits ? std::min(options.splits, steps) : 1;
  const std::uint32_t most = options.splits ? least : std::clamp(steps / kFewestSteps, 1u, kMostSplits);
  double best_ns = 0;
  for (const std::uint32_t columns : kTileColumns) {
    if (options.tile_columns ? columns != options.tile_columns : least_scratch(columns) > scratch_bytes) continue;
    for (std::uint32_t splits = least; splits <= most; ++splits) {
      const auto cost_ns = options.alone ? time_ns : work_ns;
      const double ns = cost_ns(tiles_of, columns, splits, workers, options.leave_parts);
      if (plan.splits && ns >= best_ns) continue;
      best_ns = ns;
      plan.tile_columns = columns;
      plan.splits = splits;
    }
  }
}

}  // namespace

ProductPlan plan_product(const ProductShape& shape, std::uint32_t workers, std::uint32_t scratch_bytes,
                         const ProductOptions& options) {
  check(options);
  require_scratch(options.tile_columns ? options.tile_columns : std::end(kTileColumns)[-1], scratch_bytes);
  const bool joins = options.second_b != nullptr;
  const bool transposed = !joins && shape.rows <= kFewRows && shape.columns > shape.rows;
  ProductShape tiles_of = transposed ? ProductShape{shape.columns, shape.rows, shape.depth} : shape;
  if (joins) tiles_of.columns *= 2;
  ProductPlan plan{.transposed = transposed, .tile_columns = 0, .splits = 0, .band = kBand, .parts_each = 1};
  choose(plan, tiles_of, workers, scratch_bytes, options);
  if (plan.splits > 1) return plan;
  const std::uint32_t tiles = count_tiles(tiles_of, plan.tile_columns);
  const std::uint32_t rounds = parts_of(tiles, workers);
  if (options.tiles_each) {
    plan.parts_each = std::min(tiles, options.tiles_each);
    return plan;
  }
  if (!options.alone) {
    plan.parts_each = std::min(tiles, kPartsBesideOthers);
    return plan;
  }
  plan.parts_each = parts_of(rounds, parts_of(rounds, kMostPartsEach));
  return plan;
}

void cut_product(ProductRecord& record, const ProductPlan& plan, std::uint32_t workers) {
  record.tile_columns = plan.tile_columns;
  record.row_tiles = parts_of(record.left.rows, kTileRows);
  record.column_tiles = parts_of(record.right.rows, record.out_columns());
  record.splits = plan.splits;
  record.steps = parts_of(record.depth, kTileDepth);
  record.band = plan.band;
  record.transposed = plan.transposed;
  record.parts_each = plan.parts_each;
  record.stride = std::min(workers, parts_of(record.parts(), plan.parts_each));
}

}  // namespace flywheel::detail
