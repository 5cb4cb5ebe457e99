// The pool of blocks that all texts take their cache from, on CPU workers.
#include "llama_pool_support.hpp"

#include <set>

#include "apps/llama/bench/random_weights.hpp"
#include "apps/llama/checkpoint/shapes.hpp"
#include "apps/llama/tuned/options.hpp"
#include "apps/llama/tuned/start.hpp"
#include "apps/llama/tuned/step_bytes.hpp"
#include "llama_small_config.hpp"
#include "support/fresh_seed.hpp"

namespace llama {
namespace {

const auto kFamily = family_folder("qwen3_heads64");

Runtime start_tuned(const Config& config, int context) {
  return start_tuned_runtime(tuned_options(config, {.context = context, .texts = 64}, {.target = Target::cpu, .workers = 2}));
}
Runtime start_small() { return start_tuned(small_config(), 512); }

/// All that a table may say: each block is one text's at most, and other entries name the idle block of their place.
void check_tables(const BlockTables& tables, const PoolSize& size, int places) {
  std::set<std::uint32_t> taken;
  std::size_t held = 0;
  for (std::size_t place = 0; place < static_cast<std::size_t>(places); ++place) {
    const auto mine = tables.of(place);
    held += mine.size();
    taken.insert(mine.begin(), mine.end());
    const std::uint32_t idle = static_cast<std::uint32_t>(place) % static_cast<std::uint32_t>(size.idle);
    for (int i = static_cast<int>(mine.size()); i < tables.entries(); ++i) REQUIRE(*(mine.data() + i) == idle);
  }
  REQUIRE(taken.size() == held);
  REQUIRE(held + static_cast<std::size_t>(tables.free_blocks()) == static_cast<std::size_t>(tables.blocks()));
  if (taken.empty()) return;
  REQUIRE(*taken.begin() >= static_cast<std::uint32_t>(size.idle));
  REQUIRE(*taken.rbegin() < static_cast<std::uint32_t>(size.all()));
}

}  // namespace

TEST_CASE("pool: texts grow and go at random, and no block is two texts' or lost") {
  Runtime runtime = start_small();
  std::mt19937 random(flywheel::testing::fresh_seed());
  const auto up_to = [&](int most) { return std::uniform_int_distribution<int>(1, most)(random); };
  for (const bool compiled : {true, false}) {
    const int places = 1 + up_to(15);
    const PoolSize size(up_to(2000), 8, places, compiled, up_to(4000));
    BlockTables tables(runtime, places, size);
    tables.clear();
    for (int i = 0; i < 20'000; ++i) {
      const auto place = static_cast<std::size_t>(up_to(places) - 1);
      if (up_to(4) == 1) tables.clear(place);
      const auto positions = static_cast<std::uint32_t>(up_to(size.entries * kBlockPositions));
      const int wanted = tables.wanted(place, positions), before = tables.free_blocks();
      CHECK(tables.grow(place, positions) == (wanted <= before));
      CHECK(tables.free_blocks() == (wanted <= before ? before - wanted : before));
      if (i % 100 == 0) check_tables(tables, size, places);
    }
    tables.clear();
    CHECK(tables.free_blocks() == tables.blocks());
  }
}

TEST_CASE("pool: one text has its blocks in order, however often it comes and goes") {
  Runtime runtime = start_small();
  const PoolSize size(1000, 8, 1, true, 0);
  BlockTables tables(runtime, 1, size);
  CHECK(size.idle == 0);
  CHECK(size.blocks == 16);
  for (const std::uint32_t positions : {1u, 640u, 65u, 1000u}) {
    tables.clear();
    for (std::uint32_t some = 1; some < positions; some += 63) REQUIRE(tables.grow(0, some));
    for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(tables.entries()); ++i) CHECK(*(tables.of(0).data() + i) == i);
    tables.clear(0);
    CHECK(tables.free_blocks() == size.blocks);
  }
}

TEST_CASE("pool: its size is what is asked for, in whole blocks, or a context for each place") {
  CHECK(PoolSize(100, 8, 4, true, 0).blocks == 8);
  CHECK(PoolSize(100, 8, 4, true, 0).idle == 4);
  CHECK(PoolSize(100, 8, 32, false, 0).idle == 1);
  CHECK(PoolSize(1000, 8, 4, true, 65).blocks == 2);
  CHECK(PoolSize(1000, 8, 4, true, 1'000'000).blocks == 64);
  CHECK(PoolSize(1000, 8, 1, true, 65).blocks == 3);
  CHECK(PoolSize(1000, 8, 1, true, 60).positions == 64);
  CHECK(PoolSize(1000, 8, 1, true, 60).blocks == 2);
  CHECK(PoolSize(1000, 8, 1, true, 60).entries == 2);
  CHECK(PoolSize(1000, 8, 4, true, 65).positions == 128);
  CHECK(PoolSize(100, 8, 4, true, 1000).positions == 100);
}

