// Each task of a decode step alone, against the same thing written down in double precision.
#include "apps/llama/decode/rope.hpp"
#include "apps/llama/portable/attention.cuh"
#include "apps/llama/portable/projections.cuh"
#include "catch.hpp"
#include "llama_run_support.hpp"

namespace llama {
namespace {

constexpr double kFloat = 2e-6;
constexpr float kEps = 1e-5f;

using Doubles = std::vector<double>;

Doubles oracle_product(const std::vector<float>& m, const Doubles& x) {
  Doubles y(m.size() / x.size(), 0.0);
  for (std::size_t i = 0; i < m.size(); ++i) y[i / x.size()] += static_cast<double>(m[i]) * x[i % x.size()];
  return y;
}

Doubles oracle_norm(const std::vector<float>& x, const std::vector<float>& weights) {
  double squares = 0;
  for (const float v : x) squares += static_cast<double>(v) * v;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + kEps);
  Doubles y;
  for (std::size_t i = 0; i < x.size(); ++i) y.push_back(x[i] * scale * weights[i]);
  return y;
}

double oracle_silu(double x) { return x / (1 + std::exp(-x)); }

/// A matrix of random weights, in device memory and as floats.
struct RandomMatrix {
  RandomMatrix(Runtime& runtime, Noise& noise, int rows, int columns, bool as_bf16)
      : values(noise(static_cast<std::size_t>(rows * columns))) {
    if (!as_bf16) {
      floats = runtime.upload(values);
    } else {
      std::vector<Bf16> bits;
      for (float& value : values) {
        bits.push_back({static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16)});
        value = to_float(bits.back());
      }
      halves = runtime.upload(bits);
    }
    matrix = {as_bf16 ? static_cast<const void*>(halves.data()) : floats.data(), columns, as_bf16};
  }
  std::vector<float> values;
  Buffer<float> floats;
  Buffer<Bf16> halves;
  Matrix matrix{};
};

struct Shape {
  int rows, columns;
};

TEST_CASE("exp_of is exact to two units in the last place, and knows its ends") {
  for (float x = -86.9f; x < 88.f; x += 0.0137f) {
    const double exact = std::exp(static_cast<double>(x));
    REQUIRE(std::abs(exp_of(x) - exact) <= 2.4e-7 * exact);
  }
  CHECK(exp_of(0) == 1);
  CHECK(exp_of(-1000) == 0);
  CHECK(std::isinf(exp_of(1000)));
  CHECK(std::isnan(exp_of(std::nanf(""))));
}

TEST_CASE("Embed copies the row of the token") {
  Runtime runtime = cpu_runtime();
  Noise noise(1);
  for (const bool as_bf16 : {true, false}) {
    const RandomMatrix table(runtime, noise, 5, 24, as_bf16);
    auto state = runtime.upload(std::vector<StepState>{{0, 3}});
    auto x = runtime.allocate<float>(24);
    run_task(runtime, Embed{table.matrix, state.data(), x.data()});
    CHECK(x.read() == std::vector<float>(table.values.begin() + 72, table.values.begin() + 96));
  }
}

TEST_CASE("ProjectNormed computes its rows of weights * norm(x) + bias and no others") {
  Runtime runtime = cpu_runtime();
  Noise noise(2);
  for (const bool as_bf16 : {true, false}) {
    for (const Shape shape : {Shape{7, 8}, Shape{5, 256}, Shape{33, 264}, Shape{2, 1000}}) {
      const RandomMatrix m(runtime, noise, shape.rows, shape.columns, as_bf16);
      const auto columns = static_cast<std::size_t>(shape.columns);
      const auto x = noise(columns), g = noise(columns);
      auto dx = runtime.upload(x), dg = runtime.upload(g);
      auto y = runtime.upload(std::vector<float>(static_cast<std::size_t>(shape.rows), 7.f));
      ProjectNormed task{m.matrix, {dg.data(), kEps}, dx.data(), y.data(), 1, shape.rows};
      run_task(runtime, task);
      Doubles expected = oracle_product(m.values, oracle_norm(x, g));
      expected[0] = 7;
      CHECK(relative_error(y.read(), expected) < kFloat);
      const auto bias = noise(static_cast<std::size_t>(shape.rows));
      const auto added = runtime.upload(bias);
      task.bias = added.data();
      run_task(runtime, task);
      for (std::size_t row = 1; row < bias.size(); ++row) expected[row] += bias[row];
      CHECK(relative_error(y.read(), expected) < kFloat);
    }
  }
}

