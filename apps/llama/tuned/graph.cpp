#include "apps/llama/tuned/graph.hpp"

#include <algorithm>
#include <bit>

#include "apps/llama/decode/request.hpp"
#include "apps/llama/tuned/fitness.hpp"
#include "apps/llama/tuned/layers.hpp"
#include "apps/llama/tuned/wide.hpp"

namespace llama {
namespace {

class DecodeBuilder : LayerBuilder {
 public:
  DecodeBuilder(const Places& places, const Config& config, const StreamedWeights& weights, TunedMemory& memory)
      : LayerBuilder(places, config, weights, memory, memory),
        memory_(memory) {}

  TunedGraph build() && {
    Stage done;
    for (std::size_t layer = 0; layer < layers(); ++layer) done = add_rest(layer, add_attention(layer, add_qkv(layer, done)));
    add_choice(add_logits(done));
    result_.embed.add(embed());
    return std::move(result_);
  }

 private:
  /// Parts of a context wait for each other, see join.cuh.
  Stage add_attention(std::size_t layer, const Stage& projected) {
    const After waits = after_all(projected);
    Stage stage;
    for (int split = 0; split < memory_.splits; ++split)
      for (int sequence = 0; sequence < memory_.sequences; ++sequence)
        for (const HeadSlice& heads : head_slices(config_, places_.count, memory_.sequences)) {
          const AttendTask task = attend(layer, sequence, heads, split);
          stage.push_back(window(layer) ? graph().add(TunedAttendWindow{{task}}, waits)
                                        : graph().add(TunedAttend{task}, waits));
        }
    place_attention(stage);
    if (memory_.splits > 1) graph().together(stage);
    return note("attend", std::move(stage));
  }

  Stage add_logits(const Stage& before) {
    const MatrixBuffer& head = weights_.output();
    const auto shares = share_rows(head);
    const int tasks = static_cast<int>(shares.size());
    memory_.provide_best(first_rows(shares, head.rows));
    std::int32_t index = 0;
    return add_shares("logits", shares, before, [&](const Share& s) {
      return TunedLogits{rows_of(head, residual(), s),
                         normed(weights_.final_norm, before),
                         memory_.logits.data(),
                         memory_.best.data(),
                         index++,
                         tasks};
    });
  }

  /// Of each share, and where the last one ends.
  static std::vector<std::int32_t> first_rows(const std::vector<Share>& shares, int rows) {
    std::vector<std::int32_t> first;
    for (const Share& share : shares) first.push_back(share.first * kGroupRows);
    first.push_back(rows);
    return first;
  }

  void add_choice(const Stage& logits) {
    memory_.choice.write(
        {{memory_.logits.data(), memory_.best.data(), memory_.first_rows.data(), memory_.prompt.data(), memory_.ends.data(),
          memory_.writing.data(), config_.vocab_size, static_cast<std::int32_t>(logits.size()), memory_.context,
          static_cast<std::int32_t>(memory_.ends.size())}});
    Stage stage;
    for (int s = 0; s < memory_.sequences; ++s)
      stage.push_back(graph().add(TunedChoose{memory_.choice.data(), embed(), memory_.states.data(), memory_.texts.data(), s},
                                  after_all(logits)));
    note("choose", std::move(stage));
  }

  TunedMemory& memory_;
};

}  // namespace

int sequences_for(int texts) {
  if (texts < 1 || texts > kMostWideTexts)
    throw RequestError("the tuned tasks write 1 to " + std::to_string(kMostWideTexts) + " texts at once, not " +
                       std::to_string(texts) + ": ask for " + std::to_string(kMostWideTexts) +
                       " or fewer, in whose places more take turns");
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(texts)));
}

TunedGraph build_tuned_graph(const Runtime& runtime, const Config& config, const StreamedWeights& weights,
                             TunedMemory& memory) {
  check_tuned(config, weights.plain(), memory);
  return DecodeBuilder({static_cast<int>(runtime.workers()), true}, config, weights, memory).build();
}

TunedGraph build_tuned_graph(int places, const Config& config, const StreamedWeights& weights, TunedMemory& memory) {
  check_tuned(config, weights.plain(), memory);
  return DecodeBuilder({places, false}, config, weights, memory).build();
}

std::uint32_t tuned_scratch_bytes(const Config& config, bool on_gpu, int context, int sequences) {
  int products = 0;
  for (int some = 1; some <= sequences; some *= 2)
    products = std::max(products, kTileWarps * scratch_of_products(config, some));
  // Portable bodies: a whole input, or the weights of a part of the context.
  const int portable = 4 * std::max({config.hidden_size, config.query_size(),
                                     4 * config.head_dim + std::max(context + kFewestPositions, kAlone)});
  const int tuned = std::max(TunedAttend::scratch_bytes(config.head_dim), chooser_scratch<kTileWarps * kLanes>());
  // On a GPU these two borrow the rest: with heads of 64 that leaves room for an eighth page of operands.
  constexpr int kBorrowed = kHandoffs * kHandoffBytes;
  if (on_gpu) return static_cast<std::uint32_t>(std::max(products, tuned - kBorrowed) + 256);
  // Matrix products have the pages of operands on a GPU.
  return std::max(static_cast<std::uint32_t>(std::max({products, tuned, portable}) + 256), flywheel::kGemmScratchBytes);
}

}  // namespace llama
