// What the tests that run a model or its tasks share.
#pragma once

#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "apps/llama/checkpoint/safetensors.hpp"
#include "apps/llama/portable/generator.hpp"
#include "apps/llama/portable/start.hpp"
#include "llama_support.hpp"
#include "support/expect.hpp"

namespace llama {

inline Runtime cpu_runtime(std::uint32_t workers = 2) {
  return start_portable_runtime({.target = Target::cpu, .workers = workers});
}

/// What transformers computes for the shipped model; see tools/golden_llama.py.
struct Golden {
  Golden() : file(SafeTensors::open(kGoldenFolder / "golden_logits.safetensors")) {
    const TensorView& tensor = file.at("ids");
    ids.resize(tensor.count());
    std::memcpy(ids.data(), tensor.bytes.data(), tensor.bytes.size());
    logits = to_floats(file.at("logits"));
  }
  std::span<const float> at(std::size_t position) const {
    const std::size_t vocabulary = logits.size() / ids.size();
    return std::span(logits).subspan(position * vocabulary, vocabulary);
  }

  SafeTensors file;
  std::vector<std::uint32_t> ids;
  std::vector<float> logits;
};

/// |a - b| / |b|, Euclidean norms.
template <class A, class B>
double relative_error(const A& a, const B& b) {
  if (a.size() != b.size()) throw std::runtime_error("vectors of different sizes");
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    difference += (x - y) * (x - y);
    size += y * y;
  }
  return std::sqrt(difference / size);
}

/// The largest relative error over the golden positions.
inline double worst_error(const std::vector<std::vector<float>>& logits, const Golden& golden) {
  double worst = 0;
  for (std::size_t position = 0; position < logits.size(); ++position)
    worst = std::max(worst, relative_error(logits[position], golden.at(position)));
  return worst;
}

inline std::vector<std::uint32_t> write_tokens(Generator& generator, const Request& request) {
  std::vector<std::uint32_t> tokens;
  generator.generate(request, [&](std::uint32_t token) { tokens.push_back(token); });
  return tokens;
}

/// The message of the RequestError that `action` throws; empty if it throws nothing.
template <class Action>
std::string request_error_of(Action&& action) {
  return testing::error_of<RequestError>(std::forward<Action>(action));
}

/// Runs a graph of this one task.
template <class Task>
void run_task(Runtime& runtime, const Task& task) {
  Graph graph;
  graph.add(task);
  runtime.submit(runtime.load(graph)).wait();
}

/// Reproducible values around 0.
class Noise {
 public:
  explicit Noise(std::uint32_t seed) : engine_(seed) {}
  float operator()() { return static_cast<float>(normal_(engine_)); }
  std::vector<float> operator()(std::size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = (*this)();
    return values;
  }

 private:
  std::mt19937 engine_;
  std::normal_distribution<double> normal_;
};

}  // namespace llama
