// Graphs as the searches see them, and the lists of edges that they are made of: RMAT, a grid, or any list. Undirected: each
// edge is there in both directions. Pure functions, the same on the host and on a GPU.
#pragma once

#include <flywheel/flywheel.hpp>

#include <cstdint>

namespace bfs {

struct Edge {
  std::uint32_t from, to;
};

/// The rows of an adjacency matrix one after another (CSR), in device memory. Row v is targets[offsets[v]] to
/// targets[offsets[v + 1] - 1]; weights has a value for each target.
struct GraphView {
  std::uint32_t* offsets;
  std::uint32_t* targets;
  std::uint8_t* weights;
  std::uint32_t vertices;
  std::uint32_t places;  // in targets and weights; at least one
};

enum class EdgeKind : std::uint32_t { list, rmat, grid };

/// Edges 0 to count - 1, each computed from its number, or listed.
struct EdgeSource {
  const Edge* list;
  std::uint64_t count;
  std::uint32_t vertices;
  std::uint32_t size;  // rmat: the scale, the logarithm of the number of vertices; grid: the side
  std::uint32_t seed;
  EdgeKind kind;
};

inline constexpr std::uint32_t kEdgeFactor = 16;  // Graph500: edges for each vertex

inline EdgeSource rmat_edges(std::uint32_t scale, std::uint32_t seed) {
  return {nullptr, std::uint64_t{kEdgeFactor} << scale, 1u << scale, scale, seed, EdgeKind::rmat};
}
/// A grid of side x side vertices, numbered row by row.
inline EdgeSource grid_edges(std::uint32_t side, std::uint32_t seed) {
  return {nullptr, std::uint64_t{2} * side * (side - 1), side * side, side, seed, EdgeKind::grid};
}
/// The list is in device memory.
inline EdgeSource listed_edges(const Edge* list, std::uint64_t count, std::uint32_t vertices, std::uint32_t seed) {
  return {list, count, vertices, 0, seed, EdgeKind::list};
}

FLYWHEEL_TASK inline std::uint64_t mixed(std::uint64_t x) {  // the finaliser of splitmix64 (Steele et al., 2014)
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// A permutation of the numbers below 2^scale, so that a vertex's number says nothing about its degree.
FLYWHEEL_TASK inline std::uint32_t scrambled(std::uint32_t vertex, std::uint32_t scale) {
  const std::uint32_t mask = (scale < 32 ? 1u << scale : 0u) - 1;
  for (int round = 0; round < 3; ++round) {
    vertex = (vertex * 0x9e3779b1u + 0x7f4a7c15u) & mask;
    vertex ^= vertex >> (scale / 2 + 1);
  }
  return vertex;
}

/// An edge of the recursive matrix model (Chakrabarti et al., 2004): bit by bit one of four quadrants, with the probabilities
/// of Graph500, 0.57, 0.19, 0.19 and 0.05. A hash of 64 bits gives four draws.
FLYWHEEL_TASK inline Edge rmat_edge(const EdgeSource& source, std::uint64_t number) {
  constexpr std::uint32_t kA = 37356, kB = kA + 12452, kC = kB + 12452;  // of 65,536
  const std::uint64_t begin = (std::uint64_t{source.seed} << 40 ^ number) * 8;
  Edge edge{0, 0};
  std::uint64_t drawn = 0;
  for (std::uint32_t bit = 0; bit < source.size; ++bit) {
    drawn = bit % 4 ? drawn >> 16 : mixed((begin + bit / 4) * 0x9e3779b97f4a7c15ull);
    const auto draw = static_cast<std::uint32_t>(drawn & 0xffff);
    edge.from = edge.from << 1 | (draw >= kB);
    edge.to = edge.to << 1 | ((draw >= kA && draw < kB) || draw >= kC);
  }
  return {scrambled(edge.from, source.size), scrambled(edge.to, source.size)};
}

/// First the edges along the rows, then those between them.
FLYWHEEL_TASK inline Edge grid_edge(const EdgeSource& source, std::uint64_t number) {
  const std::uint32_t side = source.size, along = side * (side - 1), n = static_cast<std::uint32_t>(number);
  if (n >= along) return {n - along, n - along + side};
  const std::uint32_t vertex = n / (side - 1) * side + n % (side - 1);
  return {vertex, vertex + 1};
}

FLYWHEEL_TASK inline Edge edge_at(const EdgeSource& source, std::uint64_t number) {
  if (source.kind == EdgeKind::rmat) return rmat_edge(source, number);
  return source.kind == EdgeKind::grid ? grid_edge(source, number) : source.list[number];
}

/// 1 to 255, the same in both directions.
FLYWHEEL_TASK inline std::uint8_t weight_of(const Edge& edge, std::uint32_t seed) {
  const std::uint64_t low = edge.from < edge.to ? edge.from : edge.to, high = edge.from < edge.to ? edge.to : edge.from;
  return static_cast<std::uint8_t>(1 + mixed((low << 32 | high) + seed * 0x9e3779b97f4a7c15ull) % 255);
}

}  // namespace bfs
