// What more texts than places must come to, wherever they are written: on CPU workers, on an emulated GPU and on a GPU.
#pragma once

#include <numeric>
#include <random>

#include "apps/llama/tuned/prompt_way.hpp"
#include "llama_texts_support.hpp"
#include "llama_tuned_support.hpp"

namespace llama {

struct CrowdSize {
  int texts, places;
  int prompt, tokens;      // of a text, at most
  int places_of_each = 1;  // of the generator that writes each text alone
  PromptWay way = PromptWay::best;
};

class RandomRequests {
 public:
  RandomRequests(const Config& config, unsigned seed) : vocabulary_(config.vocab_size), engine_(seed) {}

  /// Greedy or drawn, from a prompt of any ids; it goes on beyond its end.
  Request operator()(const CrowdSize& size) {
    Request request{.prompt = {}, .tokens = up_to(size.tokens), .sampling = {}, .stop_at_end = false};
    for (std::uint32_t left = up_to(size.prompt); left > 0; --left) request.prompt.push_back(up_to(vocabulary_) - 1);
    if (up_to(2) == 1) request.sampling = {.temperature = 1, .top_p = 0.95f, .top_k = up_to(50), .seed = up_to(1000)};
    return request;
  }
  std::vector<Request> several(const CrowdSize& size) {
    std::vector<Request> all;
    for (int i = 0; i < size.texts; ++i) all.push_back((*this)(size));
    return all;
  }
  /// From 1 on.
  std::uint32_t up_to(int most) { return static_cast<std::uint32_t>(std::uniform_int_distribution<int>(1, most)(engine_)); }

 private:
  int vocabulary_;
  std::mt19937 engine_;
};

/// Each third text may end at a token that some text has in its middle.
inline std::vector<int> choose_ends(const Texts& texts) {
  std::vector<int> ends;
  for (std::size_t i = 0; i < texts.size(); i += std::max<std::size_t>(texts.size() / 3, 1))
    ends.push_back(static_cast<int>(texts[i][texts[i].size() / 2]));
  return ends;
}
inline bool may_end(std::size_t text) { return text % 3 == 0; }

/// Steps for which a text has its place, at most: one for each two passes over its prompt, and those that write it.
inline std::size_t steps_in_place(const Request& request, const std::vector<std::uint32_t>& text, int positions) {
  return request.prompt.size() / static_cast<std::size_t>(2 * positions) + 2 + text.size();
}

/// No place is left empty while a text waits for one: with the last text all that came before have had their steps. Prompts are
/// read one after the other, though: texts of many places wait for those before them.
inline std::size_t most_steps(const std::vector<Request>& requests, const Texts& texts, const Config& config, int places) {
  const int positions = prompt_positions(config, PromptWay::chunks);
  std::size_t all = 0, longest = 0, reading = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    all += steps_in_place(requests[i], texts[i], positions);
    longest = std::max(longest, steps_in_place(requests[i], texts[i], positions));
    reading += steps_in_place(requests[i], {}, positions);
  }
  return all / static_cast<std::size_t>(places) + longest + (places > kFewSequences ? reading : 0);
}

/// What a call told of each text.
struct Told {
  Texts texts;
  std::vector<Outcome> outcomes;
};
inline Told tell(Generator& generator, const std::vector<Request>& requests) {
  Told told{Texts(requests.size()), {}};
  std::vector<int> ends(requests.size());
  told.outcomes = generator.generate(
      requests,
      [&](std::size_t text, std::uint32_t token) {
        CHECK(ends.at(text) == 0);
        told.texts.at(text).push_back(token);
      },
      [&](std::size_t text, const Outcome& outcome) {
        ++ends.at(text);
        CHECK(outcome.tokens == told.texts.at(text).size());
      });
  CHECK(ends == std::vector<int>(requests.size(), 1));
  return told;
}