TEST_CASE("pool: where memory has no room for a context of each text, it takes what there is") {
  const Config& config = *find_shape("llama-3.2-1b");
  const TunedRoom room{.context = 4096, .texts = 64};
  const std::size_t all = std::size_t{140} << 30;
  CHECK(pool_within(config, room, all) == 64 * 4096);
  CHECK(pool_within(config, room, 0) == 4096);
  for (const std::size_t free_bytes : {std::size_t{8} << 30, std::size_t{10} << 30}) {
    TunedRoom some = room;
    some.pool = pool_within(config, room, free_bytes);
    CHECK(some.pool > 4096);
    CHECK(some.pool < 64 * 4096);
    CHECK(tuned_options(config, some, {.target = Target::cpu}).heap_bytes < free_bytes);
    some.pool += (std::int64_t{2} << 30) / static_cast<std::int64_t>(position_bytes(config));
    CHECK(tuned_options(config, some, {.target = Target::cpu}).heap_bytes > free_bytes);
  }
}

TEST_CASE("pool: where a text grows and there is no block, the youngest one is paused") {
  for (const PromptWay way : {PromptWay::chunks, PromptWay::products, PromptWay::token_by_token})
    check_pause(start_tuned, kFamily, way);
}

TEST_CASE("pool: texts that want more than there is are each what they are alone") {
  for (const int places : {2, 4, 8})
    check_pool(start_tuned, kFamily, {.texts = 16, .places = places, .prompt = 100, .tokens = 120}, 4 * kBlockPositions);
}

TEST_CASE("pool: of any size, for the steps of many texts, prompts by products, and none that reads them") {
  const int blocks = GENERATE(take(1, random(4, 12)));
  CrowdSize size{.texts = 34, .places = 32, .prompt = 60, .tokens = 80, .places_of_each = 32};
  check_pool(start_tuned, kFamily, size, blocks * kBlockPositions);
  size.places = size.places_of_each = 2;
  size.texts = 12;
  for (const PromptWay way : {PromptWay::products, PromptWay::token_by_token}) {
    size.way = way;
    check_pool(start_tuned, kFamily, size, 3 * kBlockPositions);
  }
}

TEST_CASE("pool: a full one keeps texts waiting that come") {
  for (const PromptWay way : {PromptWay::chunks, PromptWay::products}) check_joins_wait(start_tuned, kFamily, way);
}

TEST_CASE("pool: a call that ends in the middle of a prompt gives all blocks back") {
  for (const PromptWay way : {PromptWay::chunks, PromptWay::products}) check_cancel_in_prompt(start_tuned, kFamily, way, 150);
}

TEST_CASE("pool: ten thousand texts come and go, and nothing is lost") {
  Config config = small_config();
  config.num_hidden_layers = 1;
  Runtime runtime = start_tuned(config, 140);
  TunedGenerator generator(runtime, config, random_weights(runtime, config, 3), 140, 16, PromptWay::best, 5 * kBlockPositions);
  const CrowdSize size{.texts = 20, .places = 16, .prompt = 4, .tokens = 2};
  std::vector<Request> few = RandomRequests(config, 5).several(size);
  few[7].prompt.resize(70, 3);
  few[13].prompt.resize(130, 4);
  const Texts alone = write_alone(generator, few);
  std::vector<Request> all;
  for (int i = 0; i < 10'000; ++i) all.push_back(few[static_cast<std::size_t>(i) % few.size()]);
  const Told told = tell(generator, all);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < all.size(); ++i) wrong += told.texts[i] != alone[i % few.size()];
  CHECK(wrong == 0);
  check_all_free(generator);
}

TEST_CASE("pool: a text that it has no room for is refused, and one that has is written") {
  const Config config = read_config(kFamily);
  Runtime runtime = start_tuned(config, 500);
  for (const int places : {1, 4}) {
    TunedGenerator generator(runtime, config, load_weights(runtime, config, kFamily), 500, places, PromptWay::token_by_token,
                             2 * kBlockPositions);
    const auto error_of = [&](const std::vector<Request>& requests) {
      return request_error_of([&] { write_texts(generator, requests); });
    };
    const Request fits = undrawn(std::vector<std::uint32_t>(100, 3), 29), more = undrawn(fits.prompt, 30);
    CHECK(error_of({fits}).empty());
    CHECK(mentions(error_of({fits, more}), {"text 2 of 2", "129 positions", "prompt of 100", "has 128", "--pool"}));
    check_all_free(generator);
  }
}

TEST_CASE("pool: those who use the cache without a crowd have an even share of it each") {
  const Config config = read_config(kFamily);
  Runtime runtime = start_tuned(config, 200);
  TunedGenerator generator(runtime, config, load_weights(runtime, config, kFamily), 200, 2, PromptWay::chunks,
                           4 * kBlockPositions);
  CHECK(mentions(request_error_of([&] { generator.run(100, 29); }), {"128 positions for each of 2 texts", "not 129"}));
  generator.run(100, 28);
  const std::vector<std::uint32_t> prompt(129, 3);
  CHECK(mentions(request_error_of([&] { generator.read_prompts({{1}, prompt}); }), {"not 129"}));
  CHECK(mentions(request_error_of([&] { generator.logits_from({{0, 1}, {128, 1}}); }), {"not 129"}));
  const auto logits = generator.logits_of({{1, 2, 3}, {4, 5}});
  write_texts(generator, {undrawn({1, 2}, 70), undrawn({3}, 5)});
  CHECK(generator.logits_of({{1, 2, 3}, {4, 5}}) == logits);
}

}  // namespace llama
