#include "apps/llama/decode/generator.hpp"

#include <algorithm>
#include <string>

namespace llama {
namespace {

/// A run ends before its caller's buffers and callbacks go, also when an exception takes the caller away.
class EndOfRun {
 public:
  explicit EndOfRun(Run& run) : run_(run) {}
  ~EndOfRun() {
    if (run_.done()) return;
    run_.cancel();
    run_.status();
  }
  EndOfRun(const EndOfRun&) = delete;
  EndOfRun& operator=(const EndOfRun&) = delete;

 private:
  Run& run_;
};

/// As run.wait(), with the words for a failure of the model's own.
void wait(Run& run) {
  try {
    run.wait();
  } catch (const RunError& error) {
    if (error.status() != Status::task_failed || error.user_code() != kLogitsNotFinite) throw;
    throw RequestError(
        "the model computes numbers that are no numbers: its weights are damaged (download it again), or its activations "
        "are too large for the tuned decode (write with the portable one)");
  }
}

}  // namespace

void Generator::check_count(std::size_t texts) const {
  if (texts > static_cast<std::size_t>(sequences()))
    throw RequestError("this decode writes " + std::to_string(sequences()) + " texts at once, not " + std::to_string(texts) +
                       ": make it for more, or ask for the others after them");
}

void Generator::watch(Run run, const std::function<void(Run&)>& use) {
  try {
    use(run);
  } catch (...) {
    if (run.status() == Status::task_failed) on_failed_task();
    throw;
  }
}

std::uint32_t Generator::follow(const Run& run, const std::function<void(const WrittenToken&)>& on_token) {
  std::uint32_t steps = 0;
  watch(run, [&](Run& mine) {
    const EndOfRun guard(mine);
    while (const auto written = mine.next<WrittenToken>()) on_token(*written);
    wait(mine);
    steps = mine.iterations();
  });
  return steps;
}

std::vector<Outcome> Generator::generate(const std::vector<Request>& requests, const OnTextToken& on_token,
                                         const OnTextEnd& on_end) {
  check(requests);
  Tally tally(requests, config_, on_token, on_end);
  write_texts(requests, tally);
  return tally.outcomes();
}

Outcome Generator::generate(const Request& request, const OnToken& on_token) {
  return generate(std::vector{request}, [&](std::size_t, std::uint32_t token) { on_token(token); }).front();
}

std::vector<float> Generator::logits_from(const std::vector<StepState>& states) {
  watch(submit_step(states), wait);
  return last_logits();
}

/// A text that has no id at a position takes its last step once more.
std::vector<std::vector<std::vector<float>>> Generator::logits_of(const std::vector<std::vector<std::uint32_t>>& texts,
                                                                  const std::function<void()>& after_step) {
  check_count(texts.size());
  std::size_t longest = 0;
  for (const std::vector<std::uint32_t>& ids : texts) {
    check_ids(ids, config_, context_);
    longest = std::max(longest, ids.size());
  }
  std::vector<std::vector<std::vector<float>>> all(texts.size());
  for (std::size_t position = 0; position < longest; ++position) {
    std::vector<StepState> states;
    for (const std::vector<std::uint32_t>& ids : texts) {
      const std::size_t at = std::min(position, ids.size() - 1);
      states.push_back({static_cast<std::uint32_t>(at), ids[at]});
    }
    const std::vector<float> logits = logits_from(states);
    for (std::size_t text = 0; text < texts.size(); ++text) {
      const auto first = logits.begin() + static_cast<std::ptrdiff_t>(text) * config_.vocab_size;
      if (position < texts[text].size()) all[text].emplace_back(first, first + config_.vocab_size);
    }
    if (after_step) after_step();
  }
  return all;
}

}  // namespace llama
