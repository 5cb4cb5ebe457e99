// Tuned attention, thread by thread as a GPU runs it, against sums in double.
#include "catch.hpp"
#include "support/fiber_block.hpp"

#include "apps/llama/portable/start.hpp"
#include "apps/llama/tuned/attend.cuh"
#include "apps/llama/tuned/memory.hpp"
#include "llama_oracle_support.hpp"

namespace llama {
namespace {

struct Case {
  int dim, heads, kv_heads, splits, position;
  bool normed = false;
  int sequence = 0, sequences = 1;
  int window = 0;  // 0: none
};

/// Everything a step's attention reads and writes, and the task that is tested.
struct Attention {
  explicit Attention(const Case& shape) : c(shape) {
    room = (c.position + 16) / 16 * 16;
    qkv = numbers.floats(c.sequences * (c.heads + 2 * c.kv_heads) * c.dim);
    made = stamped(qkv);
    packed.assign(packed_size(c.sequences, c.heads * c.dim), Stamped{0x7ff77ff7});
    for (int i = 0; i < (c.position + 1) * c.dim / 2; ++i) {
      const float angle = 3 * numbers.next();
      rope.insert(rope.end(), {std::cos(angle), std::sin(angle)});
    }
    q_norm = numbers.floats(c.dim);
    k_norm = numbers.floats(c.dim);
    const int cached = c.sequences * c.kv_heads * room * c.dim;
    keys = numbers.halves(cached);
    values = numbers.halves(cached);
    parts.assign(partials().words(), Stamped{0});
    states.assign(static_cast<std::size_t>(c.sequences), {static_cast<std::uint32_t>(c.position), 0});
  }

  Partials partials() {
    const auto narrow = [](int i) { return static_cast<std::int16_t>(i); };
    return {parts.data(), narrow(c.heads), narrow(c.splits), narrow(c.dim), narrow(c.sequences)};
  }
  AttendTask task(int head, int count, int split) {
    const auto byte = [](int i) { return static_cast<std::uint8_t>(i); };
    return {made.data(),
            partials(),
            {keys.data(), values.data()},
            rope.data(),
            c.normed ? q_norm.data() : nullptr,
            c.normed ? k_norm.data() : nullptr,
            states.data(),
            packed.data(),
            1e-5f,
            room,
            byte(c.sequence),
            byte(c.kv_heads),
            byte(head / (c.heads / c.kv_heads)),
            byte(head),
            byte(count),
            head % (c.heads / c.kv_heads) == 0,
            byte(split),
            static_cast<std::uint16_t>(c.window)};
  }
  /// Parts wait for each other's words. Here they run one after the other: once as if called off, to put their words, and
  /// once more with all that they wait for.
  /// `most`: heads of a task.
  void run_all(bool backwards = false, int most = 64) {
    if (c.window) run_all<TunedAttendWindow>(backwards, most);
    else run_all<TunedAttend>(backwards, most);
  }
  template <class Task>
  void run_all(bool backwards, int most) {
    const int group = c.heads / c.kv_heads;
    std::vector<Task> tasks;
    for (int split = 0; split < c.splits; ++split)
      for (int head = 0; head < c.heads; head += group)
        for (int done = 0; done < group; done += most) {
          Task& made_task = tasks.emplace_back();
          static_cast<AttendTask&>(made_task) = task(head + done, std::min(most, group - done), split);
        }
    if (backwards) std::reverse(tasks.begin(), tasks.end());
    for (const bool called_off : {true, false}) {
      std::fill(packed.begin(), packed.end(), Stamped{0x7ff77ff7});
      for (const Task& task : tasks) flywheel::testing::run_fibers(task, {}, {.called_off = called_off});
    }
  }

