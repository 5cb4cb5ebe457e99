// How compute warps take tiles from the pages of their operands.
#pragma once

#include "apps/llama/fast/tile.cuh"

namespace flywheel::llama {

/// One warp's reader of tiles. It works on a copy of the operands, which stays in registers. `kWhole`: every page is full.
template <bool kWhole, class Block, class Operands>
class TileReader {
 public:
  FLYWHEEL_TASK TileReader(Block& block, Operands& operands, const TileShape& shape)
      : warp_(block.warp()), lane_(block.lane()), operands_(operands), home_(operands), tiles_(shape.total_steps()), left_(tiles_) {}
  FLYWHEEL_TASK ~TileReader() { home_ = operands_; }
  TileReader(const TileReader&) = delete;
  TileReader& operator=(const TileReader&) = delete;

  /// The lane's part of the next `kCount` tiles: a page of them, or one.
  template <int kCount>
  FLYWHEEL_TASK void next(TilePart (&parts)[kCount]) {
    static_assert(kCount == (kWhole ? kStepsOfPage : 1));
    if (kWhole || at_ == in_page_) turn_page();
    const int first = kWhole ? warp_ * kStepsOfPage : warp_ * in_page_ + at_;
    const TilePart* from = reinterpret_cast<const TilePart*>(page_) + first * kLanes + lane_;
#pragma unroll
    for (int i = 0; i < kCount; ++i) parts[i] = from[i * kLanes];
    if (kWhole || ++at_ == in_page_) give_back();  // its tiles are in registers
  }

 private:
  FLYWHEEL_TASK void turn_page() {
    if constexpr (requires { operands_.take(); }) page_ = operands_.take();
    else page_ = operands_.next();
    if (kWhole) return;
    in_page_ = left_ < kStepsOfPage ? left_ : kStepsOfPage;
    left_ -= in_page_;
    at_ = 0;
  }

  FLYWHEEL_TASK void give_back() {
    if constexpr (requires { operands_.drop(); }) operands_.drop();
    else operands_.give_back();
  }

  int warp_, lane_;
  Operands operands_;
  Operands& home_;
  const unsigned char* page_ = nullptr;
  const int tiles_;
  int left_, in_page_ = 0, at_ = 0;
};

}  // namespace flywheel::llama
