#include "apps/llama/bench/peers.hpp"

#include <chrono>
#include <string>
#include <thread>

#include "apps/llama/decode/request.hpp"

namespace llama {

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

void check_shape(const PeerShape& shape) {
  if (shape.blocks_per_sm < 1 || shape.blocks_per_sm > 3)
    throw RequestError("the peers have no kernels for " + std::to_string(shape.blocks_per_sm) +
                       " blocks an SM: choose 1 to 3 as the first of --peer-shape");
  if (shape.pages_ahead < 0 || shape.pages_ahead > 64)
    throw RequestError("peers cannot prefetch " + std::to_string(shape.pages_ahead) +
                       " pages: choose 0 to 64 as the second of --peer-shape");
}

void wait_until_idle(Runtime& runtime) {
  if (!runtime.on_gpu()) return;
  // In drain mode kernels end by themselves.
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  for (Stats now = runtime.stats(); now.parks < now.launches && std::chrono::steady_clock::now() < limit;
       now = runtime.stats()) {}
}

}  // namespace llama
