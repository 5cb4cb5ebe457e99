// `llama bench` and `llama soak` on CPU workers: random weights, what a step reads, a measurement of a tiny model from
// end to end, rows of results.
#include <unistd.h>
#include <cmath>
#include <fstream>

#include "catch.hpp"
#include "llama_small_config.hpp"

#include "apps/llama/bench/bench.hpp"
#include "apps/llama/bench/check.hpp"
#include "apps/llama/bench/mixed.hpp"
#include "apps/llama/bench/prompts.hpp"
#include "apps/llama/bench/random_weights.hpp"
#include "apps/llama/bench/soak.hpp"
#include "apps/llama/checkpoint/error.hpp"
#include "apps/llama/checkpoint/shapes.hpp"
#include "apps/llama/decode/fill_random.cuh"
#include "apps/llama/decode/request.hpp"
#include "apps/llama/portable/start.hpp"
#include "apps/llama/tuned/options.hpp"
#include "apps/llama/tuned/start.hpp"
#include "apps/llama/tuned/step_bytes.hpp"

namespace llama {
namespace {

Config tiny(Family family, bool tied) {
  Config config = small_config();
  config.family = family;
  config.vocab_size = 500;
  config.tie_word_embeddings = tied;
  return config;
}

Options on_cpu(std::uint32_t workers) { return {.target = Target::cpu, .workers = workers}; }
void quiet(const std::string&) {}
BenchModel tiny_model(Family family = Family::kLlama, bool tied = true) { return {"tiny", tiny(family, tied)}; }

std::vector<float> values_of(const MatrixBuffer& m) {
  const std::vector<unsigned char> bytes = m.bytes.read();
  std::vector<float> values(bytes.size() / sizeof(Bf16));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = to_float(reinterpret_cast<const Bf16*>(bytes.data())[i]);
  return values;
}

struct Moments {
  explicit Moments(const std::vector<float>& values) {
    for (const float value : values) mean += static_cast<double>(value) / static_cast<double>(values.size());
    for (const float value : values) deviation += std::pow(static_cast<double>(value) - mean, 2);
    deviation = std::sqrt(deviation / static_cast<double>(values.size()));
  }
  double mean = 0, deviation = 0;
};

/// Everything, in one line of numbers.
std::vector<float> all_values(const Weights& weights) {
  std::vector<float> all = values_of(weights.embedding);
  const auto add = [&](const std::vector<float>& values) { all.insert(all.end(), values.begin(), values.end()); };
  if (weights.head.rows) add(values_of(weights.head));
  add(weights.final_norm.read());
  for (const LayerWeights& w : weights.layers) {
    for (const MatrixBuffer* m : {&w.qkv, &w.output, &w.gate, &w.up, &w.down}) add(values_of(*m));
    for (const Buffer<float>* norm : {&w.attention_norm, &w.mlp_norm, &w.query_norm, &w.key_norm, &w.qkv_bias})
      if (norm->size()) add(norm->read());
  }
  return all;
}

std::vector<float> made_by(std::uint32_t workers, std::uint64_t seed, const Config& config) {
  Runtime runtime = start_portable_runtime(on_cpu(workers));
  return all_values(random_weights(runtime, config, seed));
}

/// A folder of the test's own.
struct Folder {
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path operator/(const char* name) const { return path / name; }

  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("flywheel_llama_bench_" + std::to_string(getpid()));
};

std::vector<Row> rows_in(const std::filesystem::path& file) {
  std::vector<Row> rows;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) rows.push_back(measure::from_json_line(line));
  return rows;
}

BenchRequest tiny_request() {
  BenchRequest request;
  request.contexts = {0, 40};
  request.tokens = 6;
  request.runs = 2;
  request.options = on_cpu(3);
  return request;
}

DecodeTimes made_up_times() {
  DecodeTimes times;
  times.context = 32;
  times.step_bytes = 2.4e9;
  times.ours = {0.61, 0.62, 0.60};
  times.drawn = {0.63};
  times.peers = {Samples{0.9, 0.9, 0.9}, Samples{0.8, 0.8, 0.8}, Samples{0.7, 0.72, 0.71}};
  times.read_rates = {4600, 4800, 4700};
  return times;
}

}  // namespace

