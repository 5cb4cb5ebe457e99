// Drawing a token by a block of 256 threads, from what the tasks that make logits leave, against an oracle that sorts.
#include <random>

#include "catch.hpp"
#include "support/fiber_block.hpp"

#include "apps/llama/tuned/maxima.cuh"
#include "llama_sampling_support.hpp"

namespace llama {
namespace {

constexpr int kDraws = 5;

/// The tokens after positions 0 to kDraws - 1, all from the same logits.
struct DrawTask {
  LogitsLeft left;
  Sampling how;
  std::uint32_t* tokens;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    for (std::uint32_t position = 0; position < kDraws; ++position) {
      const std::uint32_t token = draw_token(block, left, how, position + 1);
      if (block.leader()) tokens[position] = token;
    }
  }
};
/// The same by who has the logits alone.
struct ChooseTask {
  LogitsLeft left;
  Sampling how;
  std::uint32_t* tokens;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    for (std::uint32_t position = 0; position < kDraws; ++position) {
      const std::uint32_t token = choose_token(block, left.logits, left.vocabulary, how, position + 1);
      if (block.leader()) tokens[position] = token;
    }
  }
};

/// One text's logits, as tasks of different sizes leave them.
struct Left {
  explicit Left(std::vector<float> all, int sequences = 1, int most_rows = 88) : logits(std::move(all)), groups{sequences} {
    const int count = static_cast<int>(logits.size());
    for (int first = 0, rows = 8; first < count; first += rows, rows = rows % most_rows + 8) first_rows.push_back(first);
    first_rows.push_back(count);
    for (std::size_t task = 0; task + 1 < first_rows.size(); ++task)
      for (int group = 0; group < groups.count(); ++group)
        maxima.push_back(maximum(first_rows[task], first_rows[task + 1], group));
    maxima.resize((maxima.size() + 3) / 4 * 4, ~0u);  // which is no key of these
  }
  std::uint32_t maximum(int first, int end, int group) const {
    std::uint32_t most = 0;
    for (int i = 0; first + groups.row(group, i) < end; ++i)
      most = std::max(most, order_key(logits[static_cast<std::size_t>(first + groups.row(group, i))]));
    return most;
  }
  LogitsLeft left() const {
    return {logits.data(),
            maxima.data(),
            first_rows.data(),
            static_cast<int>(logits.size()),
            static_cast<int>(first_rows.size()) - 1,
            groups.sequences};
  }

  std::vector<float> logits;
  RowGroups groups;
  std::vector<std::int32_t> first_rows;
  std::vector<std::uint32_t> maxima;
};

template <class Task>
std::vector<std::uint32_t> tokens_of(const Left& left, const Sampling& how) {
  std::vector<std::uint32_t> tokens(kDraws, ~0u);
  testing::FiberOptions options;
  options.scratch_bytes = (chooser_scratch<256>() + 15) / 16 * 16;  // no more than that
  const Outcome asked = testing::run_fibers(Task{left.left(), how, tokens.data()}, {}, options);
  CHECK(asked.code == 0);
  return tokens;
}

void check_draws(const Left& left, const Sampling& how) {
  INFO("top-k " << how.top_k << ", top-p " << how.top_p << ", temperature " << how.temperature << ", " << left.logits.size()
                << " tokens, " << left.groups.sequences << " sequences");
  std::vector<std::uint32_t> expected;
  for (std::uint32_t position = 0; position < kDraws; ++position)
    expected.push_back(sampled_by_sorting(left.logits, how, position));
  CHECK(tokens_of<DrawTask>(left, how) == expected);
  CHECK(tokens_of<ChooseTask>(left, how) == expected);
}

/// As a model's, in steps of `step`, so that many are alike.
std::vector<float> random_logits(std::size_t count, float step, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(2, 3);
  std::vector<float> logits(count);
  for (float& logit : logits) logit = std::round(normal(random) / step) * step + 0.f;  // no -0, which orders below 0
  return logits;
}

TEST_CASE("a block draws the token that sorting chooses, whatever the filters") {
  std::uint32_t seed = 0;
  for (const std::size_t count : {7003u, 20000u}) {
    const Left left(random_logits(count, 1e-5f, ++seed));
    for (const std::uint32_t top_k : {0u, 1u, 50u, 256u, 300u, 600u})
      for (const float top_p : {1.f, 0.95f, 0.5f, 1e-6f})
        for (const float temperature : {0.1f, 0.8f, 2.f}) check_draws(left, {temperature, top_p, top_k, 0, ++seed});
  }
}

