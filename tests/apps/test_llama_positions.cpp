// Positions that a measurement or a check takes: sums of 32-bit numbers do not wrap around, and what is refused is named.
#include <limits>

#include "catch.hpp"
#include "llama_run_support.hpp"
#include "llama_small_config.hpp"

#include "apps/llama/bench/bench.hpp"
#include "apps/llama/bench/check.hpp"
#include "apps/llama/bench/check_context.hpp"
#include "apps/llama/bench/positions.hpp"
#include "apps/llama/bench/soak.hpp"
#include "apps/llama/tuned/generator.hpp"
#include "apps/llama/tuned/start.hpp"

namespace llama {
namespace {

using testing::check_says;

constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();

Config tiny(int positions = 512) {
  Config config = small_config();
  config.num_hidden_layers = 1;
  config.max_position_embeddings = positions;
  return config;
}

BenchModel model() { return {"tiny", tiny()}; }
Options on_cpu() { return {.target = Target::cpu, .workers = 2}; }

BenchRequest bench_request() {
  BenchRequest request;
  request.tokens = 8;
  request.runs = 1;
  request.options = on_cpu();
  return request;
}

std::string refusal_of(const BenchRequest& request) {
  return request_error_of([&] { run_bench(model(), request); });
}

}  // namespace

TEST_CASE("positions: bench") {
  BenchRequest request = bench_request();
  for (const std::uint32_t start : {kMost, kMost - 5, 505u}) {
    request.contexts = {start};
    check_says(refusal_of(request),
               {"--context " + std::to_string(start) + " and --tokens 8", std::to_string(start + 8ull), "512"});
  }
  request.contexts = {10};
  request.tokens = kMost - 5;
  check_says(refusal_of(request), {"--context 10 and --tokens 4294967290", "4294967300 positions"});
  request = bench_request();
  request.portable_check = kMost - 5;
  check_says(refusal_of(request), {"--portable-check 4294967290", "512"});
  request = bench_request();
  request.portable_check = 4;
  request.portable_contexts = {3, kMost - 1};
  check_says(refusal_of(request), {"--portable-context 4294967294 and 4 steps", "4294967298 positions"});
}

TEST_CASE("positions: soak") {
  const SoakRequest request{.tokens = 40, .start = kMost - 5, .length = 10};
  check_says(request_error_of([&] { soak(model(), request, on_cpu(), [](const std::string&) {}); }),
             {"--context 4294967290 and --length 10", "4294967300 positions"});
}

TEST_CASE("positions: the checks themselves") {
  check_says(request_error_of([] { check_against_portable(model(), 1, kMost, on_cpu()); }), {"--portable-check"});
  check_says(request_error_of([] { check_contexts(model(), {kMost - 1}, on_cpu()); }), {"--portable-context"});
}

TEST_CASE("positions: a run of the tuned decode") {
  Runtime runtime = start_tuned_runtime({.target = Target::cpu, .workers = 2, .scratch_bytes = 64u << 10});
  TunedGenerator generator(runtime, tiny(), model().weights(runtime), 64);
  generator.run(56, 8);
  for (const auto& [start, tokens] : {std::pair{57u, 8u}, std::pair{kMost - 5, 8u}, std::pair{8u, kMost - 5}})
    check_says(request_error_of([&] { generator.run(start, tokens); }),
               {std::to_string(tokens) + " tokens from position " + std::to_string(start), "context of 64"});
}

TEST_CASE("positions: bench starts where the model has room, if it is not told where") {
  CHECK(default_starts(tiny(2048), 256, "--tokens 256") == std::vector<std::uint32_t>{32, 1024});
  CHECK(default_starts(tiny(1280), 256, "--tokens 256") == std::vector<std::uint32_t>{32, 1024});
  CHECK(default_starts(tiny(1279), 256, "--tokens 256") == std::vector<std::uint32_t>{32});
  check_says(request_error_of([] { default_starts(tiny(100), 256, "--tokens 256"); }), {"--tokens 256", "288", "100"});
  const std::vector<DecodeTimes> all = measure_decode(model(), bench_request());
  REQUIRE(all.size() == 1);
  CHECK(all[0].context == 32);
}

TEST_CASE("bench: what cannot be written is found out before anything is measured") {
  const TempFolder folder;
  const std::string missing = (folder.path() / "none").string();
  for (auto [option, member] : {std::pair{"--trace", &BenchRequest::trace}, std::pair{"--schedule", &BenchRequest::schedule}}) {
    BenchRequest request = bench_request();
    request.*member = missing + "/file";
    check_says(refusal_of(request),
               {std::string(option) + " " + missing + "/file", "the folder " + missing + " does not exist"});
    request.*member = folder.path();
    check_says(refusal_of(request), {option, "is a folder"});
  }
}

TEST_CASE("bench: shapes of peers that there are no kernels for") {
  const std::pair<PeerShape, const char*> shapes[] = {
      {{0, 4}, "1 to 3"}, {{4, 4}, "1 to 3"}, {{-1, 0}, "1 to 3"}, {{1, -1}, "0 to 64"}, {{1, 65}, "0 to 64"}};
  for (const auto& [shape, range] : shapes) {
    BenchRequest request = bench_request();
    request.peer_shapes = {shape};
    check_says(refusal_of(request), {"--peer-shape", range});
  }
}

}  // namespace llama