TEST_CASE("random weights: the same on any number of workers and in either runtime, others for another seed") {
  for (const Family family : {Family::kLlama, Family::kQwen2, Family::kQwen3}) {
    const Config config = tiny(family, family == Family::kLlama);
    const std::vector<float> one = made_by(1, 5, config);
    CHECK(one.size() == static_cast<std::size_t>(parameter_count(config)));
    CHECK(one == made_by(3, 5, config));
    CHECK(one != made_by(3, 6, config));
    Runtime tuned = start_tuned_runtime(on_cpu(2));
    CHECK(one == all_values(random_weights(tuned, config, 5)));
  }
}

TEST_CASE("random weights: matrices of deviation 0.02, logits of about 1, norms around 1, no two alike") {
  Runtime runtime = start_portable_runtime(on_cpu(2));
  Config config = tiny(Family::kLlama, false);
  config.vocab_size = 4000;
  const Weights weights = random_weights(runtime, config, 9);
  const std::vector<float> gate = values_of(weights.layers[0].gate), head = values_of(weights.head);
  CHECK(std::abs(Moments(gate).mean) < 1e-3);
  CHECK(Moments(gate).deviation == Approx(0.02).epsilon(0.03));
  CHECK(Moments(head).deviation == Approx(1 / 8.).epsilon(0.03));
  CHECK(Moments(weights.final_norm.read()).mean == Approx(1).epsilon(0.02));
  CHECK(gate != values_of(weights.layers[0].up));
  CHECK(gate != values_of(weights.layers[1].gate));
  CHECK(head != values_of(weights.embedding));
  CHECK(weights.layers[1].qkv.rows == 4 * 32 + 2 * 2 * 32);
  CHECK(weights.layers[1].down.matrix.columns == 160);
  CHECK(weights.layers[1].qkv_bias.size() == 0);
}

TEST_CASE("random weights: biases of deviation 0.5 where the family has them, beside the same matrices") {
  Runtime runtime = start_portable_runtime(on_cpu(2));
  const Config config = tiny(Family::kQwen2, false);
  const Weights weights = random_weights(runtime, config, 9);
  const std::vector<float> bias = weights.layers[1].qkv_bias.read();
  CHECK(bias.size() == static_cast<std::size_t>(config.qkv_size()));
  CHECK(std::abs(Moments(bias).mean) < 0.15);
  CHECK(Moments(bias).deviation == Approx(0.5).epsilon(0.2));
  CHECK(bias != weights.layers[0].qkv_bias.read());
  CHECK(values_of(random_weights(runtime, tiny(Family::kLlama, false), 9).layers[0].qkv) == values_of(weights.layers[0].qkv));
}

TEST_CASE("random weights: the value at an index does not depend on the task that writes it") {
  Runtime runtime = start_portable_runtime(on_cpu(2));
  auto whole = runtime.allocate<float>(1000), parts = runtime.allocate<float>(1000);
  Graph graph;
  graph.add(FillRandom{whole.data(), 0, 3, 1000, FillRandom::kFloat, 2.f, 0.5f});
  graph.add(FillRandom{parts.data(), 0, 3, 300, FillRandom::kFloat, 2.f, 0.5f});
  graph.add(FillRandom{parts.data() + 300, 300, 3, 700, FillRandom::kFloat, 2.f, 0.5f});
  runtime.submit(runtime.load(graph)).wait();
  CHECK(whole.read() == parts.read());
  CHECK(Moments(whole.read()).deviation == Approx(0.5).epsilon(0.1));
}

