// What others have published for searches like these, to stand beside the rows on a terminal. Other graphs, other cards: a
// scale to read them by, not a peer.
#pragma once

namespace bfs {

inline constexpr const char* kPublishedLargeLevels[] = {
    "Gunrock 1.0 on a Quadro GV100, kron_g500-logn21: 1.03 ms, direction-optimised (github.com/gunrock/io, 2019)",
    "NVIDIA on 8,192 H100 with a network between them: 410,000 GTEPS, 50 a GPU "
    "(blogs.nvidia.com/blog/h100-coreweave-graph500)"};
inline constexpr const char* kPublishedManyLevels[] = {
    "Gunrock 1.0 on a Quadro GV100, belgium_osm, 1.4 M vertices in 1,361 levels: 101 ms (github.com/gunrock/io, 2019)",
    "Gunrock 1.0 on a Quadro GV100, asia_osm, 12 M vertices in 30,882 levels: 2,615 ms (github.com/gunrock/io, 2019)"};

}  // namespace bfs