TEST_CASE("ProjectResidual adds its rows") {
  Runtime runtime = cpu_runtime();
  Noise noise(3);
  const RandomMatrix m(runtime, noise, 19, 576, true);
  const auto x = noise(576), y = noise(19);
  auto dx = runtime.upload(x), dy = runtime.upload(y);
  run_task(runtime, ProjectResidual{m.matrix, dx.data(), dy.data(), 0, 19});
  Doubles expected = oracle_product(m.values, Doubles(x.begin(), x.end()));
  for (std::size_t i = 0; i < y.size(); ++i) expected[i] += y[i];
  CHECK(relative_error(dy.read(), expected) < kFloat);
}

TEST_CASE("GateUp computes SwiGLU") {
  Runtime runtime = cpu_runtime();
  Noise noise(4);
  for (const bool as_bf16 : {true, false}) {
    const RandomMatrix gate(runtime, noise, 21, 64, as_bf16), up(runtime, noise, 21, 64, as_bf16);
    const auto x = noise(64), g = noise(64);
    auto dx = runtime.upload(x), dg = runtime.upload(g), y = runtime.allocate<float>(21);
    run_task(runtime, GateUp{gate.matrix, up.matrix, {dg.data(), kEps}, dx.data(), y.data(), 0, 21});
    const Doubles in = oracle_norm(x, g), gated = oracle_product(gate.values, in);
    Doubles expected = oracle_product(up.values, in);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] *= oracle_silu(gated[i]);
    CHECK(relative_error(y.read(), expected) < kFloat);
  }
}

/// Attention with everything in plain arrays: all positions' rows of queries, keys and values.
struct AttentionOracle {
  int heads, kv_heads, size;
  double theta;
  std::vector<float> q_norm, k_norm;  // empty: none
  std::size_t window = 0;             // 0: none
  std::vector<std::vector<float>> rows{};

  int width() const { return (heads + 2 * kv_heads) * size; }

