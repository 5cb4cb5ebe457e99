#include "apps/llama/bench/mixed.hpp"

#include <algorithm>
#include <cstdio>
#include <random>
#include <stdexcept>

namespace llama {
namespace {

using Clock = std::chrono::steady_clock;
using measure::Better;

constexpr std::uint64_t kSeedOfTexts = 1;
constexpr std::uint32_t kUsualPlaces = 64;
constexpr std::uint32_t kTextsAlone = 8;                 // of those that are written once more
constexpr std::uint32_t kStepsOfEndless = 100;           // of a sample
constexpr std::uint32_t kFirstSteps = 20, kSteps = 300;  // of the texts beside a prompt: before it may come, and in all
constexpr std::uint32_t kPromptOfWriters = 16;           // tokens

double ms_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count() * 1e3;
}

std::vector<std::uint32_t> some_ids(std::mt19937_64& random, std::uint32_t count, int vocabulary) {
  std::uniform_int_distribution<std::uint32_t> id(0, static_cast<std::uint32_t>(vocabulary) - 1);
  std::vector<std::uint32_t> ids(count);
  std::ranges::generate(ids, [&] { return id(random); });
  return ids;
}

using Texts = std::vector<std::vector<std::uint32_t>>;

/// Tokens a second, of all. `texts`: what was written.
double write_all(TunedGenerator& generator, const std::vector<Request>& requests, Texts& texts) {
  texts.assign(requests.size(), {});
  const auto begin = Clock::now();
  generator.generate(requests, [&](std::size_t text, std::uint32_t token) { texts[text].push_back(token); });
  const double seconds = ms_between(begin, Clock::now()) / 1e3;
  std::size_t tokens = 0;
  for (const auto& text : texts) tokens += text.size();
  return static_cast<double>(tokens) / seconds;
}

void check_alone(TunedGenerator& generator, const std::vector<Request>& requests, const Texts& texts) {
  const std::size_t apart = std::max<std::size_t>(1, requests.size() / kTextsAlone);
  for (std::size_t text = 0; text < requests.size(); text += apart) {
    Texts alone;
    write_all(generator, {requests[text]}, alone);
    if (alone[0] == texts[text]) continue;
    const auto differ = std::ranges::mismatch(alone[0], texts[text]);
    throw std::runtime_error("text " + std::to_string(text) + " of " + std::to_string(requests.size()) +
                             " is another one if it is written alone, from token " +
                             std::to_string(differ.in1 - alone[0].begin()) +
                             " on: what is written beside a text must not change it");
  }
}

/// Where a text of the mix is on average while it is written.
std::uint32_t mean_position(const std::vector<Request>& requests) {
  double positions = 0, tokens = 0;
  for (const Request& request : requests) {
    positions += request.tokens * (static_cast<double>(request.prompt.size()) + request.tokens / 2.);
    tokens += request.tokens;
  }
  return static_cast<std::uint32_t>(positions / tokens);
}

double endless_rate(TunedGenerator& generator, std::uint32_t start) {
  const auto steps = std::min(kStepsOfEndless, static_cast<std::uint32_t>(generator.context()) - start);
  return generator.sequences() * steps / generator.run(start, steps).count();
}

/// All places but one write a short prompt's text. The one that ends soon makes room for the long prompt.
class BesidePrompt {
 public:
  explicit BesidePrompt(TunedGenerator& generator)
      : generator_(generator),
        prompt_(std::min(kPromptBeside, static_cast<std::uint32_t>(generator.context()) - 1)) {
    std::mt19937_64 random(kSeedOfTexts);
    const int vocabulary = generator.config().vocab_size;
    const auto add = [&](std::uint32_t prompt, std::uint32_t tokens) {
      requests_.push_back({some_ids(random, prompt, vocabulary), tokens, {}, false});
    };
    const auto room = static_cast<std::uint32_t>(generator.context()) - kPromptOfWriters;
    for (int place = 1; place < generator.sequences(); ++place) add(kPromptOfWriters, std::min(kSteps, room));
    add(kPromptOfWriters, std::min(kFirstSteps, room));
    add(prompt_, 1);
  }
  std::uint32_t prompt() const { return prompt_; }