/// `texts` texts through `places` places are each what they are alone, some of them up to an end-of-text token.
inline void check_crowd(const StartTuned& start, const std::filesystem::path& folder, const CrowdSize& size) {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed << ", " << size.texts << " texts, " << size.places << " places");
  Config config = read_config(folder);
  const int context = size.prompt + size.tokens;
  Runtime runtime = start(config, context);
  std::vector<Request> requests = RandomRequests(config, seed).several(size);
  Texts expected;
  {
    TunedGenerator each(runtime, config, load_weights(runtime, config, folder), context, size.places_of_each, size.way);
    expected = write_alone(each, requests);
  }
  config.eos_token_ids = choose_ends(expected);
  const Texts cut = cut_at(config.eos_token_ids, expected);
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (may_end(i)) requests[i].stop_at_end = true, expected[i] = cut[i];
  TunedGenerator generator(runtime, config, load_weights(runtime, config, folder), context, size.places, size.way);
  const Told told = tell(generator, requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    INFO("text " << i << ", a prompt of " << requests[i].prompt.size() << ", " << requests[i].tokens << " tokens to write");
    CHECK(told.texts[i] == expected[i]);
    CHECK(told.outcomes[i].tokens == expected[i].size());
    CHECK((told.outcomes[i].ended || expected[i].size() == requests[i].tokens));
    CHECK(told.outcomes[i].first_token <= told.outcomes[i].time);
    CHECK(told.outcomes[i].steps <= most_steps(requests, expected, config, size.places));
  }
}

/// Of two places one writes a long text, and one that is read, with a prompt of `length`, after a short one.
struct LongComesLate {
  LongComesLate(const Config& config, int length) : turns((length / prompt_positions(config, PromptWay::chunks) + 1) / 2) {
    RandomRequests some(config, 5);
    for (const int prompt : {3, 9, length}) {
      Request request = some({.texts = 1, .places = 2, .prompt = 1, .tokens = 1});
      while (request.prompt.size() < static_cast<std::size_t>(prompt))
        request.prompt.push_back(some.up_to(config.vocab_size) - 1);
      requests.push_back(std::move(request));
    }
    requests[0].tokens = 2, requests[1].tokens = static_cast<std::uint32_t>(2 * turns), requests[2].tokens = 6;
  }

  int turns;  // that read it, of two passes each
  std::vector<Request> requests;
};

/// The long prompt does not keep the text that is written from its tokens: it has one for each two passes.
inline void check_long_comes_late(const StartTuned& start, const std::filesystem::path& folder, int length) {
  const Config config = read_config(folder);
  const LongComesLate late(config, length);
  Runtime runtime = start(config, length + 8);
  TunedGenerator generator(runtime, config, load_weights(runtime, config, folder), length + 8, 2, PromptWay::chunks);
  const Texts alone = write_alone(generator, late.requests);
  Texts texts(3);
  int meanwhile = 0;
  generator.generate(late.requests, [&](std::size_t text, std::uint32_t token) {
    texts[text].push_back(token);
    if (text == 1 && texts[0].size() == 2 && texts[2].empty()) ++meanwhile;
  });
  CHECK(texts == alone);
  CHECK(meanwhile >= late.turns - 1);
  CHECK(meanwhile <= late.turns + 2);
}

/// What a callback throws, when some texts are through and others wait, ends all; the next ones are whole.
inline void check_crowd_cancellation(const StartTuned& start, const std::filesystem::path& folder, const CrowdSize& size) {
  const Config config = read_config(folder);
  const int context = size.prompt + size.tokens;
  Runtime runtime = start(config, context);
  TunedGenerator generator(runtime, config, load_weights(runtime, config, folder), context, size.places, size.way);
  const auto requests = RandomRequests(config, 11).several(size);
  const Texts texts = write_texts(generator, requests);
  std::size_t all = 0;
  for (const auto& text : texts) all += text.size();
  for (const std::size_t at : {all / 7, all / 2, all - 2}) {
    std::size_t seen = 0;
    const auto throw_there = [&](std::size_t, std::uint32_t) {
      if (++seen == at) throw std::out_of_range("enough");
    };
    CHECK_THROWS_AS(generator.generate(requests, throw_there), std::out_of_range);
    CHECK(seen == at);
    CHECK(write_texts(generator, requests) == texts);
  }
  const auto throw_at_end = [&](std::size_t, const Outcome&) { throw std::out_of_range("enough"); };
  CHECK_THROWS_AS(generator.generate(
                      requests, [](std::size_t, std::uint32_t) {}, throw_at_end),
                  std::out_of_range);
  CHECK(write_texts(generator, requests) == texts);
}

}  // namespace llama
