// Sample against an oracle that sorts.
#include <rapidcheck.h>

#include <algorithm>
#include <numeric>

#include "apps/llama/tasks/sampling.cuh"
#include "catch.hpp"
#include "llama_run_support.hpp"

namespace flywheel::llama {
namespace {

/// Runs Sample on one set of logits at a time.
class Sampler {
 public:
  explicit Sampler(std::vector<std::uint32_t> ends = {})
      : runtime_(cpu_runtime(1)), ends_(runtime_.upload(ends)) {}

  std::uint32_t operator()(const std::vector<float>& logits, const Sampling& how,
                           std::uint32_t position = 0) {
    Run run = start(logits, {how, 1, 1}, position, 1);
    const auto written = run.next<WrittenToken>();
    run.wait();
    const StepState after = state_.read()[0];
    if (!written || after.token != written->token || after.position != position + 1)
      throw std::runtime_error("the state does not say what was streamed");
    return written->token;
  }

  Run start(const std::vector<float>& logits, const RunSettings& settings, std::uint32_t position,
            std::uint32_t passes, const std::vector<std::uint32_t>& prompt = {0}) {
    logits_ = runtime_.upload(logits);
    mass_ = runtime_.allocate<std::uint32_t>(logits.size());
    prompt_ = runtime_.upload(prompt);
    state_ = runtime_.upload(std::vector<StepState>{{position, 0}});
    Graph graph;
    const auto param = graph.param<RunSettings>();
    graph.add(Sample{logits_.data(), mass_.data(), prompt_.data(), ends_.data(), state_.data(),
                     static_cast<int>(logits.size()), static_cast<int>(ends_.size()), param});
    return runtime_.submit(runtime_.load(graph), set(param, settings), repeat_until_stop(passes));
  }

