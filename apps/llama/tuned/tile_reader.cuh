// How compute warps take tiles from the pages of their operands.
#pragma once

#include "apps/llama/tuned/tile.cuh"

namespace llama {

/// A lane's part of what a warp fetches at once: a page of tiles, still packed, or one tile.
template <bool kWhole>
struct Fetched;
template <>
struct Fetched<true> {
  static constexpr int kCount = kStepsOfPage;
  LaneQuad quads[kQuadsOfPage];

  /// use(which, tile)
  template <class Use>
  FLYWHEEL_TASK void for_each(Use&& use) const {
#pragma unroll
    for (int q = 0; q < kQuadsOfPage; ++q) {
      TilePart tiles[kQuad];
      quads[q].unpack(tiles);
#pragma unroll
      for (int t = 0; t < kQuad; ++t) use(q * kQuad + t, tiles[t]);
    }
  }
};
template <>
struct Fetched<false> {
  static constexpr int kCount = 1;
  TilePart tile;

  template <class Use>
  FLYWHEEL_TASK void for_each(Use&& use) const {
    use(0, tile);
  }
};

/// One warp's reader of tiles. It works on a copy of the operands, which stays in registers. `kWhole`: every page is full.
template <bool kWhole, class Block, class Operands>
class TileReader {
 public:
  FLYWHEEL_TASK TileReader(Block& block, Operands& operands, const TileShape& shape)
      : warp_(block.warp()),
        lane_(block.lane()),
        operands_(operands),
        home_(operands),
        left_(shape.total_steps()) {}
  FLYWHEEL_TASK ~TileReader() {
    release();
    home_ = operands_;
  }
  TileReader(const TileReader&) = delete;
  TileReader& operator=(const TileReader&) = delete;

  /// The next tiles, if there are any. What was fetched before has been used by now: its page is given back.
  FLYWHEEL_TASK void fetch(Fetched<kWhole>& to) {
    if (left_) fetch_next(to);
  }
  /// The same for those who know that there are.
  FLYWHEEL_TASK void fetch_next(Fetched<kWhole>& to) {
    if constexpr (kWhole) {
      turn_page();
      load_page(to);
    } else {
      if (at_ == in_page_) {
        turn_page();
        in_page_ = left_ < kStepsOfPage ? left_ : kStepsOfPage;
        at_ = 0;
      }
      TilePart tiles[kQuad];
      quads((in_page_ + kQuad - 1) / kQuad)[at_ / kQuad].of(lane_).unpack(tiles);
      const int t = at_++ % kQuad;
      to.tile = t < 2 ? t == 0 ? tiles[0] : tiles[1] : t == 2 ? tiles[2] : tiles[3];
    }
    left_ -= Fetched<kWhole>::kCount;
  }
  /// Whole pages, one at a time, for those who know that there is a next one.
  FLYWHEEL_TASK void fetch_page(Fetched<kWhole>& to) {
    static_assert(kWhole);
    take_page();
    load_page(to);
    left_ -= kStepsOfPage;
  }
  FLYWHEEL_TASK void drop_page() { operands_.consumer_release(); }
  /// The page is not needed any more, if all of it was fetched: its tiles are in registers. Waits for them to be there, so
  /// there should be something to do between fetch() and this.
  FLYWHEEL_TASK void release() {
    if (!holds_ || !(kWhole || at_ == in_page_)) return;
    holds_ = false;
    drop_page();
  }

 private:
  FLYWHEEL_TASK void turn_page() {
    release();
    take_page();
    holds_ = true;
  }
  FLYWHEEL_TASK void take_page() { page_ = operands_.consumer_wait(); }

  FLYWHEEL_TASK void load_page(Fetched<kWhole>& to) const {
#pragma unroll
    for (int q = 0; q < kQuadsOfPage; ++q) to.quads[q] = quads(kQuadsOfPage)[q].of(lane_);
  }

  /// The warp's, of a page that has `all` for each.
  FLYWHEEL_TASK const Quad* quads(int all) const { return reinterpret_cast<const Quad*>(page_) + warp_ * all; }

  int warp_, lane_;
  Operands operands_;
  Operands& home_;
  const unsigned char* page_ = nullptr;
  bool holds_ = false;
  int left_, in_page_ = 0, at_ = 0;
};

}  // namespace llama