TEST_CASE("start: the heap has room for weights, streams and caches, so it need not grow") {
  const Config& config = *find_shape("llama-3.2-1b");
  const Options one = tuned_options(config, {.context = 1024}, on_cpu(1));
  const Options two = tuned_options(config, {.context = 1024, .decodes = 2}, on_cpu(1));
  CHECK(one.heap_bytes > weight_bytes(config) + stream_bytes(config) + 1024 * position_bytes(config));
  CHECK(two.heap_bytes > one.heap_bytes + stream_bytes(config));
  CHECK(one.heap_bytes < 3 * weight_bytes(config));
  CHECK(one.target == Target::cpu);
  // An operand stream of a matrix of 64 columns has 256, and steps for four tiles.
  CHECK(stream_bytes(tiny(Family::kLlama, true)) > 2 * weight_bytes(tiny(Family::kLlama, true)));
}

TEST_CASE("check: the tuned decode agrees with the portable one and repeats itself bit by bit") {
  for (const Family family : {Family::kLlama, Family::kQwen2, Family::kQwen3}) {
    for (const int texts : {1, 2, 4, 8}) {
      const BenchModel model = tiny_model(family, family == Family::kQwen3);
      const CheckResult result = check_against_portable(model, texts, 20, on_cpu(3));
      INFO("worst " << result.worst << " of " << texts << " texts");
      CHECK(result.passed());
      CHECK(result.differs == "");
      CHECK(result.worst < 1e-2);
      CHECK(result.worst > 0);  // a cache of halves cannot be exact
    }
  }
}

TEST_CASE("check: it fails where it should") {
  CHECK(relative_error({3, 4}, {3, 4}) == 0);
  CHECK(relative_error({3, 5}, {3, 4}) == Approx(0.2));
  CHECK(std::isinf(relative_error({3}, {3, 4})));
  CHECK(std::isinf(relative_error({3, NAN}, {3, 4})));
  CHECK_FALSE(CheckResult{.worst = 0.02, .differs = ""}.passed());
  CHECK_FALSE(CheckResult{.worst = 0.001, .differs = "position 3"}.passed());
  CHECK_THROWS_AS(check_against_portable(tiny_model(), 1, 0, on_cpu(1)), RequestError);
  CHECK_THROWS_AS(check_against_portable(tiny_model(), 65, 2, on_cpu(1)), RequestError);
}

TEST_CASE("bench: a tiny model from end to end on CPU workers") {
  const Folder folder;
  BenchRequest request = tiny_request();
  request.portable_check = 5;
  request.out = folder / "cpu.json";
  request.schedule = folder / "schedule.txt";
  request.trace = folder / "trace.json";
  REQUIRE(run_bench(tiny_model(), request));
  const std::vector<Row> rows = rows_in(request.out);
  REQUIRE(rows.size() == 4);  // no peers and no limit without a GPU
  CHECK((rows[0].name == "decode.tiny.b1.c0" && rows[1].name == "decode.tiny.b1.c0.drawn"));
  CHECK((rows[2].name == "decode.tiny.b1.c40" && rows[3].name == "decode.tiny.b1.c40.drawn"));
  CHECK(rows[0].unit == "ms");
  CHECK(rows[0].value > 0);
  CHECK(rows[0].peer.empty());
  CHECK(std::filesystem::file_size(request.schedule) > 0);
  CHECK(std::filesystem::file_size(request.trace) > 0);
}

TEST_CASE("bench: several texts, and the bytes of the positions in between") {
  BenchRequest request = tiny_request();
  request.batch = 4;
  const std::vector<DecodeTimes> all = measure_decode(tiny_model(), request);
  REQUIRE(all.size() == 2);
  CHECK((all[1].ours.size() == 2 && all[1].drawn.size() == 2));
  const Config config = tiny(Family::kLlama, true);
  // Six steps from position 40 read 41, 42, ... 46 positions.
  CHECK(all[1].step_bytes ==
        Approx(static_cast<double>(weight_bytes(config)) + 4 * 43.5 * static_cast<double>(position_bytes(config))));
}

TEST_CASE("bench: texts drawn at random have room, and are the same for the same seed") {
  for (const int context : {2, 7, 100, 2400, 131072}) {
    const std::vector<Request> requests = draw_texts(300, context, 50, 7), again = draw_texts(300, context, 50, 7);
    CHECK_NOTHROW(check_requests(requests, tiny(Family::kLlama, true), context));
    for (std::size_t i = 0; i < requests.size(); ++i) {
      REQUIRE(requests[i].prompt == again[i].prompt);
      REQUIRE(requests[i].tokens == again[i].tokens);
    }
  }
  CHECK(draw_texts(1, 2400, 50, 7)[0].prompt != draw_texts(1, 2400, 50, 8)[0].prompt);
}

