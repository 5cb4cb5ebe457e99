// What the stages of a step leave behind, to tell where two runs of the same step part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/llama/tuned/generator.hpp"

namespace llama {

/// The words that a generator's last step has left, stage by stage in the order in which they were made, and its logits:
/// each stage has memory of its own. Without stamps, which differ from run to run.
class StepWords {
 public:
  explicit StepWords(TunedGenerator& generator);

  /// The first stage that left other words in the same step of another run, how many, and which comes first. Empty if all
  /// are the same.
  std::string first_difference(const StepWords& other) const;

 private:
  struct Stage {
    std::string name;
    std::vector<std::uint32_t> words;  // [texts][...]
    std::size_t texts;
  };
  static std::string difference(const Stage& one, const Stage& other);

  std::vector<Stage> stages_;
};

/// The same of a step at `position`, which is named.
std::string first_difference(std::uint32_t position, const StepWords& one, const StepWords& other);

}  // namespace llama
