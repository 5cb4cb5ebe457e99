#include "product_plan.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "../../runtime/gemm/product_record.hpp"
#include "../base/error.hpp"

namespace flywheel::detail {

namespace {

constexpr std::uint32_t kMostSplits = 64;
constexpr std::uint32_t kFewRows = 64;   // of A: up to here the tiles' columns are rows of A
constexpr std::uint32_t kFewestSteps = 8;  // of a part
constexpr std::uint32_t kBand = 32;        // 8192 x 8192 x 8192 on an H200: 4 rows 645, 8 657, 16 667, 32 679 TFLOP/s

std::uint32_t parts_of(std::uint32_t whole, std::uint32_t part) { return (whole + part - 1) / part; }

/// Nanoseconds on an H200 (2026-11-28): a step of a tile, the begin and end of a task, and adding up a tile's parts.
double step_ns(std::uint32_t columns) { return columns == 256 ? 680 : columns == 128 ? 390 : columns == 64 ? 360 : 300; }
constexpr double kTaskNs = 2500;
double adding_ns(std::uint32_t columns, std::uint32_t splits) { return 2500 + 8. * columns * splits; }

double time_ns(const ProductShape& tiles_of, std::uint32_t columns, std::uint32_t splits, std::uint32_t workers) {
  const std::uint32_t tiles = parts_of(tiles_of.rows, kTileRows) * parts_of(tiles_of.columns, columns);
  const std::uint32_t rounds = parts_of(tiles * splits, workers), steps = parts_of(tiles_of.depth, kTileDepth);
  const double tasks = rounds * (parts_of(steps, splits) * step_ns(columns) + kTaskNs);
  return splits == 1 ? tasks : tasks + parts_of(tiles, workers) * adding_ns(columns, splits);
}

void check(const ProductOptions& options) {
  const auto* end = std::end(kTileColumns);
  if (options.tile_columns && std::find(std::begin(kTileColumns), end, options.tile_columns) == end)
    throw UsageError("ProductOptions::tile_columns is " + std::to_string(options.tile_columns) +
                     ": a tile has 16, 64, 128 or 256 columns, or leave it at 0");
  if (options.splits > kMostSplits)
    throw UsageError("ProductOptions::splits is " + std::to_string(options.splits) + ": a tile has at most " +
                     std::to_string(kMostSplits) + " parts");
}

}  // namespace

ProductPlan plan_product(const ProductShape& shape, std::uint32_t workers, std::uint32_t scratch_bytes,
                         const ProductOptions& options) {
  check(options);
  const bool transposed = shape.rows <= kFewRows && shape.columns > shape.rows;
  const ProductShape tiles_of = transposed ? ProductShape{shape.columns, shape.rows, shape.depth} : shape;
  const std::uint32_t steps = parts_of(shape.depth, kTileDepth);
  ProductPlan best{transposed, 0, 0, 0, 1};
  double best_ns = 0;
  for (const std::uint32_t columns : kTileColumns) {
    if (options.tile_columns ? columns != options.tile_columns : least_scratch(columns) > scratch_bytes) continue;
    const std::uint32_t most = std::clamp(steps / kFewestSteps, 1u, kMostSplits);
    for (std::uint32_t splits = options.splits ? options.splits : 1; splits <= (options.splits ? options.splits : most); ++splits) {
      const double ns = time_ns(tiles_of, columns, splits, workers);
      if (best.splits && ns >= best_ns) continue;
      best_ns = ns;
      best.tile_columns = columns;
      best.splits = splits;
    }
  }
  if (!best.splits || least_scratch(best.tile_columns) > scratch_bytes)
    throw CapacityError("a worker has " + std::to_string(scratch_bytes) + " bytes of scratch memory and a matrix product needs " +
                        std::to_string(least_scratch(best.splits ? best.tile_columns : 16)) +
                        ": set Options::scratch_bytes to flywheel::kGemmScratchBytes (" + std::to_string(kGemmScratchBytes) + ")");
  best.band = kBand;
  if (const char* band = std::getenv("BAND")) best.band = std::atoi(band);
  best.splits = std::min(best.splits, steps);
  const std::uint32_t parts =
      parts_of(tiles_of.rows, kTileRows) * parts_of(tiles_of.columns, best.tile_columns) * best.splits;
  if (best.splits == 1) best.parts_each = std::clamp(parts / workers, 1u, kMostPartsEach);
  return best;
}

}  // namespace flywheel::detail
