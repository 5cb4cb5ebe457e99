// In place of apps/ladder/hopper.cuh: copies of boxes by the emulated block. There are no clusters.
#pragma once

#include <cstring>

#include <flywheel/detail/ptx.cuh>
#include "apps/ladder/tensor_map.hpp"

namespace ladder {

inline void fence_for_copies() {
  flywheel::detail::ptx::fence_shared_for_bulk_copies();
  flywheel::detail::ptx::fence_global_for_bulk_copies();
}

/// Line after line.
inline void copy_box(void* to, const CUtensorMap& map, int x, int y, std::uint64_t& barrier) {
  auto* const box = static_cast<unsigned char*>(to);
  const auto line = static_cast<std::uint32_t>(map.columns * sizeof(float));
  for (unsigned row = 0; row < map.rows; ++row) {
    const float* const from = map.matrix + (static_cast<std::size_t>(y) + row) * static_cast<std::size_t>(map.n) + x;
    flywheel::detail::ptx::bulk_copy(box + row * line, from, line, barrier);
  }
}
inline void store_box(const CUtensorMap& map, int x, int y, const void* from) {
  for (unsigned row = 0; row < map.rows; ++row)
    std::memcpy(map.matrix + (static_cast<std::size_t>(y) + row) * static_cast<std::size_t>(map.n) + x,
                static_cast<const float*>(from) + row * map.columns, map.columns * sizeof(float));
}
inline void wait_boxes_read() {}
inline void wait_boxes_stored() {}

template <int kRegisters>
void take_registers() {}
template <int kRegisters>
void give_registers() {}

}  // namespace ladder
