// What texts must come to that share a pool of blocks, wherever they are written: on CPU workers and on an emulated GPU.
#pragma once

#include "llama_crowd_support.hpp"

namespace llama {

/// Nobody has a block.
inline void check_all_free(TunedGenerator& generator) {
  CHECK(generator.memory().tables.free_blocks() == generator.memory().tables.blocks());
}

/// Texts that want more blocks together than there are come to what each is alone, with a cache of its own. Tells how often one
/// of them was paused. `size`: its texts are these.
inline std::size_t check_pool(const StartTuned& start, const std::filesystem::path& folder, const CrowdSize& size,
                              std::int64_t pool, const std::vector<Request>& requests) {
  const Config config = read_config(folder);
  const int context = size.prompt + size.tokens;
  Runtime runtime = start(config, context);
  Texts expected;
  {
    TunedGenerator each(runtime, config, load_weights(runtime, config, folder), context, size.places_of_each, size.way);
    expected = write_alone(each, requests);
  }
  TunedGenerator generator(runtime, config, load_weights(runtime, config, folder), context, size.places, size.way, pool);
  const Told told = tell(generator, requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    INFO("text " << i << ", a prompt of " << requests[i].prompt.size() << ", " << requests[i].tokens << " tokens to write");
    CHECK(told.texts[i] == expected[i]);
  }
  check_all_free(generator);
  return generator.pauses();
}

/// Of random lengths.
inline std::size_t check_pool(const StartTuned& start, const std::filesystem::path& folder, const CrowdSize& size,
                              std::int64_t pool) {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed << ", " << size.texts << " texts, " << size.places << " places, a pool of " << pool);
  return check_pool(start, folder, size, pool, RandomRequests(read_config(folder), seed).several(size));
}

/// Two texts grow from one block to three where there are four: the younger one is paused. A third one, whose prompt has two,
/// joins when one ends.
inline void check_pause(const StartTuned& start, const std::filesystem::path& folder, PromptWay way) {
  RandomRequests some(read_config(folder), 13);
  const CrowdSize size{.texts = 3, .places = 2, .prompt = 100, .tokens = 70, .places_of_each = 2, .way = way};
  std::vector<Request> requests = some.several(size);
  for (std::size_t i = 0; i < 2; ++i) {
    requests[i].prompt.resize(62, 5 + static_cast<std::uint32_t>(i));
    requests[i].tokens = 70;
  }
  requests[2].prompt.resize(100, 7);
  requests[2].tokens = 3;
  CHECK(check_pool(start, folder, size, 4 * kBlockPositions, requests) > 0);
}

/// Of two texts that the pool has room for one of, the second begins when the first has ended, though there are places.
inline void check_joins_wait(const StartTuned& start, const std::filesystem::path& folder, PromptWay way) {
  const Config config = read_config(folder);
  constexpr int kContext = 2 * kBlockPositions;
  Runtime runtime = start(config, kContext);
  TunedGenerator generator(runtime, config, load_weights(runtime, config, folder), kContext, 4, way, kContext);
  RandomRequests some(config, 9);
  std::vector<Request> requests = some.several({.texts = 3, .places = 4, .prompt = 1, .tokens = 1});
  for (Request& request : requests) {
    while (request.prompt.size() < kBlockPositions + 6) request.prompt.push_back(some.up_to(config.vocab_size) - 1);
    request.tokens = 8;
  }
  const Texts alone = write_alone(generator, requests);
  Texts texts(requests.size());
  generator.generate(requests, [&](std::size_t text, std::uint32_t token) {
    texts[text].push_back(token);
    for (std::size_t before = 0; before < text; ++before) CHECK(texts[before].size() == 8);
    CHECK(generator.memory().tables.free_blocks() == 0);
  });
  CHECK(texts == alone);
  check_all_free(generator);
}

/// What a callback throws while another text's prompt is read gives all blocks back, and the next texts are whole.
inline void check_cancel_in_prompt(const StartTuned& start, const std::filesystem::path& folder, PromptWay way, int length) {
  const Config config = read_config(folder);
  const LongComesLate late(config, length);
  Runtime runtime = start(config, length + 8);
  TunedGenerator generator(runtime, config, load_weights(runtime, config, folder), length + 8, 2, way,
                           length + 8 + kBlockPositions);
  const Texts alone = write_alone(generator, late.requests);
  for (const std::size_t at : {3u, 4u}) {  // tokens; the long prompt has the first text's place after its two
    std::size_t seen = 0;
    const auto throw_there = [&](std::size_t, std::uint32_t) {
      if (++seen == at) throw std::out_of_range("enough");
    };
    CHECK_THROWS_AS(generator.generate(late.requests, throw_there), std::out_of_range);
    check_all_free(generator);
  }
  CHECK(write_texts(generator, late.requests) == alone);
}

}  // namespace llama
