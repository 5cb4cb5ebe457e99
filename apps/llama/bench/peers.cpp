#include "apps/llama/bench/peers.hpp"

#include <chrono>
#include <thread>

namespace flywheel::llama {

const char* describe(PeerWay way) {
  switch (way) {
    case PeerWay::stream:
      return "stream";
    case PeerWay::graph:
      return "graph";
    default:
      return "graph_pdl";
  }
}

void wait_until_idle(Runtime& runtime) {
  if (!runtime.on_gpu()) return;
  // In drain mode kernels end by themselves, and nobody tells them to.
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  for (Stats now = runtime.stats(); now.parks < now.launches && std::chrono::steady_clock::now() < limit;
       now = runtime.stats()) {
  }
}

}  // namespace flywheel::llama
