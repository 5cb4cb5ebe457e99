// Attention of prompts through the GPU's kernel, on an emulated GPU, against sums in double.
#include "support/emulated_engine.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "apps/llama/tuned/prefill_attend.cuh"
#include "catch.hpp"

namespace llama {
namespace {

/// Makes the list of task types one that no other file has.
struct AloneTask {
  int nothing;
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

Runtime start_attention() {
  Options options;
  options.workers = 3;
  options.log_level = "error";
  options.start_timeout = std::chrono::seconds(60);  // of processors that others keep busy
  options.scratch_bytes = 160u << 10;
  return flywheel::testing::start_emulated<PrefillAttend, AloneTask>(options);
}

struct PromptCase {
  int dim, heads, kv_heads, first, count;  // positions from `first` on are read
  float query = 0, key = 0;                // what all values lie around; their products are the scores
  int window = 0;                          // 0: none
};

/// One text's prompt, and the tasks that are tested.
struct AttendedPrompt {
  explicit AttendedPrompt(const PromptCase& shape) : c(shape), stretch{0, at(c.first), at(c.count)} {
    room = (c.first + c.count + 15) / 16 * 16;
    queries = halves(c.count * c.heads * c.dim);
    keys = halves(c.kv_heads * room * c.dim);
    values = halves(c.kv_heads * room * c.dim);
    // Around their middle, so that a score lies around query * key * dim; of values around 0 it is small.
    const auto move = [&](std::vector<Half>& all, float middle) {
      for (Half& one : all) one.bits = static_cast<std::uint16_t>(round_to_half(middle + to_float(one) * .25f));
    };
    move(queries, c.query);
    move(keys, c.key);
    results.assign(queries.size(), flywheel::Bf16::nearest(-7));
  }

  static constexpr int kRows = 64;  // of a task
  static std::uint32_t at(int i) { return static_cast<std::uint32_t>(i); }
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  void run(Runtime& rt) {
    const auto narrow = [](int i) { return static_cast<std::int16_t>(i); };
    const Buffer<Stretch> read = rt.upload<Stretch>({stretch});
    const Buffer<Half> q = rt.upload(queries), k = rt.upload(keys), v = rt.upload(values);
    const Buffer<flywheel::Bf16> out = rt.upload(results);
    Graph graph;
    for (int head = 0; head < c.heads; ++head)
      for (int begin = 0; begin < c.count; begin += kRows)
        graph.add(PrefillAttend{{read.data(), begin, kRows},
                                q.data(),
                                {k.data(), v.data()},
                                out.data(),
                                room,
                                narrow(c.heads),
                                narrow(c.kv_heads),
                                narrow(head),
                                narrow(c.dim),
                                static_cast<std::uint16_t>(c.window)});
    rt.submit(rt.load(graph)).wait();
    results = out.read();
  }

  std::vector<Half> halves(int count) {
    std::vector<Half> all(index(count));
    for (Half& one : all) one.bits = static_cast<std::uint16_t>(round_to_half(std::normal_distribution<float>()(random)));
    return all;
  }

  double product(int row, int head, int position) const {
    double sum = 0;
    for (int i = 0; i < c.dim; ++i)
      sum += static_cast<double>(to_float(queries[index((row * c.heads + head) * c.dim + i)])) *
             static_cast<double>(to_float(keys[of_head(head) + TunedCache::key_at(position, i, c.dim)]));
    return sum;
  }
  std::size_t of_head(int head) const { return index(head * c.kv_heads / c.heads * room * c.dim); }

  /// The largest error. Values are drawn from a normal distribution, so results are below 1, mostly.
  double worst() const {
    double most = 0;
    for (int row = 0; row < c.count; ++row)
      for (int head = 0; head < c.heads; ++head) {
        const int last = c.first + row, begin = c.window && last >= c.window ? last + 1 - c.window : 0;
        std::vector<double> weights, out(index(c.dim));
        double largest = -1e300, sum = 0;
        for (int p = begin; p <= last; ++p) largest = std::max(largest, weights.emplace_back(product(row, head, p)));
        for (double& weight : weights) sum += weight = std::exp2(weight - largest);
        for (int p = begin; p <= last; ++p)
          for (int i = 0; i < c.dim; ++i)
            out[index(i)] += weights[index(p - begin)] / sum *
                             static_cast<double>(to_float(values[of_head(head) + TunedCache::value_at(p, i, c.dim)]));
        for (int i = 0; i < c.dim; ++i) {
          const auto got = static_cast<double>(results[index((row * c.heads + head) * c.dim + i)].value());
          const double off = std::abs(got - out[index(i)]);
          if (!(off <= most)) most = off;  // no number is the worst
        }
      }
    return most;
  }

  PromptCase c;
  Stretch stretch;
  int room;
  std::mt19937_64 random{flywheel::testing::fresh_seed()};
  std::vector<Half> queries, keys, values;
  std::vector<flywheel::Bf16> results;
};

void check_prompt(Runtime& rt, const PromptCase& shape) {
  AttendedPrompt prompt(shape);
  prompt.run(rt);
  INFO("heads of " << shape.dim << ", query " << shape.query << ", key " << shape.key << ", from " << shape.first);
  CHECK(prompt.worst() < .02);
}

TEST_CASE("prefill: attention of heads of any size, from any position on") {
  Runtime rt = start_attention();
  for (const int dim : {32, 64, 96, 128}) {
    check_prompt(rt, {dim, 2, 1, 0, 70});
    check_prompt(rt, {dim, 2, 2, 48, 37});
  }
  check_prompt(rt, {64, 2, 1, 240, 40, 0, 0, 100});
}

TEST_CASE("prefill: attention where all scores are far below 0, or far above") {
  Runtime rt = start_attention();
  for (const float key : {-2.f, 2.f}) {
    check_prompt(rt, {64, 2, 1, 0, 70, 4, key});
    check_prompt(rt, {128, 2, 1, 112, 40, 2, key});
  }
}

}  // namespace
}  // namespace llama
