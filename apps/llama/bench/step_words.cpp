#include "apps/llama/bench/step_words.hpp"

#include <algorithm>
#include <bit>

namespace llama {
namespace {

/// Stamped words of all stages of one kind, a stage after the other.
class Words {
 public:
  Words(const Buffer<Stamped>& buffer, std::size_t stages) : all_(buffer.read()), each_(all_.size() / stages) {}

  std::vector<std::uint32_t> of(std::size_t stage) const {
    std::vector<std::uint32_t> bits(each_);
    const auto first = all_.begin() + static_cast<std::ptrdiff_t>(stage * each_);
    std::transform(first, first + static_cast<std::ptrdiff_t>(each_), bits.begin(),
                   [](const Stamped& word) { return word.bits(); });
    return bits;
  }

 private:
  std::vector<Stamped> all_;
  std::size_t each_;
};

}  // namespace

/// Stage 0 of the residual stream is left out: the choice has put the next step's there.
StepWords::StepWords(TunedGenerator& generator) {
  const TunedMemory& memory = generator.memory();
  const auto layers = static_cast<std::size_t>(generator.config().num_hidden_layers);
  const auto sums = static_cast<std::size_t>(memory.stages), texts = static_cast<std::size_t>(memory.sequences);
  const Words qkv(memory.qkv, layers), attended(memory.packed_results, layers), inner(memory.packed_inner, layers);
  const Words x(memory.x, sums), packed(memory.packed_x, sums), squares(memory.squares, sums);
  const auto add_sum = [&](const std::string& name, std::size_t stage) {
    stages_.push_back({name, x.of(stage), texts});
    stages_.push_back({name + ", rounded", packed.of(stage), texts});
    stages_.push_back({name + ", squares", squares.of(stage), 1});
  };
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const std::string name = "layer " + std::to_string(layer);
    stages_.push_back({name + ", qkv", qkv.of(layer), texts});
    stages_.push_back({name + ", attention", attended.of(layer), texts});
    add_sum(name + ", output", 2 * layer + 1);
    stages_.push_back({name + ", gate and up", inner.of(layer), texts});
    add_sum(name + ", down", 2 * layer + 2);
  }
  const std::vector<float> logits = generator.last_logits();
  Stage last{"logits", std::vector<std::uint32_t>(logits.size()), texts};
  std::ranges::transform(logits, last.words.begin(), [](float logit) { return std::bit_cast<std::uint32_t>(logit); });
  stages_.push_back(std::move(last));
}

std::string StepWords::difference(const Stage& one, const Stage& other) {
  std::size_t count = 0, first = 0;
  for (std::size_t i = one.words.size(); i-- > 0;)
    if (one.words[i] != other.words.at(i)) ++count, first = i;
  if (count == 0) return "";
  const std::size_t of_text = one.words.size() / one.texts;
  return one.name + ": " + std::to_string(count) + " of " + std::to_string(one.words.size()) +
         " words differ, the first of text " + std::to_string(first / of_text) + " at " + std::to_string(first % of_text);
}

std::string StepWords::first_difference(const StepWords& other) const {
  for (std::size_t s = 0; s < stages_.size(); ++s)
    if (std::string found = difference(stages_[s], other.stages_.at(s)); !found.empty()) return found;
  return "";
}

std::string first_difference(std::uint32_t position, const StepWords& one, const StepWords& other) {
  const std::string found = one.first_difference(other);
  return found.empty() ? found : "position " + std::to_string(position) + ", " + found;
}

}  // namespace llama
