#include "apps/llama/tuned/step_bytes.hpp"

#include "apps/llama/tuned/tile.cuh"

namespace llama {
namespace {

struct Size {
  int rows, columns, count;
};

/// f(rows, columns, how many) of each matrix that a step reads.
template <class F>
void for_each_matrix(const Config& config, F&& f) {
  const int hidden = config.hidden_size, inner = config.intermediate_size, layers = config.num_hidden_layers;
  f(Size{config.qkv_size(), hidden, layers});
  f(Size{hidden, config.query_size(), layers});
  f(Size{inner, hidden, 2 * layers});
  f(Size{hidden, inner, layers});
  f(Size{config.vocab_size, hidden, 1});
}

}  // namespace

std::uint64_t weight_bytes(const Config& config) {
  std::uint64_t values = 0;
  for_each_matrix(config, [&](const Size& s) {
    values += static_cast<std::uint64_t>(s.rows) * static_cast<std::uint64_t>(s.columns) * static_cast<std::uint64_t>(s.count);
  });
  const std::int64_t norms = 2 * config.hidden_size + (config.has_qk_norm() ? 2 * config.head_dim : 0);
  const std::int64_t floats = config.num_hidden_layers * (norms + config.qkv_biases()) + config.hidden_size;
  return values * sizeof(Bf16) + static_cast<std::uint64_t>(floats) * sizeof(float);
}

std::uint64_t position_bytes(const Config& config) {
  return static_cast<std::uint64_t>(config.num_hidden_layers) * 2 * static_cast<std::uint64_t>(config.key_value_size()) *
         sizeof(Half);
}

double step_bytes(const Config& config, int sequences, double positions) {
  double of_layers = 0;
  for (int layer = 0; layer < config.num_hidden_layers; ++layer) {
    const double window = config.window(static_cast<std::size_t>(layer));
    of_layers += window > 0 && window < positions ? window : positions;
  }
  const double bytes = static_cast<double>(position_bytes(config)) / config.num_hidden_layers;
  return static_cast<double>(weight_bytes(config)) + sequences * of_layers * bytes;
}

std::uint64_t stream_bytes(const Config& config) {
  std::uint64_t bytes = 0;
  for_each_matrix(config, [&](const Size& s) {
    const int groups = (s.rows + kGroupRows - 1) / kGroupRows;
    bytes += std::uint64_t{TileShape{s.columns, 1, 1}.bytes()} * static_cast<std::uint64_t>(groups) *
             static_cast<std::uint64_t>(s.count);
  });
  return bytes;
}

}  // namespace llama