TEST_CASE("bench: texts that come and go, and their rows") {
  const BenchModel model = tiny_model();
  Runtime runtime = start_tuned_runtime(tuned_options(model.config, {.context = 120, .texts = 4}, on_cpu(2)));
  TunedGenerator generator(runtime, model.config, model.weights(runtime), 120, 4);
  const MixedTimes times = measure_mixed(generator, 12, 2);
  CHECK(times.places == 4);
  CHECK(times.prompt == 119);
  for (const Samples* samples : {&times.written, &times.endless, &times.usual, &times.slowest, &times.alone, &times.beside}) {
    REQUIRE(samples->size() == 2);
    CHECK(std::ranges::all_of(*samples, [](double value) { return value > 0; }));
  }
  const std::vector<Row> rows = mixed_rows("tiny",
                                           {.texts = 1000,
                                            .places = 64,
                                            .prompt = 2048,
                                            .written = {10, 30, 20},
                                            .endless = {40},
                                            .usual = {2},
                                            .slowest = {5},
                                            .alone = {8},
                                            .beside = {12}},
                                           {"nvidia-h200", "580", "2026-11-21", "abc"});
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].name == "mixed.tiny");
  CHECK(rows[0].value == 20);
  CHECK(rows[0].peer_value == 40);
  CHECK(rows[1].name == "mixed.tiny.slowest_step");
  CHECK(rows[1].peer_value == 2);
  CHECK(rows[2].name == "mixed.tiny.prompt");
  CHECK(mixed_table("tiny", times).find("mixed.tiny.b4: 12 texts") != std::string::npos);
  CHECK(mixed_rows("tiny", {}, {}).empty());
}

TEST_CASE("bench: prompts of several lengths, and their rows") {
  const Config config = tiny(Family::kLlama, true);
  Runtime runtime = start_tuned_runtime(tuned_options(config, {.context = 64}, on_cpu(2)));
  TunedGenerator generator(runtime, config, tiny_model().weights(runtime), 64);
  const std::vector<PromptTimes> all = measure_prompts(generator, {9, 64}, 3);
  REQUIRE(all.size() == 2);
  CHECK((all[1].chunks.size() == 3 && all[1].token_by_token.size() == 3));
  const std::vector<Row> rows = prompt_rows("tiny", {{128, {3, 1, 2}, {9, 8, 7}}}, {"nvidia-h200", "580", "2026-11-21", "abc"});
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].name == "prefill.tiny.p128");
  CHECK((rows[0].value == 2 && rows[0].unit == "ms"));
  CHECK((rows[0].peer == "the decode, token by token" && rows[0].peer_value == 8));
  CHECK(prompt_table("tiny", all).find("prefill.tiny.p64") != std::string::npos);
}

TEST_CASE("bench: the trace of a prompt") {
  const Folder folder;
  BenchRequest request = tiny_request();
  request.runs = 0;
  request.prompts = {9, 40};
  request.prompt_trace = folder / "prompt.json";
  REQUIRE(run_bench(tiny_model(), request));
  CHECK(std::filesystem::file_size(request.prompt_trace) > 0);
  request.prompts.clear();
  CHECK_THROWS_AS(run_bench(tiny_model(), request), RequestError);
}

TEST_CASE("bench: requests that cannot be served say so") {
  BenchRequest request = tiny_request();
  request.prompts = {513};
  CHECK_THROWS_AS(run_bench(tiny_model(), request), RequestError);
  request = tiny_request();
  request.contexts = {508};
  CHECK_THROWS_AS(run_bench(tiny_model(), request), RequestError);
  request = tiny_request();
  request.out = "results.txt";
  CHECK_THROWS_AS(run_bench(tiny_model(), request), RequestError);
  CHECK_THROWS_AS(find_bench_model("llama-9", {}), RequestError);
  CHECK_THROWS_AS(find_bench_model("", {}), RequestError);
  CHECK_THROWS_AS(find_bench_model("no-such-file.json", {}), ModelError);
  const BenchModel sizes = find_bench_model("apps/llama/data/shapes/custom-1536.json", {});
  CHECK(sizes.name == "custom-1536");
  CHECK(sizes.config.hidden_size == 1536);
  CHECK(sizes.config.key_value_size() == 256);
}

