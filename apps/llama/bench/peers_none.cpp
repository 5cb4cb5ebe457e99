// The peers of a host-only build: none.
#include "apps/llama/bench/peers.hpp"

namespace llama {

std::unique_ptr<Peers> Peers::make(Runtime&, const Config&, const StreamedWeights&, int, int, const PeerShape& shape) {
  check_shape(shape);
  return nullptr;
}

}  // namespace llama
