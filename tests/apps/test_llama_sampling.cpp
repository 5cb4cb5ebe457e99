// Sample against an oracle that sorts.
#include <rapidcheck.h>

#include <bit>

#include "catch.hpp"
#include "llama_run_support.hpp"
#include "llama_sampling_support.hpp"

namespace llama {
namespace {

/// Runs Sample on one set of logits at a time.
class Sampler {
 public:
  explicit Sampler(std::vector<std::uint32_t> ends = {}) : runtime_(cpu_runtime(1)), ends_(runtime_.upload(ends)) {}

  std::uint32_t operator()(const std::vector<float>& logits, const Sampling& how, std::uint32_t position = 0) {
    Run run = start(logits, {how, 1, 1}, position, 1);
    const auto written = run.next<WrittenToken>();
    run.wait();
    const StepState after = state_.read()[0];
    if (!written || after.token != written->token || after.position != position + 1)
      throw std::runtime_error("the state does not say what was streamed");
    return written->token;
  }

  Run start(const std::vector<float>& logits, const RunSettings& settings, std::uint32_t position, std::uint32_t passes,
            const std::vector<std::uint32_t>& prompt = {0}) {
    logits_ = runtime_.upload(logits);
    prompt_ = runtime_.upload(prompt);
    state_ = runtime_.upload(std::vector<StepState>{{position, 0}});
    Graph graph;
    const auto param = graph.param<RunSettings>();
    graph.add(Sample{logits_.data(), prompt_.data(), ends_.data(), state_.data(), static_cast<int>(logits.size()),
                     static_cast<int>(ends_.size()), param});
    return runtime_.submit(runtime_.load(graph), set(param, settings), repeat_until_stop(passes));
  }

 private:
  Runtime runtime_;
  Buffer<float> logits_;
  Buffer<std::uint32_t> prompt_, ends_;
  Buffer<StepState> state_;
};

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
    RC_ASSERT(sample(logits, how, position) == sampled_by_sorting(logits, how, position));
  }));
}

TEST_CASE("temperature 0, top-k 1 and a tiny top-p all take the likeliest token") {
  Sampler sample;
  Noise noise(11);
  for (int round = 0; round < 20; ++round) {
    const auto logits = noise(300);
    const auto best = static_cast<std::uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
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

TEST_CASE("logits that are no numbers fail the run, whatever their sign and wherever they are") {
  Sampler sample;
  const auto bits = GENERATE(as<std::uint32_t>(), 0x7fc00000, 0xffc00000, 0xffffffff, 0xff800001, 0x7f800000);
  const std::size_t place = GENERATE(as<std::size_t>(), 0, 1, 299);
  std::vector<float> logits(300, 1.f);
  logits[place] = std::bit_cast<float>(bits);
  for (const Sampling& how : {Sampling{}, Sampling{.temperature = 1}, Sampling{.temperature = 1, .top_p = 0.9f, .top_k = 5}}) {
    Run run = sample.start(logits, {how, 1, 1}, 0, 5);
    try {
      run.wait();
      FAIL("the run ended well");
    } catch (const RunError& error) {
      CHECK(error.user_code() == kLogitsNotFinite);
    }
  }
}

}  // namespace
}  // namespace llama
