// Sample by a block of many threads, on an emulated GPU: what top-k can leave goes through a shortlist there. One thread,
// which cuts by bisection, is the oracle.
#include "support/emulated_engine.hpp"

#include <random>

#include "catch.hpp"
#include "llama_run_support.hpp"
#include "llama_sampling_support.hpp"

namespace llama {
namespace {

/// Makes the list of task types one that no other file has.
struct NobodysSample {
  int nothing;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

Runtime emulated_runtime() {
  Options options;
  options.workers = 1;
  options.log_level = "error";
  options.start_timeout = std::chrono::seconds(60);
  return testing::start_emulated<Sample, NobodysSample>(options);
}

/// The tokens drawn at `positions` in a row from the same logits.
std::vector<std::uint32_t> drawn(Runtime&& runtime, const std::vector<float>& logits, const Sampling& how,
                                 std::uint32_t positions) {
  const auto on_device = runtime.upload(logits);
  const auto prompt = runtime.upload(std::vector<std::uint32_t>{0});
  const auto ends = runtime.upload(std::vector<std::uint32_t>{0});
  const auto state = runtime.upload(std::vector<StepState>{{0, 0}});
  Graph graph;
  const auto settings = graph.param<RunSettings>();
  graph.add(Sample{on_device.data(), prompt.data(), ends.data(), state.data(), static_cast<int>(logits.size()), 0, settings});
  Run run = runtime.submit(runtime.load(graph), set(settings, {how, 1, 0}), repeat(positions));
  std::vector<std::uint32_t> tokens;
  while (const auto written = run.next<WrittenToken>()) tokens.push_back(written->token);
  run.wait();
  return tokens;
}

/// As a model's, in steps of `step`, so that many are alike.
std::vector<float> random_logits(std::size_t count, float step, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(count);
  for (float& logit : logits) logit = std::round(normal(random) / step) * step;
  return logits;
}

void check_alike(const std::vector<float>& logits, const Sampling& how) {
  INFO("top-k " << how.top_k << ", top-p " << how.top_p << ", temperature " << how.temperature);
  const auto expected = drawn(cpu_runtime(1), logits, how, 24);
  CHECK(expected.size() == 24);
  CHECK(drawn(emulated_runtime(), logits, how, 24) == expected);
}

}  // namespace

TEST_CASE("emulated: a block draws from the tokens that top-k and top-p leave as one thread does") {
  const std::vector<float> logits = random_logits(3000, 1e-4f, 1);
  for (const std::uint32_t top_k : {1u, 2u, 50u, 256u, 257u, 0u})
    for (const float top_p : {0.5f, 0.95f, 1.f}) check_alike(logits, {1.2f, top_p, top_k, 7 + top_k});
}

TEST_CASE("emulated: so it does when logits are alike, also too many for the list") {
  for (const float step : {0.5f, 4.f, 100.f}) {
    const std::vector<float> logits = random_logits(1500, step, 2);
    for (const std::uint32_t top_k : {3u, 40u}) check_alike(logits, {2.f, 0.8f, top_k, 11});
  }
}

TEST_CASE("emulated: and when there are fewer tokens than threads") {
  for (const std::size_t count : {1u, 5u, 100u}) check_alike(random_logits(count, 1e-3f, 3), {3.f, 0.9f, 20, 5});
}

}  // namespace llama
