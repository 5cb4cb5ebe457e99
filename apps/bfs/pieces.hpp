// How a level's edges are shared out: a frontier is a list of pieces of rows, at most kPieceEdges each, so that the row of a
// hub goes to many warps. A warp takes some pieces at once and walks through their edges, as many as it has lanes times kBatch
// at a time, whatever row they are of.
#pragma once

#include "apps/bfs/graph.hpp"
#include "apps/bfs/words.hpp"

namespace bfs {

inline constexpr std::uint32_t kPieceEdges = 256;
inline constexpr int kBatch = 8;  // edges, or vertices, that a lane has in hand at once: so many loads are on their way

/// Edges `first` to `first + count - 1` of the graph, which are of this vertex.
struct Piece {
  std::uint32_t vertex, first, count;
};

/// So many pieces, or vertices; and the edges that they have. One word, so that one atomic operation adds to both.
struct LevelCount {
  std::uint32_t items, edges;
  FLYWHEEL_TASK static std::uint64_t packed(std::uint64_t items, std::uint64_t edges) { return items << 32 | edges; }
  FLYWHEEL_TASK static LevelCount of(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word)};
  }
};

/// A list of pieces that warps add to.
struct PieceList {
  Piece* pieces;
  std::uint64_t* count;  // a LevelCount
};

/// The edges that a lane has in hand, and the vertices that they are of; kNone: no edge.
struct EdgeBatch {
  std::uint32_t edge[kBatch], from[kBatch];
};

/// The lane's piece of the edges first to last of a warp's pieces.
template <class Block>
class WarpPieces {
 public:
  /// All lanes. `count`: pieces, at most one a lane.
  FLYWHEEL_TASK WarpPieces(Block& block, const Piece* pieces, std::uint32_t count) : block_(block), count_(count) {
    const auto lane = static_cast<std::uint32_t>(block.lane());
    const Piece piece = lane < count ? pieces[lane] : Piece{kNone, 0, 0};
    begin_ = sum_before(block, piece.count);
    total_ = of_last_lane(block, begin_ + piece.count);
    vertex_ = piece.vertex;
    shift_ = piece.first - begin_;
  }
  FLYWHEEL_TASK std::uint32_t total() const { return total_; }
  /// All lanes: edges `base` and on, counted through all pieces.
  FLYWHEEL_TASK EdgeBatch batch(std::uint32_t base) const {
    EdgeBatch batch;
    for (int j = 0; j < kBatch; ++j) {
      const std::uint32_t wanted = base + static_cast<std::uint32_t>(j * Block::kLanes + block_.lane());
      const int owner = count_ == 1 ? 0 : owner_of(wanted);
      const std::uint32_t shift = block_.shuffle(shift_, owner), vertex = block_.shuffle(vertex_, owner);
      batch.edge[j] = wanted < total_ ? wanted + shift : kNone;
      batch.from[j] = wanted < total_ ? vertex : kNone;
    }
    return batch;
  }

 private:
  /// The last lane whose piece begins at `wanted` or before. Lanes without edges begin where the next one does.
  FLYWHEEL_TASK int owner_of(std::uint32_t wanted) const {
    int owner = 0;
    for (int step = Block::kLanes / 2; step > 0; step /= 2)
      if (block_.shuffle(begin_, owner + step) <= wanted) owner += step;
    return owner;
  }

  Block& block_;
  std::uint32_t count_, begin_, total_, vertex_, shift_;
};

/// All warps of all workers: calls f(EdgeBatch) until all edges of `count` pieces have been in one. All lanes call f together.
/// With few pieces each warp takes one.
template <class Block, class F>
FLYWHEEL_TASK void for_each_edge(Block& block, const Piece* pieces, std::uint32_t count, F&& f) {
  const std::uint32_t warps = all_warps(block), even = (count + warps - 1) / warps;
  const std::uint32_t share = even < Block::kLanes ? even : Block::kLanes;
  for (std::uint64_t first = std::uint64_t{warp_of_all(block)} * share; first < count; first += std::uint64_t{warps} * share) {
    const std::uint32_t left = count - static_cast<std::uint32_t>(first);
    const WarpPieces<Block> mine(block, pieces + first, left < share ? left : share);
    for (std::uint32_t base = 0; base < mine.total(); base += kBatch * Block::kLanes) f(mine.batch(base));
  }
}

/// All lanes of a warp, with kBatch vertices each, or kNone: adds the pieces of their rows to the list.
template <class Block>
FLYWHEEL_TASK void add_rows(Block& block, const GraphView& graph, const PieceList& list,
                            const std::uint32_t (&vertices)[kBatch]) {
  std::uint32_t first[kBatch], degree[kBatch];
  std::uint64_t sum = 0;
  for (int j = 0; j < kBatch; ++j) {
    const bool is_one = vertices[j] != kNone;
    first[j] = is_one ? graph.offsets[vertices[j]] : 0;
    degree[j] = is_one ? graph.offsets[vertices[j] + 1] - first[j] : 0;
    sum += LevelCount::packed((degree[j] + kPieceEdges - 1) / kPieceEdges, degree[j]);
  }
  if (!block.any_warp(sum != 0)) return;
  const std::uint64_t before = sum_before(block, sum);
  std::uint64_t base = 0;
  // Relaxed: each place is given out once; the barrier after the level orders the pieces before their use.
  if (block.lane() == Block::kLanes - 1) base = Shared<std::uint64_t>(*list.count).fetch_add(before + sum, Order::relaxed);
  Piece* to = list.pieces + LevelCount::of(of_last_lane(block, base) + before).items;
  for (int j = 0; j < kBatch; ++j)
    for (std::uint32_t at = 0; at < degree[j]; at += kPieceEdges)
      *to++ = {vertices[j], first[j] + at, degree[j] - at < kPieceEdges ? degree[j] - at : kPieceEdges};
  block.sync_warp();  // lanes with more pieces rejoin
}

/// All threads of all workers: puts the pieces of one row. Returns how many there are.
template <class Block>
FLYWHEEL_TASK std::uint32_t put_row(Block& block, const GraphView& graph, std::uint32_t vertex, Piece* pieces) {
  const std::uint32_t first = graph.offsets[vertex], degree = graph.offsets[vertex + 1] - first;
  const std::uint32_t count = (degree + kPieceEdges - 1) / kPieceEdges;
  for_all(block, count, [&](std::uint64_t p) {
    const std::uint32_t at = static_cast<std::uint32_t>(p) * kPieceEdges, left = degree - at;
    pieces[p] = {vertex, first + at, left < kPieceEdges ? left : kPieceEdges};
  });
  return count;
}

}  // namespace bfs
