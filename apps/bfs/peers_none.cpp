// A host-only build has no peer. cuda_levels.cu takes its place where there is CUDA.
#include "apps/bfs/level_peer.hpp"

namespace bfs {

std::unique_ptr<LevelPeer> make_level_peer(const LevelMemory&, bool) { return nullptr; }

}  // namespace bfs