TEST_CASE("rows: names, units, limit and peer") {
  const std::vector<Row> rows = decode_rows("llama-3.2-1b", 1, {made_up_times()}, {"nvidia-h200", "580", "2026-11-21", "abc"});
  REQUIRE(rows.size() == 6);
  CHECK(rows[0].name == "decode.llama-3.2-1b.b1.c32");
  CHECK(rows[0].value == 0.61);
  CHECK(rows[0].p99 == 0.62);
  CHECK(rows[0].peer == "graph with programmatic dependent launch");
  CHECK(rows[0].peer_value == 0.71);
  CHECK(*rows[0].limit == Approx(2.4e9 / 4700 / 1e6).epsilon(1e-4));
  CHECK((rows[1].name == "decode.llama-3.2-1b.b1.c32.drawn" && rows[1].value == 0.63));
  CHECK(rows[2].name == "decode.llama-3.2-1b.b1.c32.stream");
  CHECK(rows[3].name == "decode.llama-3.2-1b.b1.c32.graph");
  CHECK(rows[4].name == "decode.llama-3.2-1b.b1.c32.graph_pdl");
  CHECK(rows[4].value == 0.71);
  CHECK(rows[5].name == "limit.read_hbm");
  CHECK(rows[5].value == 4700);
  CHECK(rows[5].unit == "GB/s");
  const std::string table = decode_table("llama-3.2-1b", 1, {made_up_times()});
  CHECK(table.find("83.7%") != std::string::npos);  // 2.4 GB / 4700 GB/s against 0.61 ms
  CHECK(table.find("1.16x") != std::string::npos);  // 0.71 against 0.61 ms
}

TEST_CASE("rows: those of the same name are replaced, others stay") {
  const Folder folder;
  const std::filesystem::path file = folder / "nvidia-h200.json";
  const measure::Stamp stamp{"nvidia-h200", "580", "2026-11-21", "abc"};
  DecodeTimes other = made_up_times(), again = made_up_times();
  other.context = 1024;
  write_rows(decode_rows("m", 1, {made_up_times(), other}, stamp), file);
  again.ours = {0.5, 0.5, 0.5};
  write_rows(decode_rows("m", 1, {again}, stamp), file);
  const std::vector<Row> rows = rows_in(file);
  REQUIRE(rows.size() == 11);
  CHECK(rows[0].name == "decode.m.b1.c32");
  CHECK(rows[0].value == 0.5);
  CHECK(rows[5].name == "decode.m.b1.c1024");
  CHECK(rows[5].value == 0.61);
}

TEST_CASE("soak: every run ends with the first one's logits") {
  const SoakResult result = soak(tiny_model(), {.tokens = 60, .start = 7, .length = 20}, on_cpu(3), quiet);
  CHECK(result.passed);
  CHECK(result.runs == 3);
  CHECK(result.tokens == 60);
  CHECK(describe(result).find("PASSED") != std::string::npos);
  const SoakResult other = soak(tiny_model(), {.tokens = 20, .start = 8, .length = 20}, on_cpu(2), quiet);
  CHECK(other.checksum != result.checksum);
  CHECK(describe(SoakResult{.passed = false}).find("FAILED") != std::string::npos);
  CHECK_THROWS_AS(soak(tiny_model(), {.tokens = 0}, on_cpu(1), quiet), RequestError);
  CHECK(checksum_of({}) == 0xcbf29ce484222325ull);
  CHECK(checksum_of({0.f}) == 0x4d25767f9dce13f5ull);  // of four zero bytes
  CHECK(checksum_of({1.f, 2.f}) != checksum_of({2.f, 1.f}));
}

}  // namespace llama
