// How compute warps take tiles from the pages of their operands.
#pragma once

#include "apps/llama/tuned/tile.cuh"

namespace llama {

/// A lane's part of a page of tiles, still packed.
struct PageOfTiles {
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

/// How a reader sees its pages: it knows how many there are, and holds one at a time.
template <class Operands>
struct PagesOf {
  using Type = Operands;
};
template <class Operands>
requires requires { typename Operands::Known; }
struct PagesOf<Operands> {
  using Type = typename Operands::Known;
};

/// One warp's reader of tiles. It works on a copy of the operands, which stays in registers.
template <class Block, class Operands>
class TileReader {
 public:
  FLYWHEEL_TASK TileReader(Block& block, Operands& operands, const TileShape& shape)
      : warp_(block.warp()),
        lane_(block.lane()),
        pages_(operands),
        home_(operands),
        left_(shape.total_steps()) {}
  FLYWHEEL_TASK ~TileReader() {
    release();
    if constexpr (std::is_same_v<Pages, Operands>) home_ = pages_;
    else home_.go_on_from(pages_);
  }
  TileReader(const TileReader&) = delete;
  TileReader& operator=(const TileReader&) = delete;

  /// The next page, if there is one. What was fetched before has been used by now: its page is given back.
  FLYWHEEL_TASK void fetch(PageOfTiles& to) {
    if (left_) fetch_next(to);
  }
  /// The same for those who know that there is.
  FLYWHEEL_TASK void fetch_next(PageOfTiles& to) {
    release();
    fetch_page(to);
    holds_ = true;
  }
  /// The same, where pages are given back with drop_page().
  FLYWHEEL_TASK void fetch_page(PageOfTiles& to) {
    page_ = pages_.consumer_wait();
#pragma unroll
    for (int q = 0; q < kQuadsOfPage; ++q) to.quads[q] = of_page(kQuadsOfPage)[q].of(lane_);
    left_ -= kStepsOfPage;
  }
  /// The next page, which has up to `all` quads of each warp, for fetch_quad() and drop_page().
  FLYWHEEL_TASK void take_quads(int all) {
    page_ = pages_.consumer_wait() + warp_ * (all < kQuadsOfPage ? all : kQuadsOfPage) * kQuadBytes;
  }
  /// The n-th of these.
  FLYWHEEL_TASK void fetch_quad(LaneQuad& to, int n) const { to = reinterpret_cast<const Quad*>(page_)[n].of(lane_); }
  FLYWHEEL_TASK void drop_page() { pages_.consumer_release(); }
  /// The page is not needed any more: its tiles are in registers. Waits for them to be there, so there should be something to
  /// do between fetch() and this.
  FLYWHEEL_TASK void release() {
    if (!holds_) return;
    holds_ = false;
    drop_page();
  }

 private:
  /// The warp's quads, of a page that has `all` for each warp.
  FLYWHEEL_TASK const Quad* of_page(int all) const { return reinterpret_cast<const Quad*>(page_) + warp_ * all; }

  int warp_, lane_;
  using Pages = typename PagesOf<Operands>::Type;

  Pages pages_;
  Operands& home_;
  const unsigned char* page_ = nullptr;
  bool holds_ = false;
  int left_;  // steps
};

}  // namespace llama