 private:
  Runtime runtime_;
  Buffer<float> logits_;
  Buffer<std::uint32_t> mass_, prompt_, ends_;
  Buffer<StepState> state_;
};

using Tokens = std::vector<std::size_t>;

/// Likeliest first.
Tokens sorted(const std::vector<float>& logits) {
  Tokens order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  return order;
}

std::vector<std::uint64_t> masses(const std::vector<float>& logits, float temperature) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  std::vector<std::uint64_t> all;
  for (const float logit : logits)
    all.push_back(static_cast<std::uint64_t>(exp_of((logit - largest) / temperature) * 2147483648.f));
  return all;
}

/// The shortest front of `order` (all of it different logits) whose masses come to the share `top_p` of its
/// own total.
Tokens nucleus(Tokens order, const std::vector<std::uint64_t>& mass, float top_p) {
  double total = 0, sum = 0;
  for (const std::size_t token : order) total += static_cast<double>(mass[token]);
  const double goal = std::max(1.0, std::floor(static_cast<double>(top_p) * total));
  std::size_t kept = 0;
  while (kept < order.size() && sum < goal) sum += static_cast<double>(mass[order[kept++]]);
  order.resize(kept);
  return order;
}

std::uint32_t oracle(const std::vector<float>& logits, const Sampling& how, std::uint32_t position) {
  Tokens kept = sorted(logits);
  const auto mass = masses(logits, how.temperature);
  if (how.top_k && how.top_k < kept.size()) kept.resize(how.top_k);
  if (how.top_p < 1) kept = nucleus(kept, mass, how.top_p);
  std::sort(kept.begin(), kept.end());
  std::uint64_t total = 0, sum = 0;
  for (const std::size_t token : kept) total += mass[token];
  const std::uint64_t target = scale_down(random_bits(how.seed, position + 1), total);
  for (const std::size_t token : kept)
    if ((sum += mass[token]) > target) return static_cast<std::uint32_t>(token);
  throw std::runtime_error("the masses do not reach their own total");
}

/// Logits with no two alike, in a random order.
rc::Gen<std::vector<float>> logits_gen() {
  return rc::gen::map(rc::gen::nonEmpty(rc::gen::unique<std::vector<int>>(rc::gen::inRange(-4000, 4000))),
                      [](const std::vector<int>& values) {
                        std::vector<float> logits;
                        for (const int value : values) logits.push_back(static_cast<float>(value) / 256.f);
                        return logits;
                      });
}

TEST_CASE("Sample chooses what an oracle that sorts chooses") {
  Sampler sample;
  CHECK(rc::check("top-k, top-p and temperature together", [&] {
    const auto logits = *logits_gen();
    Sampling how;
    how.temperature = static_cast<float>(*rc::gen::inRange(1, 300)) / 100.f;
    how.top_k = *rc::gen::inRange<std::uint32_t>(0, 12);
    how.top_p = static_cast<float>(*rc::gen::inRange(1, 101)) / 100.f;
    how.seed = *rc::gen::arbitrary<std::uint64_t>();
    const auto position = *rc::gen::inRange<std::uint32_t>(0, 1000);
    RC_ASSERT(sample(logits, how, position) == oracle(logits, how, position));
  }));
}

TEST_CASE("temperature 0, top-k 1 and a tiny top-p all take the likeliest token") {
  Sampler sample;
  Noise noise(11);
  for (int round = 0; round < 20; ++round) {
    const auto logits = noise(300);
    const auto best =
        static_cast<std::uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    const auto seed = static_cast<std::uint64_t>(round);
    CHECK(sample(logits, {.seed = seed}) == best);
    CHECK(sample(logits, {.temperature = 2, .top_k = 1, .seed = seed}) == best);
    CHECK(sample(logits, {.temperature = 2, .top_p = 1e-6f, .seed = seed}) == best);
  }
}

TEST_CASE("of equal logits the first is the likeliest, and top-k keeps all that equal its last") {
  Sampler sample;
  CHECK(sample({1, 5, 5, 2}, {}) == 1);
  std::vector<bool> seen(4);
  for (std::uint64_t seed = 0; seed < 64; ++seed)
    seen[sample({5, 1, 5, 5}, {.temperature = 1, .top_k = 2, .seed = seed})] = true;
  CHECK(seen == std::vector<bool>{true, false, true, true});
}

TEST_CASE("tokens come as often as their probabilities say") {
  Sampler sample;
  const std::vector<float> logits{0, std::log(2.f), std::log(5.f)};
  std::vector<int> count(3);
  constexpr int kDraws = 4000;
  for (std::uint32_t position = 0; position < kDraws; ++position)
    ++count[sample(logits, {.temperature = 1, .seed = 3}, position)];
  // Four standard deviations of a binomial distribution are at most 0.032.
  CHECK(count[0] / double{kDraws} == Approx(0.125).margin(0.032));
  CHECK(count[1] / double{kDraws} == Approx(0.25).margin(0.032));
  CHECK(count[2] / double{kDraws} == Approx(0.625).margin(0.032));
}

TEST_CASE("a prompt is fed in without being streamed, and an end-of-text token ends the run") {
  Sampler sample({2});
  Run run = sample.start({0, 1, 9}, {{}, 4, 1}, 0, 100, {0, 1, 1, 0});
  CHECK(run.next<WrittenToken>().value().token == 2u);
  CHECK_FALSE(run.next<WrittenToken>());
  CHECK(run.iterations() == 4);
  Run on = sample.start({0, 1, 9}, {{}, 4, 0}, 0, 10, {0, 1, 1, 0});
  on.wait();
  CHECK(on.iterations() == 10);
}

TEST_CASE("logits that are no numbers fail the run") {
  Sampler sample;
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    Run run = sample.start({1, bad, 2}, {}, 0, 5);
    try {
      run.wait();
      FAIL("the run ended well");
    } catch (const RunError& error) {
      CHECK(error.user_code() == kLogitsNotFinite);
    }
  }
}

}  // namespace
}  // namespace flywheel::llama