  std::vector<double> turned(int row, const std::vector<float>& norm) const {
    const float* in = qkv.data() + ((c.heads + 2 * c.kv_heads) * c.sequence + row) * c.dim;
    double squares = 0;
    for (int i = 0; i < c.dim; ++i) squares += static_cast<double>(in[i]) * static_cast<double>(in[i]);
    const double scale = 1 / std::sqrt(squares / c.dim + 1e-5);
    const auto value = [&](int i) {
      const auto v = static_cast<double>(in[i]);
      return c.normed ? v * scale * static_cast<double>(norm[static_cast<std::size_t>(i)]) : v;
    };
    std::vector<double> out(static_cast<std::size_t>(c.dim));
    for (int i = 0; i < c.dim / 2; ++i) {
      const auto at = static_cast<std::size_t>(c.position * c.dim + 2 * i);
      const double cosine = static_cast<double>(rope[at]), sine = static_cast<double>(rope[at + 1]);
      out[static_cast<std::size_t>(i)] = value(i) * cosine - value(i + c.dim / 2) * sine;
      out[static_cast<std::size_t>(i + c.dim / 2)] = value(i + c.dim / 2) * cosine + value(i) * sine;
    }
    return out;
  }

  /// The cache as the step leaves it: the step's own key and value are in it by now.
  double cached(const std::vector<Half>& cache, std::size_t at, int kv) const {
    const auto head = static_cast<std::size_t>((c.sequence * c.kv_heads + kv) * room * c.dim);
    return static_cast<double>(to_float(cache[head + at]));
  }

  std::vector<double> attend(int head) const {
    const int kv = head / (c.heads / c.kv_heads);
    const std::vector<double> query = turned(head, q_norm);
    std::vector<double> weights, out(static_cast<std::size_t>(c.dim));
    double largest = -1e300, sum = 0;
    const int first = c.window && c.position >= c.window ? c.position - c.window + 1 : 0;
    for (int p = first; p <= c.position; ++p) {
      double score = 0;
      for (int i = 0; i < c.dim; ++i)
        score += query[static_cast<std::size_t>(i)] * cached(keys, TunedCache::key_at(p, i, c.dim), kv);
      weights.push_back(score / std::sqrt(c.dim));
      largest = std::max(largest, weights.back());
    }
    for (double& weight : weights) sum += weight = std::exp(weight - largest);
    for (int p = first; p <= c.position; ++p)
      for (int i = 0; i < c.dim; ++i)
        out[static_cast<std::size_t>(i)] +=
            weights[static_cast<std::size_t>(p - first)] / sum * cached(values, TunedCache::value_at(p, i, c.dim), kv);
    return out;
  }

  std::vector<float> results() {
    std::vector<float> all;
    for (int i = 0; i < c.heads * c.dim; ++i) all.push_back(unpacked(packed, c.heads * c.dim, c.sequence, i));
    return all;
  }

  double error() {
    Errors errors;
    const std::vector<float> got = results();
    for (int head = 0; head < c.heads; ++head) {
      const std::vector<double> wanted = attend(head);
      for (int i = 0; i < c.dim; ++i)
        errors.add(static_cast<double>(got[static_cast<std::size_t>(head * c.dim + i)]), wanted[static_cast<std::size_t>(i)]);
    }
    return errors.relative();
  }

