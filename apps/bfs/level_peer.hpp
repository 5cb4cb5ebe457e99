// The peer: the textbook search, a kernel a level, without the runtime.
#pragma once

#include <memory>
#include <string>

#include "apps/bfs/level_step.hpp"

namespace bfs {

class LevelPeer {
 public:
  virtual ~LevelPeer() = default;
  /// Searches from this root once, with a look of the host at each level, and makes a CUDA graph of the kernels that it took.
  virtual void prepare(std::uint32_t root) = 0;
  /// The kernels of the search prepared last, by their first letters: t(op-down), b(ottom-up), g(ather).
  virtual std::string steps() const = 0;
  /// Launches that graph and waits for its end. The time in ms.
  virtual double run() = 0;
};

/// Works on memory of the runtime, whose kernel is off the GPU meanwhile. Null in a host-only build. `chooses`: not top-down
/// steps alone.
std::unique_ptr<LevelPeer> make_level_peer(const LevelMemory& memory, bool chooses);

}  // namespace bfs