TEST_CASE("so it does from groups of rows as several sequences have them") {
  for (const int sequences : {2, 4, 8, 16})
    for (const int most_rows : {8, 1000}) {
      const Left left(random_logits(5001, 1e-5f, static_cast<std::uint32_t>(sequences)), sequences, most_rows);
      for (const std::uint32_t top_k : {1u, 50u, 256u}) check_draws(left, {1.5f, 0.95f, top_k, 0, top_k});
    }
}

TEST_CASE("tokens with the same logit all stay, or none of them") {
  for (const float step : {0.05f, 0.5f, 4.f, 100.f}) {
    const Left left(random_logits(6001, step, 3));
    for (const std::uint32_t top_k : {0u, 3u, 50u, 600u})
      for (const float top_p : {1.f, 0.8f}) check_draws(left, {2.f, top_p, top_k, 0, 11});
  }
}

TEST_CASE("few tokens, one that has all the mass, and some that have none") {
  std::vector<float> peak = random_logits(3000, 1e-3f, 5), cut = peak;
  peak[1717] = 1000;
  for (std::size_t i = 0; i < cut.size(); i += 2) cut[i] = -std::numeric_limits<float>::infinity();
  for (const std::vector<float>& logits :
       {peak, cut, random_logits(1, 1, 6), random_logits(5, 1e-3f, 6), random_logits(100, 1e-3f, 7)})
    for (const std::uint32_t top_k : {0u, 20u, 2000u})
      for (const float top_p : {1.f, 0.9f})
        for (const float temperature : {1e-6f, 1.f, 1e6f}) check_draws(Left(logits), {temperature, top_p, top_k, 0, 5});
}

TEST_CASE("for top-k, only logits of groups that can have one of the likeliest are looked at") {
  Left left(random_logits(20000, 1e-5f, 8));
  const std::vector<float> logits = left.logits;
  const float most = *std::ranges::max_element(logits);  // drawn often, if looked at
  std::vector<std::uint32_t> largest = left.maxima;
  std::ranges::sort(largest, std::greater());
  for (std::size_t i = 0; i < left.maxima.size(); ++i) {
    if (left.maxima[i] >= largest[150]) continue;
    const std::size_t task = i / 32;
    for (int n = 0; left.first_rows[task] + left.groups.row(static_cast<int>(i % 32), n) < left.first_rows[task + 1]; ++n)
      left.logits[static_cast<std::size_t>(left.first_rows[task] + left.groups.row(static_cast<int>(i % 32), n))] = most;
  }
  const Sampling how{0.8f, 0.95f, 50, 0, 1};
  const std::vector<std::uint32_t> tokens = tokens_of<DrawTask>(left, how);
  for (std::uint32_t position = 0; position < kDraws; ++position)
    CHECK(tokens[position] == sampled_by_sorting(logits, how, position));
}

TEST_CASE("dividing by multiplications gives the quotient that division gives") {
  std::mt19937 random(10);
  std::uniform_real_distribution<float> logs(-24, 24), below(-23, 0);
  for (int round = 0; round < 2000; ++round) {
    const float temperature = round % 2 ? std::exp2(logs(random)) : std::exp2(5 * logs(random));
    const Exponents exponents(0, temperature);
    for (int i = 0; i < 500; ++i) {
      const float scaled = exponents.bounded(below(random) * temperature) * (exponents.divisor() / temperature);
      if (exponents.divided(scaled) != scaled / exponents.divisor()) FAIL(scaled << " / " << exponents.divisor());
    }
  }
}

TEST_CASE("logits that are no numbers fail a draw") {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()})
    for (const std::uint32_t top_k : {0u, 50u}) {
      std::vector<float> logits = random_logits(2000, 1e-3f, 9);
      logits[777] = bad;
      const Left left(logits);
      std::vector<std::uint32_t> tokens(kDraws, ~0u);
      CHECK(testing::run_fibers(DrawTask{left.left(), {1, 1, top_k, 0, 0}, tokens.data()}, {}).code ==
            kUserStatus + kLogitsNotFinite);
      for (const std::uint32_t token : tokens) CHECK(token < logits.size());
    }
}

}  // namespace
}  // namespace llama