  Doubles rotated(std::size_t position, int part, const std::vector<float>& norm) const {
    const auto begin = rows[position].begin() + part * size;
    const std::vector<float> in(begin, begin + size);
    const Doubles v = norm.empty() ? Doubles(in.begin(), in.end()) : oracle_norm(in, norm);
    Doubles turned(v.size());
    const std::size_t half = v.size() / 2;
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(position) * std::pow(theta, -2.0 * static_cast<double>(i) / size);
      turned[i] = v[i] * std::cos(angle) - v[i + half] * std::sin(angle);
      turned[i + half] = v[i + half] * std::cos(angle) + v[i] * std::sin(angle);
    }
    return turned;
  }

  Doubles head(int index) const {
    const int group = index / (heads / kv_heads);
    const Doubles query = rotated(rows.size() - 1, index, q_norm);
    Doubles out(query.size(), 0.0);
    double sum = 0;
    for (std::size_t p = 0; p < rows.size(); ++p) {
      if (window && p + window < rows.size()) continue;
      const Doubles key = rotated(p, heads + group, k_norm);
      double score = 0;
      for (std::size_t i = 0; i < key.size(); ++i) score += query[i] * key[i] / std::sqrt(static_cast<double>(size));
      sum += std::exp(score);
      for (std::size_t i = 0; i < key.size(); ++i)
        out[i] += std::exp(score) * rows[p][static_cast<std::size_t>((heads + kv_heads + group) * size) + i];
    }
    for (double& value : out) value /= sum;
    return out;
  }

  Doubles operator()() const {
    Doubles all;
    for (int index = 0; index < heads; ++index) {
      const Doubles one = head(index);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
};

void check_attention(AttentionOracle oracle, std::uint32_t seed) {
  constexpr int kContext = 96, kSteps = 70;
  Runtime runtime = cpu_runtime();
  Noise noise(seed);
  Config config;
  config.head_dim = oracle.size;
  config.rope_theta = oracle.theta;
  const auto heads = static_cast<std::size_t>(oracle.heads), size = static_cast<std::size_t>(oracle.size);
  const std::size_t cached = static_cast<std::size_t>(oracle.kv_heads) * size * kContext;
  auto rope = runtime.upload(rope_table(config, kContext));
  auto keys = runtime.allocate<float>(cached), values = runtime.allocate<float>(cached);
  auto out = runtime.allocate<float>(heads * size), qkv = runtime.allocate<float>(static_cast<std::size_t>(oracle.width()));
  auto q_norm = runtime.upload(oracle.q_norm), k_norm = runtime.upload(oracle.k_norm);
  const bool normed = !oracle.q_norm.empty();
  auto state = runtime.allocate<StepState>(1);
  Graph graph;
  for (std::uint16_t head = 0; head < heads; ++head) {
    graph.add(Attend{qkv.data(),
                     out.data(),
                     {keys.data(), values.data(), kContext, oracle.size},
                     rope.data(),
                     normed ? q_norm.data() : nullptr,
                     normed ? k_norm.data() : nullptr,
                     state.data(),
                     kEps,
                     head,
                     static_cast<std::uint16_t>(oracle.heads),
                     static_cast<std::uint16_t>(oracle.kv_heads),
                     static_cast<std::int32_t>(oracle.window)});
  }
  const Executable step = runtime.load(graph);
  for (std::uint32_t position = 0; position < kSteps; ++position) {
    oracle.rows.push_back(noise(static_cast<std::size_t>(oracle.width())));
    qkv.write(oracle.rows.back());
    state.write({{position, 0}});
    runtime.submit(step).wait();
    INFO("position " << position);
    REQUIRE(relative_error(out.read(), oracle()) < 2e-5);
  }
}

TEST_CASE("Attend agrees with plain attention at every position") {
  check_attention({.heads = 4, .kv_heads = 2, .size = 32, .theta = 10000, .q_norm = {}, .k_norm = {}}, 5);
}

TEST_CASE("Attend agrees with plain attention where each head has its own key") {
  check_attention({.heads = 3, .kv_heads = 3, .size = 8, .theta = 500000, .q_norm = {}, .k_norm = {}}, 6);
}

TEST_CASE("Attend normalises queries and keys of families that do") {
  Noise noise(7);
  check_attention({.heads = 4, .kv_heads = 1, .size = 16, .theta = 10000, .q_norm = noise(16), .k_norm = noise(16)}, 8);
}

TEST_CASE("Attend agrees with plain attention to the last positions alone") {
  for (const std::size_t window : {std::size_t{1}, std::size_t{2}, std::size_t{31}, std::size_t{33}, std::size_t{70}})
    check_attention({.heads = 4, .kv_heads = 2, .size = 16, .theta = 10000, .q_norm = {}, .k_norm = {}, .window = window}, 9);
}

TEST_CASE("Llama 3's stretched frequencies: long waves slow down, short ones stay") {
  Config config;
  config.head_dim = 64;
  config.rope_theta = 500000;
  const std::vector<float> plain = rope_table(config, 2);
  config.rope_scaling = RopeScaling{8, 1, 4, 8192};
  const std::vector<float> stretched = rope_table(config, 2);
  CHECK(stretched[64 + 1] == plain[64 + 1]);
  CHECK(stretched[127] == Approx(plain[127] / 8).epsilon(1e-4));
}

}  // namespace
}  // namespace llama
