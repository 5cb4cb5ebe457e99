// In place of apps/ladder/tensor_map.hpp: what a tensor map says, in words of its own.
#pragma once

enum CUtensorMapSwizzle { CU_TENSOR_MAP_SWIZZLE_NONE = 0, CU_TENSOR_MAP_SWIZZLE_64B = 2 };

struct CUtensorMap {
  float* matrix;
  int n;
  unsigned rows, columns;  // of a box
  CUtensorMapSwizzle swizzle;
};

namespace ladder {

inline CUtensorMap map_of(const float* matrix, int n, unsigned rows, unsigned columns, CUtensorMapSwizzle swizzle) {
  return {const_cast<float*>(matrix), n, rows, columns, swizzle};
}

}  // namespace ladder
