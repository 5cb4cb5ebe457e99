// Rung 8: rung 6 with tiles in an order for L2. The tiles that are under way at the same time make a square, not a row: they
// take fewer rows of A and columns of B together.
#pragma once

#include "apps/ladder/rung_06_roles.cuh"

namespace ladder {

/// Down the columns of a band of rows of tiles, then the next band.
struct ByBands {
  static constexpr int kBand = 16;  // rows of tiles: 16 x 8 tiles of 128 x 256 are 132 SMs' work, nearly
  int rows, columns;
  __device__ int2 operator()(int tile) const {
    const int band = tile / (kBand * columns), first = band * kBand;
    const int left = rows - first, height = left < kBand ? left : kBand, within = tile - first * columns;
    return {first + within % height, within / height};
  }
};

inline Launch prepare_order(const Problem& p) {
  return prepare_with_roles(p, ByBands{p.n / kBlockRows, p.n / Roles::kColumns});
}

}  // namespace ladder
