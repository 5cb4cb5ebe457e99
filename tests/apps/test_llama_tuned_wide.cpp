// The tuned decode's graph of very large vocabularies and of more heads than its tasks can number. The graph is built and
// looked at, never run: its matrices have sizes and no weights.
#include <cstring>

#include "apps/llama/tuned/graph.hpp"
#include "apps/llama/tuned/start.hpp"
#include "catch.hpp"
#include "llama_run_support.hpp"
#include "llama_small_config.hpp"

namespace llama {
namespace {

MatrixBuffer sizes_of(int rows, int columns) { return {{}, rows, {nullptr, columns, 1}}; }

/// Two layers of small_config(), and an output matrix of that many columns.
Weights weights_of(const Config& config, int columns) {
  Weights weights;
  weights.embedding = sizes_of(config.vocab_size, config.hidden_size);
  weights.head = sizes_of(config.vocab_size, columns);
  for (int layer = 0; layer < config.num_hidden_layers; ++layer) {
    LayerWeights& w = weights.layers.emplace_back();
    w.qkv = sizes_of(config.query_size() + 2 * config.key_value_size(), config.hidden_size);
    w.output = sizes_of(config.hidden_size, config.query_size());
    w.gate = sizes_of(config.intermediate_size, config.hidden_size);
    w.up = sizes_of(config.intermediate_size, config.hidden_size);
    w.down = sizes_of(config.hidden_size, config.intermediate_size);
  }
  return weights;
}

struct Built {
  Built(const Config& config, int columns)
      : runtime(start_tuned_runtime({.target = Target::cpu, .workers = 1})),
        weights(weights_of(config, columns)),
        streamed(runtime, weights),
        memory(runtime, config, 16, 1),
        graph(build_tuned_graph(1, config, streamed, memory)) {}

  std::vector<flywheel::detail::GraphNode> logits() const {
    std::vector<flywheel::detail::GraphNode> nodes;
    for (const StageTasks& stage : graph.stages)
      if (std::string_view(stage.name) == "logits")
        for (const std::uint32_t task : stage.tasks) nodes.push_back(graph.decode.nodes()[task]);
    return nodes;
  }

  Runtime runtime;
  Weights weights;
  StreamedWeights streamed;
  TunedMemory memory;
  TunedGraph graph;
};

TEST_CASE("tuned: each task of a vocabulary of more than a million tokens has a number of its own") {
  Config config = small_config();
  config.vocab_size = (1 << 20) + 64;
  config.tie_word_embeddings = false;
  const Built built(config, 8192);  // streamed: tasks of 32 rows
  const auto nodes = built.logits();
  REQUIRE(nodes.size() == static_cast<std::size_t>(config.vocab_size) / 32);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    TunedLogits task{};
    std::memcpy(&task, nodes[i].args.data(), sizeof task);
    wrong += static_cast<std::int64_t>(task.index) != static_cast<std::int64_t>(i);
    wrong += static_cast<std::int64_t>(task.tasks) != static_cast<std::int64_t>(nodes.size());
  }
  CHECK(wrong == 0);
}

TEST_CASE("tuned: the weights of one task are counted in 32 bits, however large its worker's share is") {
  Config config = small_config();
  config.vocab_size = 700'000;
  config.tie_word_embeddings = false;
  const Built built(config, 4096);
  const auto groups = static_cast<std::uint64_t>(config.vocab_size / kGroupRows);
  std::uint64_t bytes = 0;
  for (const flywheel::detail::GraphNode& node : built.logits()) bytes += node.operand_bytes;
  CHECK(bytes == groups * TileShape{4096, 1, 1}.bytes());
}

TEST_CASE("tuned: more heads than a byte can number are refused, naming the key and the most there may be") {
  Config config = small_config();
  for (const int heads : {256, 65536, 65537}) {
    config.num_attention_heads = heads;
    config.num_key_value_heads = 1;
    const std::string error = request_error_of([&] { Built(config, 64); });
    INFO(error);
    CHECK(mentions(error, {"num_attention_heads", std::to_string(heads), "255", "without --tuned"}));
  }
}

}  // namespace
}  // namespace llama
