// A loaded model with all that writing with it needs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "apps/llama/checkpoint/tokenizer/tokenizer.hpp"
#include "apps/llama/decode/generator.hpp"

namespace llama {

/// Where the model lies and where it runs.
struct Setup {
  std::filesystem::path model;  // empty: find_model()
  Target target = Target::automatic;
  int context = 0;            // 0: see choose_context()
  std::uint32_t workers = 0;  // 0: see Options
  bool tuned = false;         // the compiled decode in place of the portable one
  std::int64_t pool = 0;      // positions that all its texts share; 0: a context for each, or what memory has room for
};

/// Its members stand in the order in which they may go.
struct Session {
  /// Throws ModelError for a model that is missing or damaged, RequestError for a context that it was not made for.
  explicit Session(const Setup& wanted, int texts = 1);

  /// `wanted`, or 256 for 0, but no more than the context and the pool have room for behind a prompt; 1 where it has none.
  std::uint32_t tokens_behind(std::size_t prompt, std::uint32_t wanted) const;

  Setup setup;  // its pool is of a definite size where memory has less than a context for each text
  std::filesystem::path folder;
  Tokenizer tokenizer;
  Runtime runtime;
  std::unique_ptr<Generator> generator;
};

}  // namespace llama
