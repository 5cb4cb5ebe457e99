// The peers: the same tuned bodies, one kernel an operation, launched the ways people launch a decode step without a
// resident kernel. Plain C++ on purpose: the CUDA is behind it.
#pragma once

#include <flywheel/flywheel.hpp>

#include <array>
#include <memory>

#include "apps/llama/tuned/streamed_weights.hpp"

namespace llama {

using namespace flywheel;

/// One launch after the other in a stream; the same captured in a CUDA graph that is launched for each token; that
/// graph with programmatic dependent launch, so that an operation's blocks come and prefetch weights before the last
/// one ends.
enum class PeerWay { stream, graph, graph_pdl };
inline constexpr std::array kPeerWays{PeerWay::stream, PeerWay::graph, PeerWay::graph_pdl};
/// "stream", "graph", "graph_pdl".
const char* describe(PeerWay way);

/// What may be tuned. An SM has room for `blocks_per_sm` blocks (1 to 3), and matrices are shared out over as many;
/// each has `pages_ahead` pages (0 to 64) of operands on their way to L2.
struct PeerShape {
  int blocks_per_sm = 3;
  int pages_ahead = 3;
};
/// Throws RequestError for a shape that there are no kernels for.
void check_shape(const PeerShape& shape);
/// Which is best depends on the model and on the number of texts: all are tried.
inline constexpr std::array kPeerShapes{PeerShape{1, 4}, PeerShape{1, 8}, PeerShape{2, 0}, PeerShape{2, 2},
                                        PeerShape{2, 4}, PeerShape{3, 0}, PeerShape{3, 2}, PeerShape{3, 4}};

class Peers {
 public:
  /// Null in a host-only build and where the runtime has no GPU. The runtime and the weights must outlive it. Errors:
  /// as build_tuned_graph() and check_shape(), CudaError, CapacityError.
  static std::unique_ptr<Peers> make(Runtime& runtime, const Config& config, const StreamedWeights& weights, int context,
                                     int sequences, const PeerShape& shape);
  virtual ~Peers() = default;

  /// See fill_cache().
  virtual void fill_cache(std::uint64_t seed) = 0;
  /// Writes `tokens` tokens greedily from position `start` on; returns the wall time in ms a token. Waits first until
  /// the runtime's kernel has parked: it holds the SMs.
  virtual double run(PeerWay way, std::uint32_t start, std::uint32_t tokens) = 0;
  /// Of all sequences, after the last step.
  virtual std::vector<float> last_logits() = 0;
};

/// Until the runtime's kernel, if it has one, has been told to leave the GPU; see Options::park_after.
void wait_until_idle(Runtime& runtime);

}  // namespace llama
