// Where two runs of a step part: by what its stages left.
#include "apps/llama/bench/step_words.hpp"

#include "apps/llama/tuned/start.hpp"
#include "catch.hpp"
#include "llama_families_support.hpp"

namespace llama {
namespace {

struct TwoTexts {
  static constexpr int kContext = 16;
  Config config = read_config(family_folder("llama3_heads64"));
  Runtime runtime =
      start_tuned_runtime({.target = Target::cpu, .workers = 2, .scratch_bytes = tuned_scratch_bytes(config, false, kContext)});
  TunedGenerator generator{runtime, config, load_weights(runtime, config, family_folder("llama3_heads64")), kContext, 2};

  StepWords after_step() {
    generator.logits_of({{5}, {9}});
    return StepWords(generator);
  }
};

/// Another number where that word has one, with the same stamp.
void change(Buffer<Stamped>& words, std::size_t at) {
  Stamped word{};
  words.read(&word, 1, at);
  word.word ^= 1;
  words.write(&word, 1, at);
}

}  // namespace

TEST_CASE("step words: two runs of a step left the same") {
  TwoTexts texts;
  const StepWords one = texts.after_step(), other = texts.after_step();
  CHECK(one.first_difference(other) == "");
  CHECK(first_difference(3, one, other) == "");
}

TEST_CASE("step words: the first stage that differs is named, with the first word of it") {
  TwoTexts texts;
  const StepWords one = texts.after_step();
  TunedMemory& memory = texts.generator.memory();
  const std::size_t inner = memory.packed_inner.size() / static_cast<std::size_t>(texts.config.num_hidden_layers);
  change(memory.packed_inner, inner + inner / 2 + 3);
  change(memory.packed_inner, inner + inner / 2 + 5);
  CHECK(first_difference(7, one, StepWords(texts.generator)) ==
        "position 7, layer 1, gate and up: 2 of " + std::to_string(inner) + " words differ, the first of text 1 at 3");
  const std::size_t squares = static_cast<std::size_t>(memory.squares_of_stage);
  change(memory.squares, 3 * squares + 1);
  CHECK(one.first_difference(StepWords(texts.generator)) ==
        "layer 1, output, squares: 1 of " + std::to_string(squares) + " words differ, the first of text 0 at 1");
  const auto x = static_cast<std::size_t>(texts.config.hidden_size);
  change(memory.x, 2 * 2 * x + x + 7);
  CHECK(one.first_difference(StepWords(texts.generator)) ==
        "layer 0, down: 1 of " + std::to_string(2 * x) + " words differ, the first of text 1 at 7");
  change(memory.qkv, 0);
  CHECK(one.first_difference(StepWords(texts.generator)).starts_with("layer 0, qkv: 1 of "));
}

}  // namespace llama
