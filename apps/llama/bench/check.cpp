#include "apps/llama/bench/check.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "apps/llama/bench/fast_options.hpp"
#include "apps/llama/bench/fill_random.cuh"
#include "apps/llama/decode_graph.hpp"
#include "apps/llama/fast/generate.hpp"
#include "apps/llama/fast/start.hpp"
#include "apps/llama/start.hpp"

namespace flywheel::llama {
namespace {

using Logits = std::vector<std::vector<float>>;

Logits by_portable_tasks(const BenchModel& model, const std::vector<std::uint32_t>& ids, const Options& options) {
  Runtime runtime = start_runtime(portable_options(model.config, static_cast<int>(ids.size()), options));
  const Weights weights = model.weights(runtime);
  return portable_logits(runtime, model.config, weights, ids);
}

/// Of two runs.
std::pair<Logits, Logits> by_tuned_tasks(const BenchModel& model, const std::vector<std::uint32_t>& ids,
                                         const Options& options) {
  const int context = static_cast<int>(ids.size());
  Runtime runtime = start_fast_runtime(fast_options(model.config, {.context = context}, options));
  FastGenerator generator(runtime, model.config, model.weights(runtime), context);
  Logits first = generator.logits(ids);
  return {std::move(first), generator.logits(ids)};
}

bool same_bits(const Logits& a, const Logits& b) {
  return std::ranges::equal(a, b, [](const std::vector<float>& x, const std::vector<float>& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
  });
}

}  // namespace

double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    difference += (x - y) * (x - y);
    size += y * y;
  }
  const double error = std::sqrt(difference / size);
  return a.size() == b.size() && std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

std::vector<std::uint32_t> random_ids(const Config& config, std::uint32_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < count; ++i)
    ids.push_back(static_cast<std::uint32_t>(FillRandom::mix(seed, i) % static_cast<std::uint64_t>(config.vocab_size)));
  return ids;
}

std::vector<std::vector<float>> portable_logits(Runtime& runtime, const Config& config, const Weights& weights,
                                                const std::vector<std::uint32_t>& ids) {
  DecodeMemory memory(runtime, config, static_cast<int>(ids.size()));
  const DecodeGraph decode = build_decode_graph(runtime, config, weights, memory);
  const Executable step = runtime.load(decode.graph);
  Logits all;
  for (std::uint32_t position = 0; position < ids.size(); ++position) {
    memory.state.write({{position, ids[position]}});
    runtime.submit(step, set(decode.settings, RunSettings{{}, position + 1, 0})).wait();
    all.push_back(memory.logits.read());
  }
  return all;
}

CheckResult check_against_portable(const BenchModel& model, std::uint32_t positions, const Options& options) {
  const std::vector<std::uint32_t> ids = random_ids(model.config, positions, model.seed);
  const Logits wanted = by_portable_tasks(model, ids, options);
  const auto [first, second] = by_tuned_tasks(model, ids, options);
  CheckResult result{.repeats = same_bits(first, second)};
  for (std::size_t i = 0; i < wanted.size(); ++i)
    result.worst = std::max(result.worst, relative_error(first[i], wanted[i]));
  return result;
}

}  // namespace flywheel::llama
