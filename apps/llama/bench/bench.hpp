// `llama bench`: the tuned decode beside its peers and the limit of the card.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "apps/llama/bench/bench_model.hpp"
#include "apps/llama/bench/rows.hpp"
#include "apps/llama/tuned/options.hpp"

namespace llama {

struct BenchRequest {
  std::vector<std::uint32_t> contexts;  // starting positions; empty: see default_starts()
  std::uint32_t tokens = 256;           // of a run
  std::vector<std::uint32_t> prompts;   // lengths of prompts to measure, too
  std::uint32_t mixed = 0;              // texts of random lengths to measure, too
  int runs = 5;                         // counted, after one to warm up; 0: measure nothing
  int batch = 1;                        // texts at once: 1, 2, 4, 8, 16, 32 or 64
  std::uint32_t portable_check = 0;     // positions of each text to hold against the portable tasks
  bool peers = true;
  std::vector<PeerShape> peer_shapes{kPeerShapes.begin(), kPeerShapes.end()};  // the best of them is measured
  std::filesystem::path trace;                                                 // Chrome JSON of a run of 8 tokens; empty: none
  std::filesystem::path prompt_trace;                                          // the same of a prompt, the first of `prompts`
  std::filesystem::path schedule;                                              // the schedule as text; empty: none
  std::filesystem::path out;                     // results; empty: apps/llama/results/<gpu>.json, on a CPU none
  std::vector<std::uint32_t> portable_contexts;  // positions from which to hold a few steps against the portable tasks
  Options options{.tuning = {.operand_window = kBestWindow}};  // target, workers, operand pages, window and copies
};

/// Does all that the request asks for and prints it. False if the tuned tasks are wrong. Throws RequestError for a
/// request that cannot be served, PeersAreWrong, CudaError, std::runtime_error for a file that cannot be written.
bool run_bench(const BenchModel& model, const BenchRequest& request);

/// The measurement alone. Throws PeersAreWrong if their logits are not ours.
std::vector<DecodeTimes> measure_decode(const BenchModel& model, const BenchRequest& request);

class PeersAreWrong : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace llama