  void take(MixedTimes& times, bool counts) {
    const double alone = generator_.generate(requests_.back(), [](std::uint32_t) {}).time.count() * 1e3;
    const std::size_t last = requests_.size() - 1;
    std::vector<Clock::time_point> first;
    Clock::time_point room, answer;
    generator_.generate(requests_, [&](std::size_t text, std::uint32_t) {
      if (text == 0) first.push_back(Clock::now());
      if (text == last - 1) room = Clock::now();
      if (text == last) answer = Clock::now();
    });
    if (!counts) return;
    Samples gaps;
    double slowest = 0;
    for (std::size_t i = 1; i < first.size(); ++i) {
      gaps.push_back(ms_between(first[i - 1], first[i]));
      if (first[i] > room) slowest = std::max(slowest, gaps.back());
    }
    times.usual.push_back(median(gaps));
    times.slowest.push_back(slowest);
    times.alone.push_back(alone);
    times.beside.push_back(ms_between(room, answer));
  }

 private:
  TunedGenerator& generator_;
  std::uint32_t prompt_;
  std::vector<Request> requests_;
};

std::string name_of(const std::string& model, const MixedTimes& times) {
  return "mixed." + model + (times.places == kUsualPlaces ? "" : ".b" + std::to_string(times.places));
}

Row row_beside(const std::string& name, const Samples& samples, const Samples& peer, const char* peer_name,
               const measure::Stamp& stamp, const char* unit, Better better) {
  Row row = row_of(name, samples, unit, better, stamp);
  row.peer = peer_name;
  row.peer_value = median(peer);
  return row;
}

}  // namespace

std::vector<Request> draw_texts(std::uint32_t count, int context, int vocabulary, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto room = static_cast<std::uint32_t>(context);
  const std::uint32_t most = std::max(1u, std::min(kMostMixedTokens, room / 6));
  const std::uint32_t longest = std::max(1u, std::min(kLongestMixedPrompt, room - most));
  std::uniform_int_distribution<std::uint32_t> prompt(1, longest), tokens(1, most);
  std::vector<Request> requests;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t length = prompt(random), written = tokens(random);
    requests.push_back({some_ids(random, length, vocabulary), written, {}, false});
  }
  return requests;
}

int positions_of_mixed(const Config& config) {
  return std::min<int>(config.max_position_embeddings, kLongestMixedPrompt + kMostMixedTokens);
}

MixedTimes measure_mixed(TunedGenerator& generator, std::uint32_t count, int runs) {
  MixedTimes times;
  times.texts = count;
  times.places = static_cast<std::uint32_t>(generator.sequences());
  const std::vector<Request> requests = draw_texts(count, generator.context(), generator.config().vocab_size, kSeedOfTexts);
  const std::uint32_t start = mean_position(requests);
  Texts texts;
  for (int round = 0; round < runs; ++round) {
    times.written.push_back(write_all(generator, requests, texts));
    times.endless.push_back(endless_rate(generator, start));
  }
  check_alone(generator, requests, texts);
  if (times.places == 1) return times;
  BesidePrompt beside(generator);
  times.prompt = beside.prompt();
  for (int round = 0; round <= runs; ++round) beside.take(times, round > 0);
  return times;
}

std::vector<Row> mixed_rows(const std::string& model, const MixedTimes& times, const measure::Stamp& stamp) {
  std::vector<Row> rows;
  const std::string name = name_of(model, times);
  if (times.written.empty()) return rows;
  rows.push_back(row_beside(name, times.written, times.endless, "texts that never end", stamp, "tokens/s", Better::higher));
  if (times.slowest.empty()) return rows;
  rows.push_back(row_beside(name + ".slowest_step", times.slowest, times.usual, "its usual one", stamp, "ms", Better::lower));
  rows.push_back(row_beside(name + ".prompt", times.beside, times.alone, "the prompt alone", stamp, "ms", Better::lower));
  return rows;
}

std::string mixed_table(const std::string& model, const MixedTimes& times) {
  if (times.written.empty()) return {};
  char line[300];
  const double written = median(times.written), endless = median(times.endless);
  std::snprintf(line, sizeof line,
                "%s: %u texts of random lengths through %u places: %.0f tokens/s, %.2f of texts that never end (%.0f)\n",
                name_of(model, times).c_str(), times.texts, times.places, written, written / endless, endless);
  std::string text = line;
  if (times.slowest.empty()) return text;
  const double usual = median(times.usual), slowest = median(times.slowest);
  const double alone = median(times.alone), beside = median(times.beside);
  std::snprintf(
      line, sizeof line,
      "  a prompt of %u beside %u texts: their slowest step %.2f ms, %.1f x the usual one (%.3f); the prompt %.2f ms, "
      "%.2f x alone (%.2f)\n",
      times.prompt, times.places - 1, slowest, slowest / usual, usual, beside, beside / alone, alone);
  return text + line;
}

}  // namespace llama