  Case c;
  Numbers numbers;
  int room;
  std::vector<float> qkv, rope, q_norm, k_norm;
  std::vector<Stamped> made, packed, parts;
  std::vector<Half> keys, values;
  std::vector<StepState> states;
};

const std::vector<Case> kCases{{64, 8, 2, 4, 0},
                               {64, 8, 2, 4, 15},
                               {64, 8, 2, 4, 16},
                               {64, 8, 2, 4, 127},
                               {64, 8, 2, 4, 128},
                               {64, 8, 2, 8, 300},
                               {64, 4, 1, 4, 900},
                               {32, 8, 2, 4, 200, true},
                               {128, 4, 2, 2, 150, true},
                               {128, 4, 1, 8, 1000},
                               {64, 6, 2, 2, 140},
                               {64, 4, 2, 2, 1500},
                               {64, 8, 2, 4, 2100},
                               {128, 4, 1, 8, 1300},
                               {32, 3, 1, 64, 12000},
                               {128, 3, 1, 2, 700, true},
                               {64, 4, 2, 2, 140, true, 1, 2},
                               {64, 4, 1, 2, 1279},
                               {64, 4, 1, 2, 1280},
                               {32, 4, 1, 2, 1200, true},
                               {128, 4, 1, 1, 255},
                               {64, 10, 2, 2, 140},
                               {64, 8, 1, 2, 1200},
                               {128, 14, 2, 8, 1000, true},
                               {32, 9, 1, 1, 100},
                               {80, 1, 1, 1, 0, true},
                               {80, 2, 2, 2, 130},
                               {80, 6, 2, 2, 300, true},
                               {80, 7, 1, 4, 1300},
                               {80, 4, 2, 2, 1100, true, 1, 2},
                               {96, 3, 3, 1, 17, true},
                               {96, 6, 2, 4, 1200},
                               {96, 5, 1, 2, 640, true},
                               {256, 1, 1, 1, 0},
                               {256, 2, 1, 2, 1100, true},
                               {256, 3, 1, 1, 129},
                               {256, 10, 2, 4, 1500, true},
                               {64, 8, 2, 4, 200, false, 0, 1, 37},
                               {64, 4, 1, 2, 1500, false, 0, 1, 1},
                               {64, 4, 2, 4, 2100, true, 0, 1, 1100},
                               {128, 4, 1, 8, 1300, false, 0, 1, 1290},
                               {128, 6, 1, 2, 400, true, 0, 1, 129},
                               {80, 4, 1, 2, 1500, false, 0, 1, 1450},
                               {32, 8, 2, 1, 300, true, 0, 1, 16},
                               {256, 4, 2, 2, 90, false, 0, 1, 91}};

}  // namespace

TEST_CASE("tuned: attention, head sizes, groups of heads, contexts and parts") {
  for (const Case& c : kCases) {
    Attention attention(c);
    const std::vector<Half> before = attention.keys;
    attention.run_all();
    const std::vector<float> once = attention.results();
    std::fill(attention.parts.begin(), attention.parts.end(), Stamped{0});
    attention.run_all(true);  // in another order the bits are the same
    CHECK(attention.results() == once);
    attention.keys = before;
    std::fill(attention.parts.begin(), attention.parts.end(), Stamped{0});
    attention.run_all(false, 1 + (c.position & 1));  // and so they are of tasks of fewer heads
    CHECK(attention.results() == once);
    INFO("head size " << c.dim << ", heads " << c.heads << "/" << c.kv_heads << ", position " << c.position);
    CHECK(attention.error() < 5e-4);  // results are rounded to halves
    std::size_t changed = 0;
    for (std::size_t i = 0; i < before.size(); ++i) changed += before[i].bits != attention.keys[i].bits;
    CHECK(changed <= static_cast<std::size_t>(c.kv_heads * c.dim));
    CHECK(changed > static_cast<std::size_t>(c.kv_heads * c.dim / 2));
  }
}

TEST_CASE("tuned: heads of a group that do not fit one task go to several, if there are as many workers") {
  const auto slices = [](int heads, int kv_heads, int workers, int sequences) {
    Config config{};
    config.num_attention_heads = heads;
    config.num_key_value_heads = kv_heads;
    std::vector<std::pair<int, int>> all;
    for (const HeadSlice& slice : head_slices(config, workers, sequences)) all.emplace_back(slice.first, slice.count);
    return all;
  };
  using Slices = std::vector<std::pair<int, int>>;
  CHECK(slices(8, 2, 132, 1) == Slices{{0, 4}, {4, 4}});
  CHECK(slices(12, 2, 132, 1) == Slices{{0, 3}, {3, 3}, {6, 3}, {9, 3}});
  CHECK(slices(7, 1, 132, 8) == Slices{{0, 3}, {3, 4}});
  CHECK(slices(9, 1, 3, 1) == Slices{{0, 3}, {3, 3}, {6, 3}});
  CHECK(slices(9, 1, 2, 1) == Slices{{0, 9}});
  CHECK(slices(64, 8, 127, 8).size() == 8);
  CHECK(slices(64, 8, 128, 8).size() == 16);
}

TEST_CASE("tuned: the cache gets the step's key, rotated, and its value") {
  Attention attention({64, 8, 2, 4, 37, true});
  attention.run_all();
  for (int kv = 0; kv < 2; ++kv) {
    const std::vector<double> key = attention.turned(8 + kv, attention.k_norm);
    for (int i = 0; i < 64; ++i) {
      const auto at = static_cast<std::size_t>(i);
      CHECK(attention.cached(attention.keys, TunedCache::key_at(37, i, 64), kv) ==
            Approx(key[at]).epsilon(0.0005).margin(1e-6));
      const auto value = static_cast<double>(attention.qkv[static_cast<std::size_t>((10 + kv) * 64 + i)]);
      CHECK(attention.cached(attention.values, TunedCache::value_at(37, i, 64), kv) ==
            Approx(value).epsilon(0.0005).margin(1e-6));
    }
  }
}

TEST_CASE("half precision: every number there and back, halves between them to even, too large ones to the largest") {
  for (std::uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const float value = from_half(bits);
    REQUIRE(round_to_half(value) == bits);
    REQUIRE(round_to_half(-value) == (bits | 0x8000u));
    REQUIRE(value == flywheel::testing::HalfPair::low(bits));
    if (bits == 0x7bff) break;
    const float next = from_half(bits + 1), between = value + (next - value) / 2;
    REQUIRE(round_to_half(between) == bits + (bits & 1));
    REQUIRE(round_to_half(std::nextafter(between, value)) == bits);
    REQUIRE(round_to_half(std::nextafter(between, next)) == bits + 1);
  }
  CHECK(from_half(round_to_half(1e9f)) == 65504.f);
  CHECK(from_half(round_to_half(-1e9f)) == -65504.f);
}

TEST_CASE("tuned: parts of a context: as many as have positions, for all positions") {
  for (const int splits : {1, 2, 16, 64}) {
    Partials partials{};
    partials.splits = static_cast<std::int16_t>(splits);
    for (std::uint32_t position = 0; position < 140000; ++position) {
      const int share = partials.share(position), used = Partials::used(position, share);
      REQUIRE(used == static_cast<int>(position) / share + 1);
      REQUIRE(used <= splits);
    }
  }
}

// A word is written once in a pass: what two layers leave must not share a byte.
TEST_CASE("tuned: each layer's parts have a memory of their own") {
  Config config;
  config.hidden_size = config.intermediate_size = config.vocab_size = 512;
  config.max_position_embeddings = 2048;
  config.num_hidden_layers = 3;
  config.num_attention_heads = 6;
  config.num_key_value_heads = 2;
  config.head_dim = 32;
  Runtime runtime = start_portable_runtime({.target = Target::cpu, .workers = 7});
  CHECK(TunedMemory(runtime, config, kAlone, 1).splits == 1);
  const TunedMemory memory(runtime, config, 2048, 1);
  const Stamped* free = memory.parts.data();
  for (std::size_t layer = 0; layer < 3; ++layer) {
    const Partials partials = memory.partials(config, layer);
    CHECK(partials.splits == 2);
    CHECK(partials.memory == free);
    free += partials.words();
  }
  CHECK(free == memory.parts.data() + memory.parts.size());
}

// Words are stored and loaded two at a time. SmolLM-135M has 9 heads of 64, SmolLM-360M 15.
TEST_CASE("tuned: each layer's parts begin where two words can be loaded at once") {
  std::uint32_t misplaced = 0;
  for (const int heads : {1, 3, 9, 15})
    for (const int dim : {32, 64, 80, 96, 128, 256})
      for (const int sequences : {1, 2}) {
        Partials partials{};
        partials.heads = static_cast<std::int16_t>(heads), partials.head_dim = static_cast<std::int16_t>(dim);
        partials.splits = 2, partials.sequences = static_cast<std::int16_t>(sequences);
        misplaced += partials.words() * sizeof(Stamped) % alignof(StampedPair) != 0;
      }
  CHECK(misplaced == 0);
}

TEST_CASE("a place in the cache belongs to one position and dimension") {
  for (const int dim : {32, 64, 80, 96, 128, 256}) {
    std::vector<int> keys(static_cast<std::size_t>(48 * dim)), values = keys;
    for (int p = 0; p < 48; ++p)
      for (int i = 0; i < dim; ++i) ++keys.at(TunedCache::key_at(p, i, dim)), ++values.at(TunedCache::value_at(p, i, dim));
    CHECK(std::all_of(keys.begin(), keys.end(), [](int n) { return n == 1; }));
    CHECK(std::all_of(values.begin(), values.end(), [](int n) { return n == 1; }));
  }
}

}  // namespace llama
