// In place of apps/ladder/tensor_map.hpp: what a tensor map says, in words of its own.
#pragma once

struct CUtensorMap {
  float* matrix;
  int n;
  unsigned rows, columns;  // of a box
};

namespace ladder {

inline CUtensorMap map_of(const float* matrix, int n, unsigned rows, unsigned columns) {
  return {const_cast<float*>(matrix), n, rows, columns};
}

}  // namespace ladder
